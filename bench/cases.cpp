#include "cases.hpp"

#include <algorithm>

namespace quoin::cli {

void Cases::run(const std::vector<Case>& cases, bool together) {
    for (auto first = cases.begin(); first != cases.end();) {
        const auto other_matrix = [&](const Case& c) {
            return !together || c.dtype != first->dtype || c.shape.rows != first->shape.rows ||
                   c.shape.cols != first->shape.cols;
        };
        const auto end = std::find_if(first + 1, cases.end(), other_matrix);
        std::vector<Variant> variants;
        for (auto c = first; c != end; ++c) {
            variants.emplace_back(c->operation, arguments_.common.options);
            if (c->method != Method::Auto) variants.back().second.method = c->method;
        }
        const auto report = [&](const std::vector<Measurement>& results,
                                const std::vector<TimedReference>& references) {
            for (std::size_t v = 0; v < results.size(); ++v) {
                const Case& c = first[static_cast<std::ptrdiff_t>(v)];
                if (c.growth) growth_.emplace_back(c, results[v].seconds);
                BenchRow row = bench_row(c.shape, c.dtype, c.operation, results[v], limits_);
                row.required_ratio = c.required_ratio;
                output_.add(row, references);
            }
        };
        measure(first->shape, first->dtype, variants, !first->growth, report);
        first = end;
    }
    write_trace();
}

}  // namespace quoin::cli
