#include "papers/published.hpp"

namespace quoin::cli {

namespace {

struct Rows {
    const char *paper, *entry;
    std::vector<std::string> names;
};
struct Sentence {
    const char *paper, *entry, *text;
};

// each table takes the lines of its kind from the data
#define PAPER(...)
#define ROWS(...)
#define VALUES(paper, entry, code, ...) {paper, entry, code, {__VA_ARGS__}},
#define SAYS(...)
#define DIFFERS(...)
#define FILES(...)
#define KEPT(...)
#define QUICK(...)
const std::vector<PublishedSeries> all_series = {
#include "papers/published.def"
};
#undef VALUES
#undef ROWS
#define VALUES(...)
#define ROWS(paper, entry, unit, ...) {paper, entry, {__VA_ARGS__}},
const std::vector<Rows> all_rows = {
#include "papers/published.def"
};
#undef ROWS
#undef SAYS
#define ROWS(...)
#define SAYS(paper, entry, text) {paper, entry, text},
const std::vector<Sentence> all_sentences = {
#include "papers/published.def"
};

}  // namespace

std::vector<PublishedSeries> published_series(const std::string& paper, const std::string& entry) {
    std::vector<PublishedSeries> found;
    for (const PublishedSeries& series : all_series)
        if (paper == series.paper && entry == series.entry) found.push_back(series);
    return found;
}

double published(const std::string& paper, const std::string& entry, const std::string& code, const std::string& row) {
    for (const Rows& rows : all_rows) {
        if (paper != rows.paper || entry != rows.entry) continue;
        for (const PublishedSeries& series : published_series(paper, entry))
            for (std::size_t i = 0; code == series.code && i < series.values.size(); ++i)
                if (rows.names[i] == row) return series.values[i];
    }
    return -1;
}

std::string published_text(const std::string& paper, const std::string& entry) {
    std::string text;
    for (const Sentence& sentence : all_sentences)
        if (paper == sentence.paper && entry == sentence.entry) text += std::string(sentence.text) + "\n";
    return text;
}

}  // namespace quoin::cli
