#pragma once

#include <string>
#include <vector>

namespace quoin::cli {

/// The numbers that `code` has in a table or figure of a paper.
struct PublishedSeries {
    const char *paper, *entry, *code;
    std::vector<double> values;  ///< one for each row; −1: not printed
};
/// Returns the series of `entry` of `paper`, in the order of bench/papers/published.def, which has the data.
std::vector<PublishedSeries> published_series(const std::string& paper, const std::string& entry);
/// Returns the number that the paper printed for `code` in the row `row`; −1 if there is none.
double published(const std::string& paper, const std::string& entry, const std::string& code, const std::string& row);
/// Returns what the text of the paper says of that table or figure, one sentence a line.
std::string published_text(const std::string& paper, const std::string& entry);

}  // namespace quoin::cli
