// Kuramoto-Sivashinsky's equation on a GPU: the host's ETDRK4 (etdrk4.hpp), with N by cuFFT at G points. A stage, for w
// columns:
//
//   U_k = (a_k − i b_k)/√2   →   u_g   →   f_g = u_g²/2 of the state, u_g w_g of a vector w   →   F_k,   N = −f_ξ:
//
//   (N_a, N_b) = q_k √2/G (Im F_k, Re F_k)
//
// and one kernel from F to the next argument of N and its U, in place: a thread an element. The state goes ahead by
// some steps and leaves u_g of each stage; then block after block of the vectors takes all of these steps. A block has
// one number of columns, the last one is filled with zeros: cuFFT may have other kernels for another number, and the
// bits of a vector must not depend on the others. 16 launches a step and block. Bound by memory, or by launches if
// there are few columns.

#include <algorithm>
#include <numbers>

#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/device.hpp"
#include "lyapunov/cuda/real_transforms.hpp"
#include "lyapunov/etdrk4.hpp"
#include "lyapunov/fourier_modes.hpp"
#include "lyapunov/same_system.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// Values of a block of vectors: fewer stay in the L2 cache from kernel to kernel, more share the launches.
constexpr Index block_values = Index(1) << 19;
/// Values of the state that are kept for the vectors.
constexpr Index kept_values = Index(1) << 22;

/// The least even number beyond 3M with no prime factor above 7: cuFFT has kernels for those.
Index transform_points(Index modes) {
    for (Index points = 3 * modes + 1;; ++points) {
        Index rest = points;
        for (const Index prime : {2, 3, 5, 7}) {
            while (rest % prime == 0) rest /= prime;
        }
        if (rest == 1 && points % 2 == 0) return points;
    }
}

/// Columns of a block: as few blocks of at most block_values as all 2M vectors need, and equal ones.
Index block_columns(Index modes, Index points) {
    const Index vectors = 2 * modes, most = std::max<Index>(1, block_values / points);
    const Index blocks = (vectors + most - 1) / most;
    return (vectors + blocks - 1) / blocks;
}

/// Columns on their way through a step.
template <class T>
struct Waves {
    Index modes, points, batch;
    Etdrk4<T> rule;
    double slope;              ///< q_k √2/G = slope k
    RealTransforms<T>& fft;    ///< of `batch` columns
    MatrixView<T, Cuda> V;     ///< 2M×w, w <= batch
    MatrixView<T, Cuda> rest;  ///< 2M×batch, as Etdrk4's, and `sum`
    MatrixView<T, Cuda> sum;
    Complex<T>* U;  ///< (G/2 + 1)×batch
    T* values;      ///< G×batch
};

template <class T>
__device__ Complex<T> harmonic(T a, T b) {
    constexpr T half = T(0.70710678118654752440);  // √½
    return {half * a, -half * b};
}

/// U := (a_k − i b_k)/√2 of V; zero beyond M, for k = 0 and in columns that V lacks.
template <class T>
void first_argument(Context<Cuda>& ctx, const Waves<T>& z) {
    const Index M = z.modes, rows = z.points / 2 + 1;
    const MatrixView<T, Cuda> V = z.V;
    Complex<T>* const U = z.U;
    for_each_element(ctx, rows, z.batch, [=] __device__(Index k, Index c) {
        const T* const v = V.data + c * V.ld + 2 * (k - 1);
        U[k + c * rows] = k > 0 && k <= M && c < V.cols ? harmonic(v[0], v[1]) : Complex<T>{0, 0};
    });
}

/// F, in U, becomes the U of the next argument.
template <int stage, class T>
void next_argument(Context<Cuda>& ctx, const Waves<T>& z) {
    const Index M = z.modes, n = 2 * M, rows = z.points / 2 + 1;
    const MatrixView<T, Cuda> V = z.V;
    T *const rest = z.rest.data, *const sum = z.sum.data;
    Complex<T>* const U = z.U;
    const Etdrk4<T> rule = z.rule;
    const double slope = z.slope;
    for_each_element(ctx, rows, V.cols, [=] __device__(Index k, Index c) {
        Complex<T> F = {0, 0};
        if (k > 0 && k <= M) {
            F = U[k + c * rows];
            const T q = static_cast<T>(slope * static_cast<double>(k));
            const Index i = 2 * (k - 1), at = i + c * n;
            T* const v = V.data + c * V.ld + i;
            const T a = rule.template next<stage>(i, q * F.y, v[0], rest[at], sum[at]);
            const T b = rule.template next<stage>(i + 1, q * F.x, v[1], rest[at + 1], sum[at + 1]);
            F = harmonic(a, b);
        }
        U[k + c * rows] = F;
    });
}

/// f := u²/2; u is left in `kept`, unless null.
template <class T>
void square(Context<Cuda>& ctx, Index points, double* values, T* kept) {
    for_each_element(ctx, points, 1, [=] __device__(Index g, Index) {
        const double u = values[g];
        if (kept) kept[g] = static_cast<T>(u);
        values[g] = u * u / 2;
    });
}

/// f := u w for every column w of the block.
template <class T>
void multiply(Context<Cuda>& ctx, Index points, Index cols, T* values, const T* u) {
    for_each_element(ctx, points, cols, [=] __device__(Index g, Index c) { values[g + c * points] *= u[g]; });
}

/// The four stages; product(stage) makes f of the values.
template <class T, class Product>
void take_step(Context<Cuda>& ctx, const Waves<T>& z, Product&& product) {
    const auto take_stage = [&]<int stage>() {
        z.fft.to_values(z.U, z.values);
        product(Index(stage));
        z.fft.to_coefficients(z.values, z.U);
        next_argument<stage>(ctx, z);
    };
    take_stage.template operator()<0>();
    take_stage.template operator()<1>();
    take_stage.template operator()<2>();
    take_stage.template operator()<3>();
}

template <class T>
class GpuKuramotoSivashinsky final : public SameSystem<T, Cuda> {
public:
    GpuKuramotoSivashinsky(Context<Cuda>& ctx, std::unique_ptr<TangentMap<>> system, double length)
        : SameSystem<T, Cuda>(std::move(system)),
          M_(this->dimension() / 2),
          G_(transform_points(M_)),
          batch_(block_columns(M_, G_)),
          slope_(wavenumber(length, 1) * std::numbers::sqrt2 / static_cast<double>(G_)),
          of_state_(G_, 1),
          of_vectors_(G_, batch_) {
        const std::vector<double> rates = kuramoto_sivashinsky_rates(length, M_);
        const Matrix<double> weights = etdrk4_weights(this->step(), rates);
        Matrix<T> rounded(weights.rows(), weights.cols());
        std::transform(weights.data(), weights.data() + 6 * weights.rows(), rounded.data(),
                       [](double weight) { return static_cast<T>(weight); });
        state_weights_ = copy_to_device<double>(ctx, weights.view());
        vector_weights_ = copy_to_device<T>(ctx, std::as_const(rounded).view());
    }

    bool set_step(double) override { return false; }  // the weights belong to the step

    void advance(Context<Cuda>& ctx, Index steps, std::span<double> x, MatrixView<T, Cuda> X) override {
        const Span span(ctx, "advance");
        Arena::Frame frame(ctx);
        const Index ahead = std::clamp<Index>(steps, 1, std::max<Index>(1, kept_values / (4 * G_)));
        T* const u = X.cols > 0 ? frame.take<T>(ahead * 4 * G_) : nullptr;
        const std::size_t bytes = std::max(of_state_.workspace_bytes(), of_vectors_.workspace_bytes());
        void* const workspace = frame.take<unsigned char>(static_cast<Index>(bytes));
        of_state_.set(ctx.stream(), workspace);
        of_vectors_.set(ctx.stream(), workspace);
        const Waves<double> state = waves(frame, {x.data(), 2 * M_, 1}, state_weights_, of_state_, 1);
        Waves<T> vectors = waves(frame, X, vector_weights_, of_vectors_, X.cols > 0 ? batch_ : 0);
        for (Index done = 0; done < steps; done += ahead) {
            const Index count = std::min(ahead, steps - done);
            const auto values_at = [&](Index s, Index stage) { return u ? u + (4 * s + stage) * G_ : nullptr; };
            first_argument(ctx, state);
            for (Index s = 0; s < count; ++s) {
                take_step(ctx, state, [&](Index stage) { square<T>(ctx, G_, state.values, values_at(s, stage)); });
            }
            for (Index first = 0; first < X.cols; first += batch_) {
                vectors.V = X.col_block({first, std::min(X.cols, first + batch_)});
                first_argument(ctx, vectors);
                for (Index s = 0; s < count; ++s) {
                    take_step(ctx, vectors, [&](Index stage) {
                        multiply<T>(ctx, G_, vectors.V.cols, vectors.values, values_at(s, stage));
                    });
                }
            }
        }
    }

private:
    template <class S>
    Waves<S> waves(Arena::Frame& frame, MatrixView<S, Cuda> V, const Matrix<S, Cuda>& weights, RealTransforms<S>& fft,
                   Index batch) const {
        const Index n = 2 * M_;
        return {M_,
                G_,
                batch,
                Etdrk4<S>(weights.data(), n),
                slope_,
                fft,
                V,
                frame.matrix<S>(n, batch),
                frame.matrix<S>(n, batch),
                frame.take<Complex<S>>((G_ / 2 + 1) * batch),
                frame.take<S>(G_ * batch)};
    }

    Index M_, G_, batch_;
    double slope_;
    RealTransforms<double> of_state_;
    RealTransforms<T> of_vectors_;
    Matrix<double, Cuda> state_weights_;
    Matrix<T, Cuda> vector_weights_;
};

}  // namespace

template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>& ctx, const KuramotoSivashinsky& s) {
    return std::make_unique<GpuKuramotoSivashinsky<T>>(ctx, tangent_map(s), s.length);
}

#define QUOIN_INSTANTIATE(T) \
    template std::unique_ptr<TangentMap<T, Cuda>> tangent_map<T>(Context<Cuda>&, const KuramotoSivashinsky&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
