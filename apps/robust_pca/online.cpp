// Online robust PCA: projection on a subspace that follows the columns (Feng, Xu and Yan 2013; Rodríguez and Wohlberg
// 2016).

#include "quoin/apps/online_robust_pca.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/shared/copies.hpp"
#include "devices.hpp"
#include "quoin/svd.hpp"
#include "robust_pca/online_steps.hpp"

namespace quoin {
namespace {

/// Least noise, as a share of the threshold: two thirds of a grey level.
constexpr double min_noise = 16;
/// Steps of the projection. Each step reduces the error of l to its share under S.
constexpr int projection_steps = 2;
/// Largest m Σ u⁴ of a unit vector u that counts as background. It is 1 if all entries are ±1/√m, and 3 if they are
/// normal.
constexpr double max_kurtosis = 12;
/// If more than this share of a column's entries differs from l, the scene has changed.
constexpr double another_scene = 0.25;
/// Fewest columns for a batch pursuit.
constexpr Index min_start = 4;
/// If one direction has more than this share of the median's residual, it is neither noise nor motion.
constexpr double max_direction = 0.5;
/// Number of rows, about, that the search for that direction uses.
constexpr Index max_rows = 1 << 12;
/// Number of columns after which U is made orthonormal again.
constexpr Index renewal = 256;
/// Gains of a quantile for each column, at first and once the quantile is known.
constexpr double first_gain = 0.25, last_gain = 0.05;

EntryRules rules_of(const OnlineRobustPcaOptions& options, Index t) {
    const double gain = std::max(last_gain, first_gain / std::sqrt(static_cast<double>(t)));
    // a quantile q of |x| rises by the factor e^(gain·q) where |x| is above it, and falls by e^(−gain(1 − q)) elsewhere
    const auto up = [&](double q) { return static_cast<float>(std::exp(gain * q)); };
    const auto down = [&](double q) { return static_cast<float>(std::exp(-gain * (1 - q))); };
    return {.threshold = options.threshold,
            .min_noise = static_cast<float>(options.threshold / min_noise),
            .size_up = up(0.5),
            .size_down = down(0.5),
            .change_up = up(0.9),
            .change_down = down(0.9),
            .patience = options.forget > 0 ? static_cast<std::int32_t>(std::min(1 / options.forget, 1e9)) : 0,
            .undecided = static_cast<std::int32_t>(options.start / 2)};
}

/// The largest exponent of an entry: sums of squares of a column must be numbers of T, and the noise one of f32.
template <class T>
int largest_exponent(Index rows) {
    return std::min((std::numeric_limits<T>::max_exponent - 2 - std::ilogb(static_cast<double>(rows))) / 2, 120);
}
template <class T>
[[noreturn]] void refuse_size(Index rows) {
    throw InvalidArgument(
        fmt::format("the entries of a column of {} must be below {:.0e}, for squares and noise not to overflow: scale "
                    "the data and the threshold, best to data in [0, 1]",
                    rows, std::ldexp(1.0, largest_exponent<T>(rows))));
}

template <class T>
MatrixView<T> view_of(std::span<T> x) {
    return {x.data(), static_cast<Index>(x.size()), 1};
}
template <class T, class D>
MatrixView<T, D> view_of(MatrixView<T, D> x) {
    return x;
}

}  // namespace

template <class T, class D>
OnlineRobustPca<T, D>::OnlineRobustPca(Index rows, OnlineRobustPcaOptions options) : rows_(rows), options_(options) {
    if (rows < 1) throw InvalidArgument(fmt::format("columns must have rows, and have {}", rows));
    if (options.max_rank < 1) throw InvalidArgument("max_rank must be at least 1");
    if (!(options.forget >= 0 && options.forget < 1)) {
        throw InvalidArgument(fmt::format("forget must be at least 0 and below 1, and is {}", options.forget));
    }
    if (!(options.threshold > 0) || !std::isfinite(options.threshold)) {
        throw InvalidArgument(fmt::format("threshold must be positive, and is {}", options.threshold));
    }
    if (options.start < 1) throw InvalidArgument("start must be at least 1");
}

template <class T, class D>
void OnlineRobustPca<T, D>::allocate(Context<D>& ctx) {
    numbers_ = Matrix<double, D>(ctx, FirstOfC + options_.max_rank, 1);
    if (columns_ < options_.start) first_ = Matrix<T, D>(ctx, rows_, options_.start);
    last_ = Matrix<T, D>(ctx, rows_, 1);
    for (Matrix<float, D>* tracked : {&size_, &change_, &noise_}) *tracked = Matrix<float, D>(ctx, rows_, 1);
    for (Matrix<std::int32_t, D>* tracked : {&age_, &votes_}) *tracked = Matrix<std::int32_t, D>(ctx, rows_, 1);
    U_ = Matrix<T, D>(ctx, rows_, options_.max_rank + 1);
}

template <class T, class D>
OnlineRobustPca<T, D>::OnlineRobustPca(Context<D>& ctx, Index rows, OnlineRobustPcaOptions options, const State& state)
    : OnlineRobustPca(rows, options) {
    if (state.columns == 0) return;
    columns_ = state.columns;
    sigma_ = state.singular_values;
    const auto require = [](bool fits) {
        if (!fits) throw InvalidArgument("OnlineRobustPca: the sizes of the state do not fit each other");
    };
    require(columns_ > 0 && rank() <= options_.max_rank);
    allocate(ctx);
    const auto load = [&]<class X>(const Matrix<X>& from, MatrixView<X, D> to) {
        require(from.rows() == to.rows && from.cols() == to.cols);
        start_copy_from_host<X, D>(ctx, from.view(), to);
    };
    load(state.basis, U_.view().col_block({0, rank()}));
    if (columns_ < options_.start) load(state.first, first_.view().col_block({0, columns_}));
    load(state.last, last_.view());
    load(state.size, size_.view());
    load(state.change, change_.view());
    load(state.noise, noise_.view());
    load(state.age, age_.view());
    load(state.votes, votes_.view());
    finish_copies(ctx);
    ctx.wait();
}

template <class T, class D>
typename OnlineRobustPca<T, D>::State OnlineRobustPca<T, D>::state(Context<D>& ctx) const {
    if (columns_ == 0) return {};
    const auto copied = [&]<class X>(MatrixView<const X, D> A) { return host_copy_of<X, D>(ctx, A); };
    const Index first = columns_ < options_.start ? columns_ : 0;
    return {columns_,
            sigma_,
            copied(basis()),
            copied(first_.view().block({0, first > 0 ? rows_ : 0}, {0, first})),
            copied(last_.view()),
            copied(size_.view()),
            copied(change_.view()),
            copied(noise_.view()),
            copied(age_.view()),
            copied(votes_.view())};
}

template <class T, class D>
void OnlineRobustPca<T, D>::next(Context<D>& ctx, ColumnOf<const T, D> m, ColumnOf<T, D> l, ColumnOf<T, D> s) {
    const MatrixView<const T, D> of_m = view_of(m);
    const MatrixView<T, D> of_l = view_of(l), of_s = view_of(s);
    if (of_m.rows != rows_ || of_l.rows != rows_ || of_s.rows != rows_) {
        throw InvalidArgument(fmt::format("columns have {} entries, and m, l and s have {}, {} and {}", rows_,
                                          of_m.rows, of_l.rows, of_s.rows));
    }
    take(ctx, of_m, of_l, of_s);
}

template <class T, class D>
void OnlineRobustPca<T, D>::next_frame(Context<D>& ctx, std::span<const std::uint8_t> m, std::span<std::uint8_t> l,
                                       std::span<std::uint8_t> s) {
    const auto n = static_cast<std::size_t>(rows_);
    if (m.size() != n || (!l.empty() && l.size() != n) || (!s.empty() && s.size() != n)) {
        throw InvalidArgument(fmt::format("frames have {} bytes, and m, l and s have {}, {} and {}", rows_, m.size(),
                                          l.size(), s.size()));
    }
    for (Matrix<T, D>* column : {&m_, &l_, &s_}) {
        if (column->rows() == 0) *column = Matrix<T, D>(ctx, rows_, 1);
    }
    column_of_bytes<T>(ctx, m, m_.view());
    take(ctx, m_.view(), l_.view(), s_.view());
    if (!l.empty()) bytes_of_column<T>(ctx, l_.view(), l);
    if (!s.empty()) bytes_of_column<T>(ctx, s_.view(), s);
}

template <class T, class D>
void OnlineRobustPca<T, D>::take(Context<D>& ctx, MatrixView<const T, D> m, MatrixView<T, D> l, MatrixView<T, D> s) {
    throw_if_stopped(ctx);
    if (U_.rows() == 0) allocate(ctx);
    const Index t = columns_ + 1;
    const auto refuse = [](Index row) { throw NonFiniteEntry(row, 0, "the column"); };
    Matrix<int, D> exponents(ctx, 1, 1);
    Matrix<Scan, D> found(ctx, 1, 1);
    scan<T>(ctx, m, largest_exponent<T>(rows_), exponents.view(), found.view());
    const RowRecords<T, D> rows = records();
    if (t <= options_.start) {
        const Scan first = read_scan(ctx, View<const Scan, D>(found.view()));
        if (first.bad_row >= 0) refuse(first.bad_row);
        if (first.scaled && host_copy_of<int, D>(ctx, exponents.view())(0, 0) > 0) refuse_size<T>(rows_);
        copy<T>(ctx, m, first_.view().col_block({t - 1, t}));
        if (t == 1) {
            const auto guess = static_cast<float>(options_.threshold / 4);
            const double norm = start_from_column<T>(ctx, m, guess, U_.view().col_block({0, 1}), rows);
            sigma_.clear();
            if (norm > 0) sigma_.push_back(norm);
        } else if (t == options_.start || (t >= min_start && (t & (t - 1)) == 0)) {
            begin(ctx, t);
        }
    }

    const Index r = rank();
    const EntryRules rules = rules_of(options_, t);
    const MatrixView<const T, D> U = basis();
    const MatrixView<T, D> e = U_.view().col_block({r, r + 1});
    const MatrixView<double, D> numbers = numbers_.view(), c = numbers.row_block({FirstOfC, FirstOfC + r});
    // c = Uᵀ(m − s), alternately with s = shrink(m − U c, τ) and at last s = m − U c where that is above τ, which
    // leaves no bias; m − U c less its shrinkage is m − U c clipped to ±τ
    project_column<T>(ctx, U, m, c);
    for (int step = 1; step <= projection_steps; ++step) {
        refine_projection<T>(ctx, U, m, noise_.view(), rules, step == projection_steps, e, c);
    }
    separate_column<T>(ctx, U_.view().col_block({0, r}), c, m, rules, found.view(), rows, l, s, e, numbers);
    // if more of a column differs, the scene or its light has changed
    take_whole_difference<T>(ctx, another_scene * static_cast<double>(rows_), last_.view(), numbers, e);
    remove_projection<T>(ctx, U, e, c, numbers);
    const std::vector<double> known = read_numbers<D>(ctx, numbers.row_block({0, FirstOfC + r}));
    if (known[BadRow] >= 0) refuse(static_cast<Index>(known[BadRow]));
    // a later column may be too large, too
    if (!std::all_of(known.begin(), known.end(), [](double x) { return std::isfinite(x); })) refuse_size<T>(rows_);
    columns_ = t;
    if (t > 1)
        update(ctx, std::span(known).subspan(FirstOfC), std::sqrt(known[LeftSquares]), std::sqrt(known[NoiseSquares]));
    if (t >= options_.start) first_ = {};
    if (t % renewal == 0 || known[ReplacedCount] > 0) orthonormalize(ctx);
}

/// Starts from the median of the columns so far. If its residual has one main direction, starts from the L of their
/// pursuit instead.
template <class T, class D>
void OnlineRobustPca<T, D>::begin(Context<D>& ctx, Index t) {
    if (begin_with_median(ctx, t) > max_direction) begin_with_pursuit(ctx, t);
}

/// Sets U to the median of each row, normalised, and the quantiles from r = m − median. If t is `options.start`,
/// returns the share of R in one direction, ‖R‖₂²/‖R‖_F², otherwise 0. R is every r in units of its noise, clipped to
/// ±3, in about 2¹² evenly spaced rows.
template <class T, class D>
double OnlineRobustPca<T, D>::begin_with_median(Context<D>& ctx, Index t) {
    const Index step = std::max<Index>(1, rows_ / max_rows);
    Matrix<T, D> R(ctx, (rows_ + step - 1) / step, t);
    const MatrixView<T, D> u = U_.view().col_block({0, 1});
    const double norm = std::sqrt(start_from_median<T>(ctx, first_.view().col_block({0, t}), rules_of(options_, t),
                                                       step, u, records(), R.view()));
    sigma_.clear();
    if (norm > 0) sigma_.push_back(norm * std::sqrt(static_cast<double>(t)));
    scaled_copy<T>(ctx, norm > 0 ? 1 / norm : 0, u, u);
    if (t < options_.start) return 0;
    const double squares = entry_norms<T>(ctx, R.view()).squares;
    if (squares == 0) return 0;
    const auto largest = static_cast<double>(svd<T, D>(ctx, R.view(), /*vectors=*/false).s[0]);
    return largest * largest / squares;
}

/// Runs a pursuit of all columns so far, and sets U and σ from the SVD of its L.
template <class T, class D>
void OnlineRobustPca<T, D>::begin_with_pursuit(Context<D>& ctx, Index t) {
    const MatrixView<const T, D> M = first_.view().col_block({0, t});
    RobustPcaOptions<T, D> options;
    options.tolerance = 1e-4;
    const RobustPca<T, D> f = robust_pca<T, D>(ctx, M, options);
    const SVD<T, D> svd_of = svd<T, D>(ctx, f.L.view());
    // A vector on few of the rows is motion; the vectors of a background are spread out.
    const std::vector<double> fourth = fourth_powers<T>(ctx, svd_of.U.view());
    Matrix<T, D> Vt(ctx, options_.max_rank, t);
    sigma_.clear();
    for (Index k = 0; k < svd_of.U.cols() && rank() < options_.max_rank; ++k) {
        const T value = svd_of.s[static_cast<std::size_t>(k)];
        if (!(value > T(0))) break;
        if (static_cast<double>(rows_) * fourth[static_cast<std::size_t>(k)] > max_kurtosis) continue;
        const Range to{rank(), rank() + 1};
        copy<T>(ctx, svd_of.U.view().col_block({k, k + 1}), U_.view().col_block(to));
        copy<T>(ctx, svd_of.Vt.view().row_block({k, k + 1}), Vt.view().row_block(to));
        sigma_.push_back(static_cast<double>(value));
    }
    start_from_factors<T>(ctx, M, scaled_basis(ctx).view(), Vt.view().row_block({0, rank()}), rules_of(options_, t),
                          records());
}

/// Updates U and σ by the SVD of [U p] [diag(βσ) c; 0 ρ] = [U diag(βσ)  U c + ρ p]. ρ p is the remaining e, in the
/// column after U, and ρ = `left`. `noise`: ‖z‖ of a column.
template <class T, class D>
void OnlineRobustPca<T, D>::update(Context<D>& ctx, std::span<const double> c, double left, double noise) {
    const Index r = rank();
    const double beta = std::sqrt(1 - options_.forget);
    Matrix<double> R(r + 1, r + 1);
    std::fill_n(R.data(), (r + 1) * (r + 1), 0.0);
    for (Index k = 0; k < r; ++k) {
        R(k, k) = beta * sigma_[static_cast<std::size_t>(k)];
        R(k, r) = c[static_cast<std::size_t>(k)];
    }
    R(r, r) = left;
    const SVD<double> f = svd<double>(host_context(ctx), R.view());
    // the largest singular value of noise in the remembered columns, and a margin
    const double remembered = options_.forget > 0 ? std::min(1 / options_.forget, double(columns_)) : double(columns_);
    const double explained = 1.5 * noise * (1 + std::sqrt(remembered / static_cast<double>(rows_)));
    Index kept = 1;
    while (kept < std::min(r + 1, options_.max_rank) && f.s[static_cast<std::size_t>(kept)] > explained) ++kept;
    // U := [U p] W
    Matrix<T> W(r + 1, kept);
    for (Index k = 0; k < kept; ++k) {
        for (Index j = 0; j < r; ++j) W(j, k) = static_cast<T>(f.U(j, k));
        W(r, k) = static_cast<T>(left > 0 ? f.U(r, k) / left : 0);
    }
    rotate_basis<T>(ctx, W.view(), U_.view().col_block({0, r + 1}));
    sigma_.assign(f.s.begin(), f.s.begin() + kept);
}

/// Makes U orthonormal: U diag(σ) = U' diag(σ') V'ᵀ, U := U', σ := σ'.
template <class T, class D>
void OnlineRobustPca<T, D>::orthonormalize(Context<D>& ctx) {
    const SVD<T, D> f = svd<T, D>(ctx, scaled_basis(ctx).view());
    copy<T>(ctx, f.U.view(), U_.view().col_block({0, rank()}));
    sigma_.assign(f.s.begin(), f.s.end());
}

/// Returns U diag(σ).
template <class T, class D>
Matrix<T, D> OnlineRobustPca<T, D>::scaled_basis(Context<D>& ctx) {
    Matrix<T, D> A(ctx, rows_, rank());
    for (Index k = 0; k < rank(); ++k) {
        scaled_copy<T>(ctx, sigma_[static_cast<std::size_t>(k)], basis().col_block({k, k + 1}),
                       A.view().col_block({k, k + 1}));
    }
    return A;
}

template <class T, class D>
RowRecords<T, D> OnlineRobustPca<T, D>::records() {
    return {last_.view(), size_.view(), change_.view(), noise_.view(), age_.view(), votes_.view()};
}

#define QUOIN_INSTANTIATE(T, D) template class OnlineRobustPca<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
