#pragma once

// `quoin lstsq --stats`: statistics of a regression.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "json_line.hpp"
#include "quoin/io.hpp"
#include "quoin/regression.hpp"
#include "row_blocks.hpp"

namespace quoin::cli {

/// Returns the names of A's columns, by default x1, x2, …, with "(intercept)" before them if there is one.
inline std::vector<std::string> coefficient_names(const MatrixFile& A_file, bool intercept) {
    std::vector<std::string> names(A_file.column_names());
    names.resize(static_cast<std::size_t>(A_file.cols()));
    for (std::size_t j = 0; j < names.size(); ++j)
        if (names[j].empty()) names[j] = fmt::format("x{}", j + 1);
    if (intercept) names.insert(names.begin(), "(intercept)");
    return names;
}

/// Reads the m weights of a file. Throws InvalidArgument, which names the row, unless they are finite and not negative.
inline std::vector<double> read_weights(const MatrixFile& file, Index m) {
    if (file.rows() != m || file.cols() != 1)
        throw InvalidArgument(
            fmt::format("{}: is {} x {}, and the weights of {} observations are a column of as many numbers",
                        file.path(), file.rows(), file.cols(), m));
    const Matrix<double> column = file.read<double>();
    for (Index i = 0; i < m; ++i)
        if (!(column(i, 0) >= 0 && std::isfinite(column(i, 0))))
            throw InvalidArgument(fmt::format("{}: the weight in row {} is {}, and weights are finite and not negative",
                                              file.path(), i, column(i, 0)));
    return {column.data(), column.data() + m};
}

/// Appends the rows √wᵢ [1 aᵢ bᵢ] of the files to `stream`, which has a column for the 1 if there is an intercept.
template <class T, class D>
void append_weighted_rows(Context<D>& ctx, StreamingR<T, D>& stream, const MatrixFile& A_file, const MatrixFile& b_file,
                          Range rows, const RegressionOptions& options) {
    const Index constant = options.intercept, n = stream.cols(), p = b_file.cols();
    const RowReader<T> read = [&](Range part, MatrixView<T> Ab) {
        throw_if_interrupted();
        for (Index i = 0; i < part.size() && options.intercept; ++i) Ab(i, 0) = 1;
        read_rows<T>(A_file, part, Ab.col_block({constant, n}));
        read_rows<T>(b_file, part, Ab.col_block({n, n + p}));
        if (options.weights.empty()) return;
        for (Index j = 0; j < n + p; ++j)
            for (Index i = 0; i < part.size(); ++i)
                Ab(i, j) *= static_cast<T>(std::sqrt(options.weights[part.begin + i]));
    };
    try {
        stream.append(ctx, rows.size(), read);
    } catch (const NonFiniteEntry& e) {
        if (e.matrix == "b") throw;
        throw NonFiniteEntry(e.row, e.col - constant, e.matrix);
    }
}

/// Adds the statistics of every right-hand side.
inline void add_statistics(JsonLine& line, const Regression& fit, const std::vector<std::string>& names,
                           const std::vector<std::string>& right_hand_sides) {
    std::vector<JsonLine> fits;
    for (Index c = 0; c < fit.coefficients.cols(); ++c) {
        std::vector<JsonLine> coefficients;
        for (Index j = 0; j < fit.coefficients.rows(); ++j)
            coefficients.push_back(JsonLine()
                                       .add("name", names[j])
                                       .add("estimate", fit.coefficients(j, c))
                                       .add("standard_error", fit.standard_errors(j, c))
                                       .add("t_value", fit.t_values(j, c))
                                       .add("p_value", fit.p_values(j, c))
                                       .add("error_bound", fit.error_bounds(j, c)));
        fits.push_back(JsonLine()
                           .add_known("right_hand_side", right_hand_sides.empty() ? "" : right_hand_sides[c])
                           .add("coefficients", coefficients)
                           .add("residual_norm", fit.residual_norms[c])
                           .add("residual_standard_error", fit.residual_standard_errors[c])
                           .add("r_squared", fit.r_squared[c])
                           .add("adjusted_r_squared", fit.adjusted_r_squared[c])
                           .add("f_value", fit.f_values[c])
                           .add("f_p_value", fit.f_p_values[c]));
    }
    line.add("observations", fit.observations).add("degrees_of_freedom", fit.degrees_of_freedom).add("fits", fits);
}

}  // namespace quoin::cli
