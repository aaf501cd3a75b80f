// ‖I − QᵀQ‖_F and ‖A − QR‖_F / ‖A‖_F, measured with an error far below the rounding errors that they measure.
//
// Both are sums C + Σ XᵀY over tiles of h = 128 rows of X and Y (X = Y = Q, C = −I; X = Qᵀ, Y = R, C = −A) that cancel
// almost completely. In f32, tiles are converted and multiplied in double. In f64, each column of a tile is split,
// relative to its largest entry (Ozaki, Ogita, Oishi, Rump 2012),
//
//     x = x' + x'',    x' an integer of at most 23 bits times a power of two,    |x''| <= 2⁻²³ max|x|,
//     XᵀY = X'ᵀY' + X'ᵀY'' + X''ᵀY.
//
// X'ᵀY' is exact, whatever the BLAS's order of summation: 2·23 + 7 = 53 bits hold h products. It is added to the sum in
// compensated arithmetic (Knuth's two-sum). The other two products are 2²³ times smaller, and so are their errors: over
// all t tiles of the inner dimension at most
//
//     2 h^(3/2) 2⁻²³ u ‖x_i‖ ‖y_j‖  +  t √h 2⁻²² u ‖x_i‖ ‖y_j‖,
//
// that is 4e-4 u + 3e-6 t u for an entry of QᵀQ, and below k·u/10 for ‖I − QᵀQ‖_F with m = 4e6 rows.
//
// Tasks are fixed by the shape and their results are summed in one order, so the bits do not depend on the number of
// threads. The BLAS computes the products, not the kernels of the factorization, so no error of a kernel can cancel
// itself.

#include <cblas.h>
#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <vector>

#include "host/parallel.hpp"
#include "quoin/qr.hpp"

namespace quoin {
namespace {

constexpr Index tile = 128;
constexpr int slice_bits = 23;
constexpr Index tile_size = tile * tile;

Index tiles(Index n) { return (n + tile - 1) / tile; }

Range tile_range(Index t, Index n) { return {t * tile, std::min(n, (t + 1) * tile)}; }

/// A tile of up to 128×128 with leading dimension 128: X = slice + rest. f32 has no rest.
struct Operand {
    double* full;
    double* slice;
    double* rest;
};

/// One thread's workspace: two operands, their product, and the sum (+ carry) of such products.
struct Workspace {
    explicit Workspace(double* w)
        : X{w, w + tile_size, w + 2 * tile_size},
          Y{w + 3 * tile_size, w + 4 * tile_size, w + 5 * tile_size},
          product(w + 6 * tile_size),
          sum(w + 7 * tile_size),
          carry(w + 8 * tile_size) {}
    static constexpr Index size = 9 * tile_size;
    Operand X, Y;
    double *product, *sum, *carry;
};

template <class T>
void split(Operand& X, Index rows, Index cols) {
    if constexpr (std::is_same_v<T, float>) {
        X.slice = X.full;
        return;
    }
    for (Index j = 0; j < cols; ++j) {
        const double* x = X.full + j * tile;
        double* slice = X.slice + j * tile;
        double* rest = X.rest + j * tile;
        double largest = 0;
        for (Index i = 0; i < rows; ++i) largest = std::max(largest, std::abs(x[i]));
        int exponent;
        std::frexp(largest, &exponent);
        // ulp(sigma) = 2^(exponent − 23), so x + sigma − sigma rounds x to a multiple of it
        const double sigma = std::ldexp(1.5, exponent - slice_bits + 52);
        for (Index i = 0; i < rows; ++i) {
            slice[i] = (x[i] + sigma) - sigma;
            rest[i] = x[i] - slice[i];
        }
    }
}

/// X := scale · A(rows, cols), split.
template <class T>
void load(MatrixView<const T> A, double scale, Operand& X) {
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) X.full[i + j * tile] = scale * static_cast<double>(A(i, j));
    }
    split<T>(X, A.rows, A.cols);
}

/// X := Aᵀ, split.
template <class T>
void load_transposed(MatrixView<const T> A, Operand& X) {
    for (Index i = 0; i < A.rows; ++i) {
        for (Index j = 0; j < A.cols; ++j) X.full[j + i * tile] = static_cast<double>(A(i, j));
    }
    split<T>(X, A.cols, A.rows);
}

/// (sum + carry) += x without error (Knuth 1969).
void add_exactly(double x, double& sum, double& carry) {
    const double s = sum + x;
    const double x_part = s - sum;
    carry += (sum - (s - x_part)) + (x - x_part);
    sum = s;
}

/// (sum + carry) += XᵀY; X is k×m, Y k×n.
template <class T>
void accumulate(const Operand& X, const Operand& Y, Index m, Index n, Index k, double* product, double* sum,
                double* carry) {
    const auto gemm = [&](const double* A, const double* B, double beta, double* C) {
        cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
                    static_cast<int>(k), 1.0, A, tile, B, tile, beta, C, tile);
    };
    gemm(X.slice, Y.slice, 0.0, product);
    for (Index j = 0; j < n; ++j) {
        for (Index i = j * tile; i < j * tile + m; ++i) add_exactly(product[i], sum[i], carry[i]);
    }
    if constexpr (std::is_same_v<T, double>) {
        gemm(X.slice, Y.rest, 1.0, carry);
        gemm(X.rest, Y.full, 1.0, carry);
    }
}

/// body(task, workspace) for each task; `flops` is their sum. BLAS calls inside are sequential.
template <class Body>
void for_each_task(Context<Host>& ctx, double flops, Index tasks, Body body) {
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<double> workspaces(frame, ctx.threads(), Workspace::size);
    const host::Team team = host::team(ctx, flops);
    const int threads = team;
#pragma omp parallel num_threads(threads)
    {
        omp_set_num_threads(1);
        Workspace w(workspaces.mine());
#pragma omp for schedule(dynamic)
        for (Index task = 0; task < tasks; ++task) {
            if (!team.stopped()) body(task, w);
        }
    }
    team.throw_if_stopped();
}

template <class T>
double largest_entry(Context<Host>& ctx, MatrixView<const T> A) {
    double largest = 0;
    const int threads = host::team(ctx, 0, A.rows * A.cols);
#pragma omp parallel for num_threads(threads) reduction(max : largest) collapse(2)
    for (Index j = 0; j < A.cols; ++j) {
        for (Index t = 0; t < tiles(A.rows); ++t) {
            const Range r = tile_range(t, A.rows);
            for (Index i = r.begin; i < r.end; ++i) largest = std::max(largest, std::abs(static_cast<double>(A(i, j))));
        }
    }
    return largest;
}

template <class T>
bool is_zero(MatrixView<const T> A) {
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) {
            if (A(i, j) != 0) return false;
        }
    }
    return true;
}

}  // namespace

template <class T>
double orthogonality(Context<Host>& ctx, MatrixView<const T, Host> Q) {
    const Index m = Q.rows, n = Q.cols;
    const Index blocks = tiles(n), row_tiles = tiles(m);
    if (n == 0) return 0;

    // block pairs (J, K), J <= K, of QᵀQ, each summed over `chunks` chunks of rows
    std::vector<std::pair<Index, Index>> pairs;
    for (Index K = 0; K < blocks; ++K) {
        for (Index J = 0; J <= K; ++J) pairs.emplace_back(J, K);
    }
    const Index enough_tasks = 128;
    const Index num_pairs = static_cast<Index>(pairs.size());
    const Index chunks = std::clamp<Index>(enough_tasks / num_pairs, 1, std::max<Index>(1, row_tiles));

    Matrix<double> sums(tile_size, num_pairs * chunks), carries(tile_size, num_pairs * chunks);
    for_each_task(ctx, 3.0 * m * n * n, num_pairs * chunks, [&](Index task, Workspace& w) {
        const auto [J, K] = pairs[task / chunks];
        const Index chunk = task % chunks;
        const Range cols_J = tile_range(J, n), cols_K = tile_range(K, n);
        double* sum = &sums(0, task);
        double* carry = &carries(0, task);
        std::fill_n(sum, tile_size, 0.0);
        std::fill_n(carry, tile_size, 0.0);
        for (Index t = chunk * row_tiles / chunks; t < (chunk + 1) * row_tiles / chunks; ++t) {
            const Range rows = tile_range(t, m);
            load(Q.block(rows, cols_J), 1.0, w.X);
            if (J != K) load(Q.block(rows, cols_K), 1.0, w.Y);
            accumulate<T>(w.X, J == K ? w.X : w.Y, cols_J.size(), cols_K.size(), rows.size(), w.product, sum, carry);
        }
    });

    std::vector<double> squares(num_pairs);
    for_each_task(ctx, 10.0 * chunks * n * n, num_pairs, [&](Index pair, Workspace&) {
        const auto [J, K] = pairs[pair];
        double* sum = &sums(0, pair * chunks);
        double* carry = &carries(0, pair * chunks);
        for (Index chunk = 1; chunk < chunks; ++chunk) {
            for (Index i = 0; i < tile_size; ++i) {
                add_exactly(sums(i, pair * chunks + chunk), sum[i], carry[i]);
                carry[i] += carries(i, pair * chunks + chunk);
            }
        }
        for (Index j = 0; j < tile_range(K, n).size(); ++j) {
            for (Index i = 0; i < tile_range(J, n).size(); ++i) {
                if (J == K && i == j) add_exactly(-1.0, sum[i + j * tile], carry[i + j * tile]);
                const double entry = sum[i + j * tile] + carry[i + j * tile];
                // QᵀQ is symmetric: a block above the diagonal counts twice
                squares[pair] += (J == K ? 1 : 2) * entry * entry;
            }
        }
    });
    double square = 0;
    for (double s : squares) square += s;
    return std::sqrt(square);
}

template <class T>
double residual(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<const T, Host> Q,
                MatrixView<const T, Host> R) {
    if (Q.rows != A.rows || R.cols != A.cols || Q.cols != R.rows) {
        throw InvalidArgument(fmt::format("residual: A ({}x{}), Q ({}x{}) and R ({}x{}) do not fit together", A.rows,
                                          A.cols, Q.rows, Q.cols, R.rows, R.cols));
    }
    const Index m = A.rows, n = A.cols, k = Q.cols;
    const Index row_tiles = tiles(m), blocks = tiles(n);
    const Index tasks = row_tiles * blocks;

    // A and R are scaled by a power of two, lest a square overflow or vanish
    int exponent;
    std::frexp(std::max(largest_entry(ctx, A), largest_entry(ctx, R)), &exponent);
    const double scale = std::ldexp(1.0, -std::clamp(exponent, -1000, 1000));

    std::vector<double> squares_of_A(tasks), squares_of_E(tasks);
    for_each_task(ctx, 3.0 * m * n * k, tasks, [&](Index task, Workspace& w) {
        const Index J = task / row_tiles;
        const Range rows = tile_range(task % row_tiles, m), cols = tile_range(J, n);
        for (Index j = 0; j < cols.size(); ++j) {
            for (Index i = 0; i < rows.size(); ++i) {
                const double a = scale * static_cast<double>(A(rows.begin + i, cols.begin + j));
                w.sum[i + j * tile] = -a;
                w.carry[i + j * tile] = 0;
                squares_of_A[task] += a * a;
            }
        }
        for (Index L = 0; L < tiles(k); ++L) {
            const Range inner = tile_range(L, k);
            // below the diagonal R is zero, and a tile of zeros adds nothing
            if (L > J && is_zero(R.block(inner, cols))) continue;
            load_transposed(Q.block(rows, inner), w.X);
            load(R.block(inner, cols), scale, w.Y);
            accumulate<T>(w.X, w.Y, rows.size(), cols.size(), inner.size(), w.product, w.sum, w.carry);
        }
        for (Index j = 0; j < cols.size(); ++j) {
            for (Index i = 0; i < rows.size(); ++i) {
                const double entry = w.sum[i + j * tile] + w.carry[i + j * tile];
                squares_of_E[task] += entry * entry;
            }
        }
    });
    double square_of_A = 0, square_of_E = 0;
    for (Index task = 0; task < tasks; ++task) {
        square_of_A += squares_of_A[task];
        square_of_E += squares_of_E[task];
    }
    return square_of_A > 0 ? std::sqrt(square_of_E / square_of_A) : std::sqrt(square_of_E) / scale;
}

template double orthogonality<float>(Context<Host>&, MatrixView<const float, Host>);
template double orthogonality<double>(Context<Host>&, MatrixView<const double, Host>);
template double residual<float>(Context<Host>&, MatrixView<const float, Host>, MatrixView<const float, Host>,
                                MatrixView<const float, Host>);
template double residual<double>(Context<Host>&, MatrixView<const double, Host>, MatrixView<const double, Host>,
                                 MatrixView<const double, Host>);

}  // namespace quoin
