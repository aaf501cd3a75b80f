#include <algorithm>
#include <cmath>

#include "algorithms/shared/copies.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"
#include "lyapunov/segments.hpp"
#include "primitives/elements.hpp"
#include "primitives/triangles.hpp"
#include "quoin/apps/covariant_lyapunov.hpp"
#include "quoin/qr.hpp"
#include "quoin/svd.hpp"

namespace quoin {

namespace {

class CovariantRun {
public:
    CovariantRun(Context<Host>& ctx, TangentMap<>& system, const CovariantOptions& options)
        : ctx_(ctx),
          system_(system),
          options_(options),
          n_(system.dimension()),
          p_(checked_exponents(options.exponents, n_)) {
        require_at_least<Index>("steps_per_qr", options.steps_per_qr, 1);
        require_positive("time", options.time);
        require_at_least<Index>("block", options.block, 0);
        require_at_least<Index>("split", options.split, 0);
        if (options.split > p_)
            throw InvalidArgument(fmt::format("split must be at most the {} vectors, and is {}", p_, options.split));
        tau_ = static_cast<double>(options.steps_per_qr) * system.step();
        sampled_ = segments_of("time", options.time, tau_);
        aligned_ = segments_of("alignment", options.alignment, tau_);
        transient_ = segments_of("transient", options.transient, tau_);
        total_ = sampled_ + aligned_;
        const Index root = static_cast<Index>(std::ceil(std::sqrt(static_cast<double>(total_))));
        block_ = options.block > 0 ? options.block : root;
        Options qr_options = options.qr;
        qr_options.q = QForm::Explicit;
        plan_ = plan_qr<double>(ctx, n_, p_, qr_options);
    }

    CovariantLyapunov run() {
        std::vector<Frame> checkpoints;  // before segments 0, m, 2m, …
        std::vector<double> sums(static_cast<std::size_t>(p_), 0.);
        Frame frame = start();
        for (Index k = 0; k < total_; ++k) {
            if (k % block_ == 0) checkpoints.push_back({frame.x, copy_of<double, Host>(ctx_, frame.Q.view())});
            const Matrix<double> R = advance(frame, k);
            for (Index i = 0; i < p_; ++i) sums[static_cast<std::size_t>(i)] += std::log(std::abs(R(i, i)));
        }

        CovariantLyapunov result;
        result.segment = tau_;
        result.split = options_.split;
        if (result.split == 0) {
            const auto positive = [](double sum) { return sum > 0; };
            result.split = std::max<Index>(1, std::count_if(sums.begin(), sums.end(), positive));
        }
        result.local = Matrix<double>(p_, sampled_);
        result.least_angles = Matrix<double>(p_, p_);
        std::fill_n(result.least_angles.data(), p_ * p_, std::acos(0.));
        if (result.split < p_) result.angles.resize(static_cast<std::size_t>(sampled_));

        Matrix<double> C = any_triangle();
        for (Index b = static_cast<Index>(checkpoints.size()) - 1; b >= 0; --b) {
            std::vector<Frame> frames;
            std::vector<Matrix<double>> Rs;
            Frame& at = checkpoints[static_cast<std::size_t>(b)];
            for (Index k = b * block_; k < std::min((b + 1) * block_, total_); ++k) {
                Rs.push_back(advance(at, k));
                frames.push_back({at.x, k < sampled_ && options_.on_vectors ? copy_of<double, Host>(ctx_, at.Q.view())
                                                                            : Matrix<double>()});
            }
            for (Index k = b * block_ + static_cast<Index>(Rs.size()) - 1; k >= b * block_; --k) {
                const std::size_t i = static_cast<std::size_t>(k - b * block_);
                if (k < sampled_) {
                    measure_angles(C, k, result);
                    if (options_.on_vectors) show(frames[i], C, k);
                }
                go_back(Rs[i], C, k < sampled_ ? result.local.data() + k * p_ : nullptr);
            }
            checkpoints.pop_back();
        }
        for (Index i = 0; i < p_; ++i) {
            double sum = 0;
            for (Index k = 0; k < sampled_; ++k) sum += result.local(i, k);
            result.exponents.push_back(sum / static_cast<double>(sampled_));
        }
        return result;
    }

private:
    struct Frame {
        std::vector<double> x;
        Matrix<double> Q;
    };

    /// After the transient, and with vectors that have aligned.
    Frame start() {
        Frame frame{system_.initial_state(options_.seed), {}};
        for (Index k = 0; k < transient_; ++k) {
            throw_if_stopped(ctx_);
            system_.advance(ctx_, options_.steps_per_qr, frame.x, {});
            require_finite_state(frame.x, static_cast<double>(k + 1) * tau_, system_.step());
            tell_progress();
        }
        QR<double> f = qr<double>(ctx_, normal_matrix<double>(options_.seed + vectors_seed, n_, p_), plan_);
        frame.Q = std::move(f).take_q(ctx_);
        for (Index k = -aligned_; k < 0; ++k) advance(frame, k);
        return frame;
    }

    double time_of(Index k) const { return static_cast<double>(transient_ + aligned_ + k + 1) * tau_; }

    /// Segment k: x := Φᵏ(x), Z := DΦᵏ(x) Q = Q'R, Q := Q'; returns R.
    Matrix<double> advance(Frame& frame, Index k) {
        throw_if_stopped(ctx_);
        system_.advance(ctx_, options_.steps_per_qr, frame.x, frame.Q.view());
        require_finite_state(frame.x, time_of(k), system_.step());
        ThinQR<double> thin = qr<double>(ctx_, std::move(frame.Q), plan_).take_thin(ctx_);
        Matrix<double> R = std::move(thin.R);
        frame.Q = std::move(thin.Q);
        std::vector<double> norms(static_cast<std::size_t>(p_));
        column_norms<double>(ctx_, R.view(), norms);
        for (Index j = 0; j < p_; ++j) {
            const double r = std::abs(R(j, j)), norm = norms[static_cast<std::size_t>(j)];
            if (lacks_digits<double>(r, norm)) {
                throw NumericalBreakdown(
                    fmt::format("tangent vector {} at time {:.6g} keeps {:.1e} of its length after {} "
                                "steps: fewer steps per QR",
                                j + 1, time_of(k), r / norm, options_.steps_per_qr),
                    j);
            }
        }
        tell_progress();
        return R;
    }

    /// A segment is done. Segments after the start are run twice.
    void tell_progress() {
        ++done_;
        if (options_.progress)
            options_.progress(static_cast<double>(done_) / static_cast<double>(transient_ + aligned_ + 2 * total_));
    }

    Matrix<double> any_triangle() const {
        NormalNumbers normal(options_.seed + 0x7f4a7c159e3779b9u);
        Matrix<double> C(p_, p_);
        for (Index j = 0; j < p_; ++j) {
            for (Index i = 0; i < p_; ++i) C(i, j) = i < j ? normal() : i == j;
        }
        normalise(C);
        return C;
    }

    /// Columns to norm 1; returns their norms.
    std::vector<double> normalise(Matrix<double>& C) const {
        std::vector<double> norms(static_cast<std::size_t>(p_));
        column_norms<double>(ctx_, std::as_const(C).view(), norms);
        for (Index j = 0; j < p_; ++j) {
            for (Index i = 0; i <= j; ++i) C(i, j) /= norms[static_cast<std::size_t>(j)];
        }
        return norms;
    }

    /// C := R⁻¹ C D, and local_i := −log‖R⁻¹c_i‖/τ.
    void go_back(const Matrix<double>& R, Matrix<double>& C, double* local) const {
        solve_triangle<double>(ctx_, Triangle::Upper, Op::None, R.view(), C.view());
        const std::vector<double> norms = normalise(C);
        for (Index i = 0; local && i < p_; ++i) local[i] = -std::log(norms[static_cast<std::size_t>(i)]) / tau_;
    }

    void measure_angles(const Matrix<double>& C, Index k, CovariantLyapunov& result) const {
        for (Index j = 0; j < p_; ++j) {
            for (Index i = 0; i < j; ++i) {
                // the sine from the part of c_j across c_i: near 0 the cosine has no digits
                double cosine = 0, across = 0;
                for (Index l = 0; l <= i; ++l) cosine += C(l, i) * C(l, j);
                for (Index l = 0; l <= j; ++l) {
                    const double part = C(l, j) - (l <= i ? cosine * C(l, i) : 0);
                    across += part * part;
                }
                const double angle = std::atan2(std::sqrt(across), std::abs(cosine));
                result.least_angles(i, j) = result.least_angles(j, i) = std::min(angle, result.least_angles(i, j));
            }
        }
        const Index s = result.split, w = p_ - s;
        if (w == 0) return;
        // v_1 … v_s span the same space as e_1 … e_s. C(:, s:p) = [A; B] = W R', and the sine of the least angle is
        // σ_min of W's lower rows
        QR<double> f = qr<double>(ctx_, C.view().block({0, p_}, {s, p_}), Options{.q = QForm::Explicit});
        const Matrix<double> W = std::move(f).take_q(ctx_);
        const SVD<double> lower = svd<double>(ctx_, W.view().block({s, p_}, {0, w}), /*vectors=*/false);
        result.angles[static_cast<std::size_t>(k)] = std::asin(std::min(1., lower.s.back()));
    }

    /// Passes V = Q C to the caller.
    void show(const Frame& frame, const Matrix<double>& C, Index k) const {
        Matrix<double> V(n_, p_);
        for (Index j = 0; j < p_; ++j) {
            std::fill_n(V.data() + j * n_, n_, 0.);
            for (Index l = 0; l <= j; ++l) {
                for (Index i = 0; i < n_; ++i) V(i, j) += frame.Q(i, l) * C(l, j);
            }
        }
        options_.on_vectors(time_of(k), frame.x, std::as_const(V).view());
    }

    Context<Host>& ctx_;
    TangentMap<>& system_;
    const CovariantOptions& options_;
    Index n_, p_;
    double tau_ = 0;
    Index transient_ = 0, aligned_ = 0, sampled_ = 0, total_ = 0, block_ = 1, done_ = 0;  // segments
    Plan plan_;
};

}  // namespace

CovariantLyapunov covariant_lyapunov(Context<Host>& ctx, TangentMap<>& system, const CovariantOptions& options) {
    return CovariantRun(ctx, system, options).run();
}

Matrix<double> finite_time_exponents(const CovariantLyapunov& f, Index segments) {
    require_at_least<Index>("segments", segments, 1);
    const Index p = f.local.rows(), windows = f.local.cols() / segments;
    Matrix<double> means(p, windows);
    for (Index w = 0; w < windows; ++w) {
        for (Index i = 0; i < p; ++i) {
            double sum = 0;
            for (Index k = w * segments; k < (w + 1) * segments; ++k) sum += f.local(i, k);
            means(i, w) = sum / static_cast<double>(segments);
        }
    }
    return means;
}

}  // namespace quoin
