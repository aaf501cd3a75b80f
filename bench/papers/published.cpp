#include "papers/published.hpp"

namespace quoin::cli {

namespace {

struct Sentence {
    const char *paper, *entry, *text;
};

// bench/plots/papers.py takes the numbers of the data
#define PAPER(...)
#define ROWS(...)
#define VALUES(...)
#define SAYS(paper, entry, text) {paper, entry, text},
#define DIFFERS(...)
#define FILES(...)
#define KEPT(...)
#define QUICK(...)
const Sentence all_sentences[] = {
#include "papers/published.def"
};

}  // namespace

std::string published_text(const std::string& paper, const std::string& entry) {
    std::string text;
    for (const Sentence& sentence : all_sentences)
        if (paper == sentence.paper && entry == sentence.entry) text += std::string(sentence.text) + "\n";
    return text;
}

}  // namespace quoin::cli
