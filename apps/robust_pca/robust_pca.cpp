// Principal component pursuit: inexact ALM (Lin, Chen and Ma 2010) and alternating directions with constant μ.

#include "quoin/apps/robust_pca.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "algorithms/one_matrix/range_scaling.hpp"
#include "devices.hpp"
#include "robust_pca/pursuit.hpp"
#include "robust_pca/pursuit_iteration.hpp"
#include "robust_pca/tuning.hpp"

namespace quoin {
namespace {

/// Σ and Vᵀ of one iterate after the other, each found from the Vᵀ of the last.
template <class T, class D>
class RightSingular {
public:
    RightSingular(Context<D>& ctx, ThresholdRoute route, Index n) : s(n), Vt(ctx, n, n), route_(route) {
        set_identity<T>(ctx, 0, Vt.view());
    }
    void find(Context<D>& ctx, MatrixView<const T, D> X, SpectrumNeeds needs) {
        const Span span(ctx, "singular vectors");
        if (route_ == ThresholdRoute::Gram) return gram_eigenvectors<T>(ctx, X, needs, s, Vt.view());
        Matrix<T, D> R = triangle_by_trees(ctx, X);
        right_singular_vectors<T>(ctx, R.view(), needs, s, Vt.view());
    }
    std::vector<T> s;
    Matrix<T, D> Vt;

private:
    ThresholdRoute route_;
};

/// The passes over M, X, Y and S, where X lies in L. A device that `keeps_last_step` has the next X and S made in the
/// pass that corrects Y: seven matrices read or written an iteration and not twelve, for two more in memory.
template <class T, class D>
class Passes {
public:
    Passes(Context<D>& ctx, MatrixView<const T, D> M, MatrixView<const std::uint8_t, D> observed, RobustPca<T, D>& f)
        : ctx_(ctx), M_(M), observed_(observed), f_(f), sums_(ctx, 1, 2) {
        if constexpr (keeps_last_step) {
            next_X_ = Matrix<T, D>(ctx, M.rows, M.cols);
            next_S_ = Matrix<T, D>(ctx, M.rows, M.cols);
        }
    }
    /// S = shrink(M − L + Y/μ, λ/μ);  X = M − S + Y/μ
    void shrink(double mu) {
        shrink_sparse<T>(ctx_, M_, f_.Y.view(), observed_, mu, f_.lambda / mu, f_.L.view(), f_.S.view(), sums(now_));
    }
    /// L = X P;  Z = M − L − S;  Y += μ Z. The sums of this iteration. A stable pursuit has Y = 0, and μ = 0 here.
    PursuitSums correct(MatrixView<const T, D> P, double mu, double next_mu) {
        const Span span(ctx_, "L, Y and S");
        if constexpr (keeps_last_step) {
            update_multipliers_and_sparse<T>(ctx_, f_.L.view(), P, M_, f_.S.view(), observed_, mu, next_mu,
                                             f_.lambda / next_mu, f_.Y.view(), next_X_.view(), next_S_.view(),
                                             sums(now_), sums(1 - now_));
        } else {
            update_low_rank_and_multipliers<T>(ctx_, P, M_, f_.S.view(), observed_, mu, f_.L.view(), f_.Y.view(),
                                               sums(now_));
        }
        return read_sums(ctx_, sums(now_));
    }
    /// To the S and X of the next iteration.
    void go_on(double next_mu) {
        if constexpr (keeps_last_step) {
            std::swap(f_.L, next_X_);
            std::swap(f_.S, next_S_);
            now_ = 1 - now_;
        } else {
            shrink(next_mu);
        }
    }
    /// L in its place, for the P of the last iteration.
    void end(MatrixView<const T, D> P) {
        if constexpr (keeps_last_step) {
            multiply_right<T>(ctx_, f_.L.view(), P, next_X_.view());
            std::swap(f_.L, next_X_);
            ctx_.wait();
        }
    }

private:
    static constexpr bool keeps_last_step = PursuitTuning<D>::keeps_last_step;
    SumsView<D> sums(Index which) { return sums_.view().col_block({which, which + 1}); }

    Context<D>& ctx_;
    MatrixView<const T, D> M_;
    MatrixView<const std::uint8_t, D> observed_;
    RobustPca<T, D>& f_;
    Matrix<T, D> next_X_, next_S_;
    Matrix<PursuitSums, D> sums_;
    Index now_ = 0;
};

/// The steps of a pursuit of a matrix in memory (pursuit_iteration.hpp).
template <class T, class D>
class MatrixSteps {
public:
    MatrixSteps(Context<D>& ctx, MatrixView<const T, D> M, const RobustPcaOptions<T, D>& options, RobustPca<T, D>& f)
        : ctx_(ctx), M_(M), options_(options), f_(f), x_(ctx, f.route, M.cols), P_(ctx, M.cols, M.cols) {}

    Index rows() const { return M_.rows; }
    Index cols() const { return M_.cols; }
    void check() { throw_if_stopped(ctx_); }

    const std::vector<T>& spectrum_of_M(SpectrumNeeds needs) {
        return spectrum(needs);  // L is M before the first step
    }
    void start(double scale_of_Y, double mu) {
        if (options_.Y.data) {
            copy<T>(ctx_, options_.Y, f_.Y.view());
        } else if (scale_of_Y > 0) {
            scaled_copy<T>(ctx_, scale_of_Y, f_.L.view(), f_.Y.view());
        } else {
            set_zero(ctx_, f_.Y.view());
        }
        if (options_.L.data) {
            copy<T>(ctx_, options_.L, f_.L.view());
        } else {
            set_zero(ctx_, f_.L.view());
        }
        set_zero(ctx_, f_.S.view());
        passes_.emplace(ctx_, M_, options_.observed, f_);
        passes_->shrink(mu);
    }
    const std::vector<T>& spectrum(SpectrumNeeds needs) {
        x_.find(ctx_, f_.L.view(), needs);
        return x_.s;
    }
    PursuitSums correct(std::span<const T> weights, double mu, double next_mu) {
        const Range kept{0, static_cast<Index>(weights.size())};
        weighted_projector<T>(ctx_, x_.Vt.view().row_block(kept), weights, P_.view());
        return passes_->correct(P_.view(), options_.pursuit == Pursuit::Stable ? 0 : mu, next_mu);
    }
    void go_on(double next_mu) { passes_->go_on(next_mu); }
    void end() { passes_->end(P_.view()); }

private:
    Context<D>& ctx_;
    MatrixView<const T, D> M_;
    const RobustPcaOptions<T, D>& options_;
    RobustPca<T, D>& f_;
    RightSingular<T, D> x_;
    Matrix<T, D> P_;
    std::optional<Passes<T, D>> passes_;
};

/// For m >= n, and norms of M whose squares T holds. `known`: M with 0 in the entries that are not observed.
template <class T, class D>
RobustPca<T, D> pursue(Context<D>& ctx, MatrixView<const T, D> M, Matrix<T, D>&& known, const EntryNorms& norms,
                       const RobustPcaOptions<T, D>& options) {
    RobustPca<T, D> f;
    f.L = std::move(known);
    f.S = Matrix<T, D>(ctx, M.rows, M.cols);
    f.Y = Matrix<T, D>(ctx, M.rows, M.cols);
    f.lambda = lambda_of(options, M.rows, M.cols);
    f.route = route_in_use<D>(options.route);
    if (norms.squares == 0) {
        for (auto* matrix : {&f.L, &f.S, &f.Y}) set_zero(ctx, matrix->view());
        return f;
    }
    if (!std::isfinite(norms.squares)) throw InvalidArgument("M has an observed entry that is NaN or infinite");
    const auto start = std::chrono::steady_clock::now();
    MatrixSteps<T, D> steps(ctx, M, options, f);
    const PursuitOutcome outcome = iterate(steps, norms, options);
    steps.end();
    f.last = outcome.last;
    f.last.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    f.end = outcome.end;
    return f;
}

/// Range of the exponent of the largest entry of M. Within it T holds squares of sums and LAPACK scales nothing, so
/// that the parts of 2^e M are bitwise the parts of M times 2^e.
template <class T>
constexpr int safe_for_pursuit = Scalar<T>::safe_exponent / 2;

/// Runs a pursuit for any norms of M. M = L + S is 2^e times 2^-e M = 2^-e L + 2^-e S, with μ times 2^e and the same Y
/// and λ.
template <class T, class D>
RobustPca<T, D> pursue_in_range(Context<D>& ctx, MatrixView<const T, D> M, RobustPcaOptions<T, D> options) {
    Matrix<T, D> known(ctx, M.rows, M.cols);
    copy_observed<T>(ctx, M, options.observed, known.view());
    const EntryNorms norms = entry_norms<T>(ctx, known.view());
    const int e = range_exponent<T>(norms.largest, safe_for_pursuit<T>);
    if (e == 0) return pursue<T, D>(ctx, M, std::move(known), norms, options);

    scale_by_power<T, D>(ctx, -e, known.view(), known.view());
    const EntryNorms scaled_norms = entry_norms<T>(ctx, known.view());
    Matrix<T, D> scaled(ctx, M.rows, M.cols), L;
    copy<T>(ctx, known.view(), scaled.view());
    if (options.L.data) {
        L = scaled_by_power<T, D>(ctx, -e, options.L);
        options.L = L.view();
    }
    options.mu = std::ldexp(options.mu, e);
    options.noise = std::ldexp(options.noise, -e);
    const auto restore = [e](RobustPcaStep& step) {
        step.objective = std::ldexp(step.objective, e);
        step.mu = std::ldexp(step.mu, -e);
    };
    if (options.on_step) {
        options.on_step = [restore, told = std::move(options.on_step)](RobustPcaStep step) {
            restore(step);
            return told(step);
        };
    }
    RobustPca<T, D> f = pursue<T, D>(ctx, scaled.view(), std::move(known), scaled_norms, options);
    scale_by_power<T, D>(ctx, e, f.L.view(), f.L.view());
    scale_by_power<T, D>(ctx, e, f.S.view(), f.S.view());
    restore(f.last);
    return f;
}

}  // namespace

template <class T, class D>
RobustPca<T, D> robust_pca(Context<D>& ctx, MatrixView<const T, D> M, RobustPcaOptions<T, D> options) {
    check_options(M, options);
    if (!options.observed.data) require_finite<T, D>(ctx, M, "M");
    if (M.rows >= M.cols) return pursue_in_range<T, D>(ctx, M, options);
    const Matrix<T, D> Mt = transposed<T, D>(ctx, M);
    Matrix<T, D> Lt, Yt;
    Matrix<std::uint8_t, D> observed;
    if (options.L.data) Lt = transposed<T, D>(ctx, options.L);
    if (options.Y.data) Yt = transposed<T, D>(ctx, options.Y);
    if (options.observed.data) observed = transposed<std::uint8_t, D>(ctx, options.observed);
    if (options.L.data) options.L = Lt.view();
    if (options.Y.data) options.Y = Yt.view();
    if (options.observed.data) options.observed = observed.view();
    RobustPca<T, D> f = pursue_in_range<T, D>(ctx, Mt.view(), options);
    f.L = transposed<T, D>(ctx, f.L.view());
    f.S = transposed<T, D>(ctx, f.S.view());
    f.Y = transposed<T, D>(ctx, f.Y.view());
    return f;
}

template <class T, class D>
RobustPcaWindows<T, D>::RobustPcaWindows(Index rows, Index carried) : rows_(rows), carried_(carried) {
    check_window_sizes(rows, carried);
}

template <class T, class D>
MatrixView<T, D> RobustPcaWindows<T, D>::columns(Context<D>& ctx, Index count) {
    check_window_columns(count);
    const Index carried = background_.cols();
    if (M_.cols() < carried + count) {
        M_ = {};
        M_ = Matrix<T, D>(ctx, rows_, carried + count);
    }
    count_ = count;
    copy<T>(ctx, background_.view(), M_.view().col_block({0, carried}));
    return M_.view().col_block({carried, carried + count});
}

template <class T, class D>
auto RobustPcaWindows<T, D>::pursue(Context<D>& ctx, RobustPcaOptions<T, D> options) -> Window {
    check_window(count_ > 0, options);
    const Index carried = background_.cols(), n = carried + count_;
    Window window{robust_pca<T, D>(ctx, M_.view().col_block({0, n}), options), carried};
    count_ = 0;
    const Index kept = std::min(carried_, n);
    if (background_.cols() != kept) background_ = Matrix<T, D>(ctx, rows_, kept);
    for (Index i = 0; i < kept; ++i) {
        const Index j = carried_column(i, n, kept);
        copy<T>(ctx, window.parts.L.view().col_block({j, j + 1}), background_.view().col_block({i, i + 1}));
    }
    return window;
}

template <class T, class D>
void RobustPcaWindows<T, D>::set_background(Matrix<T, D> background) {
    if (background.cols() > carried_ || (background.cols() > 0 && background.rows() != rows_)) {
        throw InvalidArgument(fmt::format("a background of {} x {} does not fit windows of {} rows that carry {}",
                                          background.rows(), background.cols(), rows_, carried_));
    }
    background_ = std::move(background);
}

template <class T>
double noise_between_columns(MatrixView<const T> M) {
    constexpr double three_quarters_of_size = 1.1503493804;  // Φ⁻¹(7/8)
    constexpr Index max_rows = 1 << 16;
    const Index step = std::max<Index>(1, M.rows / max_rows);
    std::vector<T> changes;
    for (Index j = 1; j < M.cols; ++j) {
        for (Index i = 0; i < M.rows; i += step) changes.push_back(static_cast<T>(std::abs(M(i, j) - M(i, j - 1))));
    }
    if (changes.empty()) return 0;
    const auto at = changes.begin() + static_cast<std::ptrdiff_t>(3 * (changes.size() - 1) / 4);
    std::nth_element(changes.begin(), at, changes.end());
    return static_cast<double>(*at) / (std::sqrt(2.0) * three_quarters_of_size);
}
template double noise_between_columns<std::uint8_t>(MatrixView<const std::uint8_t>);
template double noise_between_columns<float>(MatrixView<const float>);
template double noise_between_columns<double>(MatrixView<const double>);

const char* to_string(Pursuit pursuit) {
    constexpr const char* names[] = {"alm", "alternating", "stable"};
    return names[static_cast<int>(pursuit)];
}

const char* to_string(ThresholdRoute route) {
    constexpr const char* names[] = {"auto", "qr", "gram"};
    return names[static_cast<int>(route)];
}

const char* to_string(PursuitEnd end) {
    constexpr const char* names[] = {"converged", "iteration-limit", "stopped", "stalled"};
    return names[static_cast<int>(end)];
}

#define QUOIN_INSTANTIATE(T, D)                                                                             \
    template RobustPca<T, D> robust_pca<T, D>(Context<D>&, MatrixView<const T, D>, RobustPcaOptions<T, D>); \
    template class RobustPcaWindows<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
