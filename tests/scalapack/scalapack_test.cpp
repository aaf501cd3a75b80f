// ScaLAPACK's names in libquoin_scalapack.so, in front of the system's ScaLAPACK, which tells the arguments and
// computes what is passed on.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/block_cyclic.hpp"

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int cols);
void Cblacs_gridinfo(int context, int* rows, int* cols, int* row, int* col);
void Cblacs_gridexit(int context);
#define QUOIN_DECLARE(T, p)                                                                                         \
    void p##geqrf_(const int*, const int*, T*, const int*, const int*, const int*, T*, T*, const int*, int*);       \
    void p##geqpf_(const int*, const int*, T*, const int*, const int*, const int*, int*, T*, T*, const int*, int*); \
    void p##orgqr_(const int*, const int*, const int*, T*, const int*, const int*, const int*, T*, T*, const int*,  \
                   int*);                                                                                           \
    void p##ormqr_(const char*, const char*, const int*, const int*, const int*, T*, const int*, const int*,        \
                   const int*, T*, T*, const int*, const int*, const int*, T*, const int*, int*, std::size_t,       \
                   std::size_t);                                                                                    \
    void p##gels_(const char*, const int*, const int*, const int*, T*, const int*, const int*, const int*, T*,      \
                  const int*, const int*, const int*, T*, const int*, int*, std::size_t);
QUOIN_DECLARE(float, ps)
QUOIN_DECLARE(double, pd)
#undef QUOIN_DECLARE
}

namespace quoin::test {
namespace {

template <class T>
struct Names;
template <>
struct Names<float> {
    static constexpr auto geqrf = psgeqrf_;
    static constexpr auto geqpf = psgeqpf_;
    static constexpr auto orgqr = psorgqr_;
    static constexpr auto ormqr = psormqr_;
    static constexpr auto gels = psgels_;
};
template <>
struct Names<double> {
    static constexpr auto geqrf = pdgeqrf_;
    static constexpr auto geqpf = pdgeqpf_;
    static constexpr auto orgqr = pdorgqr_;
    static constexpr auto ormqr = pdormqr_;
    static constexpr auto gels = pdgels_;
};

/// A BLACS grid of all processes.
struct Grid {
    explicit Grid(int rows_, const char* order = "Row") : rows(rows_) {
        int size = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        cols = size / rows;
        Cblacs_get(-1, 0, &context);
        Cblacs_gridinit(&context, order, rows, cols);
        Cblacs_gridinfo(context, &rows, &cols, &row, &col);
    }
    ~Grid() { Cblacs_gridexit(context); }
    Grid(const Grid&) = delete;
    int context = 0, rows, cols = 0, row = 0, col = 0;
};

/// Grids of all processes; ScaLAPACK numbers them by rows or by columns.
template <class F>
void on_grids(F f) {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int rows = 1; rows <= size; ++rows) {
        if (size % rows != 0) continue;
        for (const char* order : {"Row", "Col"}) {
            const Grid grid(rows, order);
            f(grid);
        }
    }
}

/// A matrix over a grid with its descriptor; the local part has padding below it.
template <class T>
struct OnGrid {
    OnGrid(const Grid& grid_, MatrixView<const T> A, int mb, int nb, int first_row = 0, int first_col = 0)
        : grid(grid_),
          rows{A.rows, mb, grid_.rows, first_row},
          cols{A.cols, nb, grid_.cols, first_col},
          local(rows.local_size(grid_.row), cols.local_size(grid_.col)) {
        for (Index j = 0; j < local.view().cols; ++j) {
            for (Index i = 0; i < local.view().rows; ++i)
                local.view()(i, j) = A(rows.global(grid.row, i), cols.global(grid.col, j));
        }
        desc = {1,         grid.context, static_cast<int>(A.rows),         static_cast<int>(A.cols), mb, nb,
                first_row, first_col,    static_cast<int>(local.view().ld)};
    }
    /// The whole matrix on every process.
    Matrix<T> whole() const {
        Matrix<T> A = filled<T>(rows.size, cols.size, T(0));
        for (Index j = 0; j < local.view().cols; ++j) {
            for (Index i = 0; i < local.view().rows; ++i)
                A(rows.global(grid.row, i), cols.global(grid.col, j)) = local.view()(i, j);
        }
        const auto type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
        MPI_Allreduce(MPI_IN_PLACE, A.data(), static_cast<int>(A.rows() * A.cols()), type, MPI_SUM, MPI_COMM_WORLD);
        return A;
    }
    const Grid& grid;
    CyclicAxis rows, cols;
    Padded<T> local;
    std::array<int, 9> desc;
};

/// call(work, lwork, info) with the workspace that it asks for; returns info.
template <class T, class Call>
int with_workspace(Call call) {
    T size = 0;
    int lwork = -1, info = -99;
    call(&size, &lwork, &info);
    EXPECT_EQ(info, 0);
    EXPECT_GE(size, 1);
    lwork = static_cast<int>(size);
    std::vector<T> work(static_cast<std::size_t>(lwork), std::numeric_limits<T>::quiet_NaN());
    info = -99;
    call(work.data(), &lwork, &info);
    EXPECT_GE(work[0], 1);
    return info;
}

template <class T>
Matrix<T> block_of(MatrixView<const T> A, Index i, Index j, Index m, Index n) {
    return copy<T>(A.block({i, i + m}, {j, j + n}));
}

/// Expects |r_kk| >= ‖R(k:c, c)‖ for k <= c, up to rounding.
template <class T>
void expect_greedy(MatrixView<const T> R, double rounding) {
    for (Index c = 0; c < R.cols; ++c) {
        double below = 0;
        for (Index r = std::min(c, R.rows - 1); r >= 0; --r) {
            below = std::hypot(below, static_cast<double>(R(r, c)));
            EXPECT_GE(std::abs(static_cast<double>(R(r, r))) + rounding, below) << r << ", " << c;
        }
    }
}

/// p?geqrf or p?geqpf, p?ormqr and p?orgqr of the m×n submatrix at (i, j), zero-based, and the law of what they leave.
template <class T>
void expect_law(const Grid& grid, MatrixView<const T> whole, Index i, Index j, Index m, Index n, int mb, int nb,
                bool is_pivoted = false) {
    SCOPED_TRACE(testing::Message() << grid.rows << 'x' << grid.cols << " processes, " << m << 'x' << n << " at " << i
                                    << ',' << j << " in blocks " << mb << 'x' << nb);
    const double bound = law * std::sqrt(2.0 + std::ceil(std::log2(grid.rows)));
    const Index k = std::min(m, n), p = 3;
    Matrix<T> A = block_of<T>(whole, i, j, m, n);
    OnGrid<T> a(grid, whole, mb, nb, grid.rows - 1, grid.cols / 2);
    std::vector<T> tau(static_cast<std::size_t>(a.local.view().cols) + 1, std::numeric_limits<T>::quiet_NaN());
    const int m_ = static_cast<int>(m), n_ = static_cast<int>(n), k_ = static_cast<int>(k), p_ = static_cast<int>(p);
    const int ia = static_cast<int>(i) + 1, ja = static_cast<int>(j) + 1, one = 1;
    std::vector<int> ipiv(tau.size(), -1);
    EXPECT_EQ(with_workspace<T>([&](T* work, int* lwork, int* info) {
                  if (is_pivoted) {
                      Names<T>::geqpf(&m_, &n_, a.local.view().data, &ia, &ja, a.desc.data(), ipiv.data(), tau.data(),
                                      work, lwork, info);
                  } else {
                      Names<T>::geqrf(&m_, &n_, a.local.view().data, &ia, &ja, a.desc.data(), tau.data(), work, lwork,
                                      info);
                  }
              }),
              0);
    EXPECT_TRUE(a.local.padding_intact());
    if (is_pivoted) {
        std::vector<int> order(static_cast<std::size_t>(n)), all(static_cast<std::size_t>(n));
        for (Index c = 0; c < a.local.view().cols; ++c) {
            const Index global = a.cols.global(grid.col, c) - j;
            if (global >= 0 && global < n) order[global] = ipiv[c];
        }
        MPI_Allreduce(MPI_IN_PLACE, order.data(), n_, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        std::vector<int> sorted = order;
        std::sort(sorted.begin(), sorted.end());
        std::iota(all.begin(), all.end(), ja);
        ASSERT_EQ(sorted, all);
        for (Index c = 0; c < n; ++c) std::copy_n(whole.at(i, order[c] - 1), m, A.view().at(0, c));
    }
    const Matrix<T> V_R = a.whole();
    Matrix<T> R = block_of<T>(V_R.view(), i, j, k, n);
    for (Index c = 0; c < n; ++c) {
        for (Index r = c + 1; r < k; ++r) R(r, c) = 0;
    }
    if (is_pivoted) {
        const double eta = std::numeric_limits<T>::denorm_min() * std::sqrt(static_cast<double>(m * n));
        expect_greedy<T>(R.view(),
                         bound * static_cast<double>(k) * (unit_roundoff<T> * frobenius_norm<T>(A.view()) + eta));
    }
    // what is not of the submatrix stays
    for (Index c = 0; c < whole.cols; ++c) {
        for (Index r = 0; r < whole.rows; ++r) {
            const bool inside = r >= i && r < i + m && c >= j && c < j + n;
            if (!inside) {
                ASSERT_EQ(V_R(r, c), whole(r, c));
            }
        }
    }
    // C := QᵀC, its rows in blocks like A's
    const Matrix<T> C = random_normal<T>(whole.rows, p, 7);
    OnGrid<T> c(grid, C.view(), mb, 2, grid.rows - 1);
    EXPECT_EQ(with_workspace<T>([&](T* work, int* lwork, int* info) {
                  Names<T>::ormqr("L", "T", &m_, &p_, &k_, a.local.view().data, &ia, &ja, a.desc.data(), tau.data(),
                                  c.local.view().data, &ia, &one, c.desc.data(), work, lwork, info, 1, 1);
              }),
              0);
    EXPECT_TRUE(c.local.padding_intact());
    const Matrix<T> all_QtC = c.whole(), QtC = block_of<T>(all_QtC.view(), i, 0, m, p);
    // the thin Q
    EXPECT_EQ(with_workspace<T>([&](T* work, int* lwork, int* info) {
                  Names<T>::orgqr(&m_, &k_, &k_, a.local.view().data, &ia, &ja, a.desc.data(), tau.data(), work, lwork,
                                  info);
              }),
              0);
    const Matrix<T> Q = block_of<T>(a.whole().view(), i, j, m, k);
    EXPECT_TRUE(is_finite<T>(Q.view()));
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), bound) << "‖I − QᵀQ‖";
    EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), bound) << "‖A − QR‖";
    const Matrix<T> Ci = block_of<T>(C.view(), i, 0, m, p), top = block_of<T>(QtC.view(), 0, 0, k, p);
    EXPECT_LE(difference<T>(top.view(), product<T>(transposed<T>(Q.view()).view(), Ci.view()).view(), k,
                            frobenius_norm<T>(Ci.view())),
              bound)
        << "QᵀC";
}

template <class T>
class ScalapackTest : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(ScalapackTest, Precisions);

TYPED_TEST(ScalapackTest, FactorsAnyShapeAndSubmatrix) {
    using T = TypeParam;
    on_grids([&](const Grid& grid) {
        const Matrix<T> A = random_normal<T>(60, 40, 5);
        expect_law<T>(grid, A.view(), 0, 0, 60, 40, 4, 4);
        expect_law<T>(grid, A.view(), 0, 0, 60, 40, 7, 3);
        expect_law<T>(grid, A.view(), 8, 12, 45, 20, 4, 4);
        expect_law<T>(grid, A.view(), 8, 12, 20, 28, 4, 4);
        // it does not begin with whole blocks: passed on
        expect_law<T>(grid, A.view(), 6, 6, 40, 21, 4, 4);
    });
}

TYPED_TEST(ScalapackTest, Gallery) {
    using T = TypeParam;
    on_grids([&](const Grid& grid) {
        for (const Gallery matrix_class : gallery()) {
            SCOPED_TRACE(to_string(matrix_class));
            expect_law<T>(grid, generate<T>(matrix_class, 37, 18).view(), 0, 0, 37, 18, 5, 4);
        }
    });
}

TYPED_TEST(ScalapackTest, PivotsAnyShapeAndSubmatrix) {
    using T = TypeParam;
    on_grids([&](const Grid& grid) {
        const Matrix<T> A = random_normal<T>(60, 40, 5);
        expect_law<T>(grid, A.view(), 0, 0, 60, 40, 7, 3, true);
        expect_law<T>(grid, A.view(), 8, 12, 45, 20, 4, 4, true);
        expect_law<T>(grid, A.view(), 8, 12, 20, 28, 4, 4, true);
        // passed on
        expect_law<T>(grid, A.view(), 6, 6, 40, 21, 4, 4, true);
        for (const Gallery matrix_class : gallery()) {
            SCOPED_TRACE(to_string(matrix_class));
            expect_law<T>(grid, generate<T>(matrix_class, 37, 18).view(), 0, 0, 37, 18, 5, 4, true);
        }
    });
}

TYPED_TEST(ScalapackTest, SolvesLeastSquaresAndPassesTransposesOn) {
    using T = TypeParam;
    on_grids([&](const Grid& grid) {
        const int m = 40, n = 13, p = 3, one = 1;
        const Matrix<T> A = with_condition<T>(m, n, 100), B = random_normal<T>(m, p, 4);
        OnGrid<T> a(grid, A.view(), 4, 4), b(grid, B.view(), 4, 2);
        EXPECT_EQ(with_workspace<T>([&](T* work, int* lwork, int* info) {
                      Names<T>::gels("N", &m, &n, &p, a.local.view().data, &one, &one, a.desc.data(),
                                     b.local.view().data, &one, &one, b.desc.data(), work, lwork, info, 1);
                  }),
                  0);
        EXPECT_TRUE(a.local.padding_intact() && b.local.padding_intact());
        const Matrix<T> X = b.whole();
        const auto X1 = X.view().row_block({0, n});
        Matrix<T> rest = product<T>(A.view(), X1);
        for (Index l = 0; l < m * p; ++l) rest.data()[l] = B.data()[l] - rest.data()[l];
        // Aᵀ(B − AX) of a backward stable solution: at most c k u ‖A‖ (‖B‖ + ‖A‖‖X‖) (Higham 2002, section 20.3)
        const Matrix<T> gradient = product<T>(transposed<T>(A.view()).view(), rest.view());
        const double norm = frobenius_norm<T>(A.view());
        const double scale = norm * (frobenius_norm<T>(B.view()) + norm * frobenius_norm<T>(X1));
        EXPECT_LE(difference<T>(gradient.view(), filled<T>(n, p, T(0)).view(), n, scale), 2 * law);
        // AᵀY = C of least norm: AᵀY − C is at most c k u (‖A‖‖Y‖ + ‖C‖)
        const Matrix<T> C = random_normal<T>(m, p, 6);
        OnGrid<T> a2(grid, A.view(), 4, 4), c(grid, C.view(), 4, 2);
        EXPECT_EQ(with_workspace<T>([&](T* work, int* lwork, int* info) {
                      Names<T>::gels("T", &m, &n, &p, a2.local.view().data, &one, &one, a2.desc.data(),
                                     c.local.view().data, &one, &one, c.desc.data(), work, lwork, info, 1);
                  }),
                  0);
        const Matrix<T> Y = c.whole(), AtY = product<T>(transposed<T>(A.view()).view(), Y.view());
        EXPECT_LE(difference<T>(AtY.view(), C.view().row_block({0, n}), n,
                                norm * frobenius_norm<T>(Y.view()) + frobenius_norm<T>(C.view())),
                  2 * law);
    });
}

TYPED_TEST(ScalapackTest, ReportsIllegalArgumentsAsScalapackDoes) {
    using T = TypeParam;
    const Grid grid(1);
    OnGrid<T> a(grid, random_normal<T>(12, 8).view(), 4, 4);
    std::vector<T> tau(9), work(1000);
    const int n = 8, minus = -1, one = 1, beyond = 13, lwork = 1000, little = 1;
    const auto geqrf = [&](const int* rows, const int* cols, const int* length) {
        int info = -99;
        Names<T>::geqrf(rows, cols, a.local.view().data, &one, &one, a.desc.data(), tau.data(), work.data(), length,
                        &info);
        return info;
    };
    EXPECT_EQ(geqrf(&minus, &n, &lwork), -1);
    EXPECT_EQ(geqrf(&n, &minus, &lwork), -2);
    EXPECT_LT(geqrf(&beyond, &n, &lwork), 0);
    EXPECT_EQ(geqrf(&n, &n, &little), -9);
    const int zero = 0;
    EXPECT_EQ(geqrf(&zero, &n, &lwork), 0);
    // NaN goes through, as the reference lets it
    if (grid.col == 0) a.local.view()(0, 0) = std::numeric_limits<T>::quiet_NaN();
    EXPECT_EQ(geqrf(&n, &n, &lwork), 0);
    EXPECT_TRUE(std::isnan(a.whole()(0, 0)));
}

}  // namespace
}  // namespace quoin::test
