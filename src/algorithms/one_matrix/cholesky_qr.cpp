// CholeskyQR2 (Yamamoto, Nakatsukasa, Yanagisawa, Fukaya 2015), also after a sketch; randomized CholeskyQR (Balabanov
// 2022; Higgins, Szyld, Boman, Yamazaki 2023); and CholeskyQR in mixed precision (Yamazaki, Tomov, Dongarra 2015),
// whose one pass suffices if the Gram matrix is known to much less than u. Every step decides on its device whether the
// next one may run. The host reads the decision once at the end, and once for a sketch.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/one_matrix/cholesky_qr.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// Steps of a chain, in order.
enum Step { First, Last };

/// The largest trace of Q₁ᵀQ₁ after a sketch, divided by n. Q₁ᵀQ₁ has the eigenvalues of ((S U)ᵀ(S U))⁻¹, U an
/// orthonormal basis of A's range: 4/9 to 4, with sum 4/3 n, for a good sketch S of 4n rows.
constexpr double max_sketched_trace = 2;

/// If columns depend on others, all are perturbed by δ = 8√n u of their norm. The rounding errors of a column in R and
/// in X := A R⁻¹ are about √n u, and equal columns have equal ones.
constexpr double perturbation_of_root = 8;
/// From this ratio of rows to columns on, the eigenvalues of GᵀG, G the perturbation, are well within the certificate's
/// bounds for Q₁: 1/8 at least and 2 in the mean.
constexpr Index perturbed_aspect = 8;

/// The steps of a chain, and their results. Q₁ takes A's place in Q1, or is not stored.
template <class T, class D>
class GramChain {
public:
    using Passes = CholeskyPasses<T, D>;

    GramChain(Context<D>& ctx, bool last, Index n, MatrixView<T, D> Q1, MatrixView<T, D> R, const NextStep<T, D>& next,
              const GramOverRanks<T, D>& over_ranks, MatrixView<Index, D> order = {})
        : ctx_(ctx),
          last_(last),
          n_(n),
          Q1_(Q1),
          R_(R),
          next_(next),
          over_ranks_(over_ranks),
          order_(order),
          state_(ctx, 1, 1) {}

    /// Runs CholeskyQR2, in one pass if that suffices.
    Passes of(InputView<T, D> A) {
        const OnePass one_pass(rows(A), n_, precision(A), Scalar<T>::u, order_.data);
        if (order_.data && !one_pass.proves_pivots()) return {};
        Matrix<S, D> first(ctx_, n_, n_);
        const auto R1 = first.view();
        // G = AᵀA. With an order G = PᵀAᵀA P, and A stands for A P from here on
        solve_and_gram<T>(ctx_, A, {}, {}, R1);
        if (order_.data) pivot_gram<T>(ctx_, R1, order_);
        throw_if_stopped(ctx_);
        factor(R1, one_pass.demands(), one_pass.is_tried() ? NextSum::GramIfRefused : NextSum::Gram);
        if (one_pass.is_tried()) {
            // Q = A R₁⁻¹, R = R₁; without the last pass: Q₁ = A, R₂ = R₁
            multiply_upper<S, T>(ctx_, {}, R1, R_, certificate());
            const Certificate found = conclude(A, R1, order_);
            if (is_through(found)) return certified(found, one_pass.departure(found), first);
            if (one_pass.allows_second(found)) write_certificate(ctx_, certificate(), {});
        }
        // Q₁ = A R₁⁻¹, G = Q₁ᵀQ₁
        Matrix<S, D> second(ctx_, n_, n_);
        const auto R2 = second.view();
        solve_and_gram<T>(ctx_, A, Factors{R1}, Q1_, R2, certificate(), order_);
        factor(R2, {.step = Last, .max_departure = max_final_departure}, NextSum::None);
        // R := R₂ R₁;  Q = Q₁ R₂⁻¹
        multiply_upper<S, T>(ctx_, R2, R1, R_, certificate());
        const Certificate found = conclude(Q1_, R2);
        if (is_through(found)) return certified(found, found.departure, second);
        if (found.step == Last) return improved(found, R1);
        Passes passes;
        passes.column = found.column;
        if (found.reason == Certificate::Unusable) passes.state = Passes::State::Unusable;
        return passes;
    }

    /// Runs S A = P R₀, Q₁ = A R₀⁻¹, and one pass of CholeskyQR of Q₁. A column of zeros becomes some q_j times 0.
    Passes behind_sketch(MatrixView<const T, D> A) {
        Passes passes = behind_one_sketch(A);
        const bool is_zero = passes.state == Passes::State::Refused && passes.column >= 0;
        if (!is_zero || !perturbs(A) || over_ranks_.factor) return passes;
        Matrix<int, D> exponents(ctx_, n_, 1);
        if (A.data != Q1_.data) copy<T>(ctx_, A, Q1_);
        fill_zero_columns<T>(ctx_, 1 / std::sqrt(number(A.rows)), 0, Q1_, exponents.view());
        passes = behind_one_sketch(Q1_);
        // R(:, j) := 0, or A(:, j) again
        const bool refused = passes.state == Passes::State::Refused;
        scale_columns<T>(ctx_, exponents.view(), 1, Part::All, refused ? Q1_ : R_);
        if (!refused) passes.perturbed_condition = std::numeric_limits<double>::infinity();
        return passes;
    }

    /// Whether dependent columns are perturbed. Reflectors of exact zeros stay I.
    bool perturbs(InputView<T, D> A) {
        return Q1_.cols == n_ && !next_ && rows(A) >= std::max(perturbed_aspect * n_, sketch_rows(n_)) &&
               precision(A).solves_any_triangle;
    }

private:
    Passes behind_one_sketch(MatrixView<const T, D> A) {
        // if A has few rows, it is its own sketch
        const Index rows = over_ranks_.factor ? sketch_rows(n_) : std::min(A.rows, sketch_rows(n_));
        Matrix<S, D> zeroth(ctx_, n_, n_), first(ctx_, n_, n_), B(ctx_, rows, n_);
        const auto R0 = zeroth.view(), R1 = first.view();
        // B = S A = P R₀; A = Q₁ R₀ is accurate while κ(R₀D) u is O(1)
        sketch<T>(ctx_, A, over_ranks_.rank, B.view());
        const SketchDemands demands_of_sketch = sketch_demands(A);
        if (over_ranks_.factor_sketch) {
            over_ranks_.factor_sketch(B.view(), demands_of_sketch, R0, certificate());
        } else {
            factor_sketch<T, D>(ctx_, std::move(B), demands_of_sketch, R0, certificate());
        }
        throw_if_stopped(ctx_);
        const Certificate of_sketch = read_certificate(ctx_, certificate());
        if (of_sketch.refused()) {
            Passes passes;
            passes.column = of_sketch.column;
            return passes;
        }
        if (of_sketch.perturbed) {
            if (A.data != Q1_.data) copy<T>(ctx_, A, Q1_);
            A = Q1_;
            // A := A + δ W D⁻¹, wᵢⱼ = ±1/√m
            perturb<T>(ctx_, Perturbation::Signs,
                       demands_of_sketch.perturbation / std::sqrt(static_cast<double>(this->rows(A))), R0,
                       over_ranks_.rank, Q1_);
        }
        // Q₁ = A R₀⁻¹, G = Q₁ᵀQ₁
        solve_and_gram<T>(ctx_, A, Factors{R0}, Q1_, R1);
        GramDemands demands{.step = First,
                            .max_trace = max_sketched_trace * static_cast<double>(n_),
                            .min_eigenvalue = 1 / max_final_inverse_square};
        // a solve by halves needs κ
        if (!std::is_same_v<S, T>) demands.max_condition = std::numeric_limits<double>::max();
        factor(R1, demands, NextSum::None);
        // R := R₁ R₀;  Q = Q₁ R₁⁻¹
        multiply_upper<S, T>(ctx_, R1, R0, R_, certificate());
        const Certificate found = conclude(Q1_, R1);
        Passes passes = is_through(found) ? certified(found, found.departure, first) : improved(found, R0);
        passes.sketched = true;
        if (of_sketch.perturbed) passes.perturbed_condition = of_sketch.condition;
        return passes;
    }

    using S = Sum<T, D>;
    using Factors = std::array<MatrixView<const S, D>, 1>;

    CertificateView<D> certificate() { return state_.view(); }

    Index rows(InputView<T, D> A) const { return over_ranks_.factor ? over_ranks_.rows : A.rows; }
    GramPrecision precision(InputView<T, D> A) {
        GramPrecision known = gram_precision<T>(ctx_, rows(A), n_);
        known.longest_sum += over_ranks_.levels;
        return known;
    }

    SketchDemands sketch_demands(MatrixView<const T, D> A) {
        const GramPrecision known = precision(A);
        const double condition = 1 / known.solve_u, root = std::sqrt(static_cast<double>(n_));
        if (perturbs(A)) return {condition / (4 * root), perturbation_of_root * root * Scalar<T>::u};
        return {known.solves_any_triangle ? condition : condition / (4 * root), 0};
    }

    void factor(MatrixView<S, D> G, GramDemands demands, NextSum next) {
        if (over_ranks_.factor) return over_ranks_.factor(G, demands, certificate(), next);
        factor_gram<T>(ctx_, G, demands, G, certificate());
    }

    /// Concludes a chain after the last Cholesky factor Y. R is known, and B = Q Y, or B P for an `order`.
    Certificate conclude(InputView<T, D> B, MatrixView<const S, D> Y, MatrixView<const Index, D> order = {}) {
        if (!next_) request_certificate(ctx_, certificate());
        if (last_) solve_and_gram<T>(ctx_, B, Factors{Y}, Q1_, {}, certificate(), order);
        if (next_) next_(Y, certificate());
        return receive_certificate(ctx_, certificate());
    }

    /// Whether the chain went through, except perhaps for the next step.
    static bool is_through(const Certificate& found) { return !found.refused() || found.reason == Certificate::Growth; }

    Passes certified(const Certificate& found, double departure, Matrix<S, D>& Y) {
        Passes passes;
        passes.state = Passes::State::Certified;
        passes.next_refused = found.refused();
        passes.gram_departure = departure;
        if (!last_) passes.R2 = std::move(Y);
        return passes;
    }

    /// Returns the passes that end with A = Q₁ R.
    Passes improved(const Certificate& found, MatrixView<const S, D> R) {
        Passes passes;
        passes.state = Passes::State::Improved;
        passes.column = found.column;
        passes.gram_departure = found.departure;
        multiply_upper<S, T>(ctx_, {}, R, R_);
        return passes;
    }

    Context<D>& ctx_;
    bool last_;
    Index n_;
    MatrixView<T, D> Q1_, R_;
    const NextStep<T, D>& next_;
    const GramOverRanks<T, D>& over_ranks_;
    MatrixView<Index, D> order_;  // without data: no pivots
    Matrix<Certificate, D> state_;
};

/// Computes the triangle R of B = Q R.
template <class T, class D>
void triangle_of(Context<D>& ctx, Matrix<T, D>&& B, MatrixView<T, D> R) {
    const Index m = B.rows(), n = B.cols();
    const Plan plan =
        householder_plan(m, n, std::min(n, tuning_of(ctx).panel_width(m, n, scalar_kind<T>, Arithmetic::Native)));
    ReflectorForest<T, D> forest;
    lay_out_panels(ctx, plan, forest);
    forest.A = std::move(B);
    factor_blocked_householder(ctx, plan, forest.view());
    copy_triangle<T>(ctx, forest.A.view().row_block({0, n}), R);
}

}  // namespace

template <class T, class D>
void factor_sketch(Context<D>& ctx, Matrix<Sum<T, D>, D>&& B, SketchDemands demands, MatrixView<Sum<T, D>, D> R,
                   CertificateView<D> certificate) {
    using S = Sum<T, D>;
    triangle_of(ctx, std::move(B), R);
    const TriangleInspection seen = inspect_triangle<S>(ctx, R);
    Certificate state;
    if (seen.zero_column >= 0) {
        state.refuse(First, Certificate::Pivot, seen.zero_column);
    } else if (!(seen.scaled_condition <= demands.max_condition)) {
        if (demands.perturbation == 0) {
            state.refuse(First, Certificate::Condition, -1);
        } else {
            // [R; δD⁻¹] = Q R
            const Index n = R.cols;
            Matrix<S, D> stacked(ctx, 2 * n, n);
            set_zero(ctx, stacked.view());
            copy_triangle<S>(ctx, R, stacked.view().row_block({0, n}));
            perturb<S>(ctx, Perturbation::Identity, demands.perturbation, R, 0, stacked.view().row_block({n, 2 * n}));
            triangle_of(ctx, std::move(stacked), R);
            state.perturbed = true;
            state.condition = seen.scaled_condition;
        }
    }
    write_certificate(ctx, certificate, state);
}

template <class T, class D>
CholeskyPasses<T, D> cholesky_passes(Context<D>& ctx, CholeskyChain chain, bool last, InputView<T, D> A,
                                     MatrixView<T, D> Q1, MatrixView<T, D> R, const NextStep<T, D>& next,
                                     const GramOverRanks<T, D>& over_ranks, MatrixView<Index, D> order) {
    CholeskyPasses<T, D> passes;
    const Index n = A.cols;
    if (n == 0) {
        passes.state = CholeskyPasses<T, D>::State::Certified;
        passes.gram_departure = 0;
        return passes;
    }
    const Span span(ctx, "Gram passes");
    using State = typename CholeskyPasses<T, D>::State;
    GramChain<T, D> steps(ctx, last, n, Q1, R, next, over_ranks, order);
    if (chain == CholeskyChain::Sketched) return steps.behind_sketch(A.stored());
    passes = steps.of(A);
    if (chain == CholeskyChain::OfA || A.rows < Tuning<D>::sketch_aspect * n) return passes;
    const bool has_zeros = passes.state == State::Unusable && chain == CholeskyChain::SketchedIfRefusedOrZero;
    if (passes.state == State::Refused || (has_zeros && steps.perturbs(A))) return steps.behind_sketch(A.stored());
    if (passes.state == State::Improved && Q1.cols == n && !next) {
        // A = Q₁ R and Q₁ = Q R₂, so R := R₂ R
        Matrix<T, D> R2(ctx, n, n);
        auto others = GramChain<T, D>(ctx, last, n, Q1, R2.view(), next, over_ranks).behind_sketch(Q1);
        if (others.state == State::Refused) return passes;
        multiply_upper<T>(ctx, R2.view(), R, R);
        return others;
    }
    return passes;
}

#define QUOIN_INSTANTIATE(T, D)                                 \
    template decltype(factor_sketch<T, D>) factor_sketch<T, D>; \
    template decltype(cholesky_passes<T, D>) cholesky_passes<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
