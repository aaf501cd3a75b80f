// The primitives of the host and the kernels that this process has chosen, entry by entry against plain loops in higher
// precision, at the edges of their blocks: whoever drops a row or a column there is found by its name.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "host/parallel.hpp"
#include "quoin/qr.hpp"
#include "quoin/svd.hpp"

namespace quoin::test {
namespace {

using namespace host;

/// Additions in a row in a sum over rows: a chain, the runs and blocks of a chunk, lanes and chunks in pairs, and a few
/// roundings that are none.
constexpr double additions = longest_chain + 64;

/// b − 1, b, b + 1.
std::array<Index, 3> around(Index b) { return {b - 1, b, b + 1}; }

template <class... Sizes>
std::vector<Index> edges(Sizes... blocks) {
    std::vector<Index> sizes = {1, 2};
    for (Index b : {Index(blocks)...}) {
        for (Index size : around(b)) sizes.push_back(size);
    }
    return sizes;
}

template <class T>
class HostPrimitives : public testing::Test {
protected:
    using W = Wide<T>;
    Context<Host> ctx{3};

    /// |X − S| <= additions·u·M entry by entry, S and M sums of terms and of their magnitudes; NaN elsewhere survives.
    template <class Term>
    void expect_sums(const Padded<T>& X, Index terms, const char* what, Term term) {
        EXPECT_TRUE(X.padding_intact()) << what;
        const auto view = X.view();
        for (Index j = 0; j < view.cols; ++j) {
            for (Index i = 0; i < view.rows; ++i) {
                W sum = 0, magnitudes = 0;
                for (Index l = 0; l < terms; ++l) {
                    const W t = term(i, j, l);
                    sum += t;
                    magnitudes += std::abs(t);
                }
                const W error = std::abs(static_cast<W>(view(i, j)) - sum);
                ASSERT_LE(error, static_cast<W>(additions * unit_roundoff<T>) * magnitudes)
                    << what << " (" << i << ", " << j << ") of " << shape_name(view.rows, view.cols) << ", " << terms
                    << " terms";
            }
        }
    }
    static std::string shape_name(Index m, Index n) { return std::to_string(m) + "x" + std::to_string(n); }
};
TYPED_TEST_SUITE(HostPrimitives, Scalars);

TYPED_TEST(HostPrimitives, Products) {
    using T = TypeParam;
    using W = Wide<T>;
    const auto& K = kernels<T>();
    // rows at the edges of vectors, runs and blocks; columns at the edges of every tile
    std::vector<Index> rows = edges(4, 8, 16, 32, longest_chain * 4, longest_chain * 16, block_rows<T>);
    for (Index k : rows) {
        for (auto [m, n] : {std::pair<Index, Index>{1, 1}, {3, 4}, {4, 6}, {5, 9}, {2, 3}, {9, 5}}) {
            const Padded<T> A(random_normal<T>(k, m, 1).view()), B(random_normal<T>(k, n, 2).view());
            const Matrix<T> C0 = random_normal<T>(m, n, 3);
            Padded<T> C(C0.view());
            const auto a = A.view(), b = B.view();
            K.inner(m, n, k, a.data, a.ld, b.data, b.ld, C.view().data, C.view().ld);
            this->expect_sums(C, k + 1, "inner", [&](Index i, Index j, Index l) -> W {
                return l == k ? W(C0(i, j)) : W(a(l, i)) * W(b(l, j));
            });
        }
        // C (k×n) −= A (k×m) B: lanes along the long dimension
        for (auto [m, n] : {std::pair<Index, Index>{1, 1}, {3, 4}, {7, 8}, {8, 9}, {2, 17}}) {
            const Padded<T> A(random_normal<T>(k, m, 1).view()), B(random_normal<T>(m, n, 2).view());
            const Matrix<T> C0 = random_normal<T>(k, n, 3);
            Padded<T> C(C0.view());
            const auto a = A.view(), b = B.view();
            K.outer(k, n, m, a.data, a.ld, b.data, b.ld, C.view().data, C.view().ld);
            this->expect_sums(C, m + 1, "outer", [&, m = m](Index i, Index j, Index l) -> W {
                return l == m ? W(C0(i, j)) : -W(a(i, l)) * W(b(l, j));
            });
        }
    }
    for (Index n : {1, 5, 13}) {
        const Padded<T> A(random_normal<T>(301, n, 1).view());
        Matrix<T> C = filled<T>(n, n, 0);
        K.inner_upper(n, 301, A.view().data, A.view().ld, C.data(), n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = j + 1; i < n; ++i) {  // below the diagonal anything may stand
                W sum = 0;
                for (Index l = 0; l < 301; ++l) sum += W(A.view()(l, i)) * W(A.view()(l, j));
                C(i, j) = static_cast<T>(sum);
            }
        }
        this->expect_sums(Padded<T>(C.view()), 301, "inner_upper",
                          [&](Index i, Index j, Index l) -> W { return W(A.view()(l, i)) * W(A.view()(l, j)); });
    }
}

/// X R = A for X = A R⁻¹, whose sums have at most n terms; and G = XᵀX of the X that is there.
TYPED_TEST(HostPrimitives, SolveAndGram) {
    using T = TypeParam;
    using W = Wide<T>;
    using Factors = std::array<MatrixView<const T>, 1>;
    const Index chunk = RowChunks(1, 1).chunk_rows;
    // threads share the columns of two chunks, in place and from copies: the second's columns lie a few bytes from a
    // page apart
    std::vector<std::pair<Index, Index>> shapes = {{chunk + 188, 2 * tile_cols + 4}, {2 * chunk, 2 * tile_cols + 4}};
    for (Index m : edges(block_rows<T>, 4 * block_rows<T>, 64 * chunk)) {
        for (Index n : {1, 8, 9, 16, 17, 20}) {
            if (m <= 8192 || n == 9) shapes.emplace_back(m, n);
        }
    }
    for (const auto& [rows, cols] : shapes) {
        const Index m = rows, n = cols;
        const Padded<T> A(random_normal<T>(m, n, 1).view());
        const auto a = A.view();
        Matrix<T> R = random_normal<T>(n, n, 2);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < n; ++i) R(i, j) = i > j ? T(0) : i == j ? T(2) : R(i, j) / T(n);
        }
        Padded<T> X(m, n), G(n, n), G_alone(n, n);
        solve_and_gram<T>(this->ctx, a, Factors{R.view()}, X.view(), G.view());
        EXPECT_TRUE(X.padding_intact());
        const auto x = X.view();
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                W sum = -W(a(i, j)), magnitudes = 0;
                for (Index l = 0; l <= j; ++l) {
                    sum += W(x(i, l)) * W(R(l, j));
                    magnitudes += std::abs(W(x(i, l)) * W(R(l, j)));
                }
                ASSERT_LE(std::abs(sum), W((n + 2) * unit_roundoff<T>) * magnitudes) << m << "x" << n << " " << i;
            }
        }
        const auto gram = [](MatrixView<const T> of) {
            return [of](Index i, Index j, Index l) -> W { return i > j ? W(0) : W(of(l, i)) * W(of(l, j)); };
        };
        this->expect_sums(G, m, "Gram matrix", gram(x));
        solve_and_gram<T>(this->ctx, a, {}, {}, G_alone.view());
        this->expect_sums(G_alone, m, "Gram matrix alone", gram(a));
    }
}

TYPED_TEST(HostPrimitives, TallProducts) {
    using T = TypeParam;
    using W = Wide<T>;
    struct Case {
        Index m, n, p;
    };
    std::vector<Case> cases;
    for (Index m : edges(block_rows<T>, 2048)) cases.push_back({m, 3, 2});
    for (Index p : edges(tile_cols, 2 * tile_cols)) cases.push_back({50, 4, p}), cases.push_back({50, p, 3});
    cases.push_back({64 * 2048 + 1, 2, 3});
    for (auto [m, n, p] : cases) {
        const Padded<T> A(random_normal<T>(m, n, 1).view()), B(random_normal<T>(m, p, 2).view());
        const auto a = A.view(), b = B.view();
        const Matrix<T> S = random_normal<T>(n, p, 3);
        Padded<T> AtB(n, p), C(b);
        multiply_transposed<T>(this->ctx, a, b, AtB.view());
        this->expect_sums(AtB, m, "AᵀB", [&](Index i, Index j, Index l) -> W { return W(a(l, i)) * W(b(l, j)); });
        subtract_product<T>(this->ctx, a, S.view(), C.view());
        this->expect_sums(C, n + 1, "C − AS", [&, n = n](Index i, Index j, Index l) -> W {
            return l == n ? W(b(i, j)) : -W(a(i, l)) * W(S(l, j));
        });
    }
}

/// The rows of a panel, and of the next one beside an update, are shared by cores. Columns of zeros, NaN, and squares
/// that over- or underflow take ways of their own.
TYPED_TEST(HostPrimitives, PanelsHaveTheSameBitsOnAnyNumberOfCores) {
    using T = TypeParam;
    enum class Kind { Random, Zeros, Large, Small, Nan };
    struct Case {
        Index m, n, k;
    };
    for (const Case& c : {Case{1300, 64, 0}, {2900, 49, 0}, {1100, 61, 64}, {900, 100, 96}})
        for (const Kind kind : {Kind::Random, Kind::Zeros, Kind::Large, Kind::Small, Kind::Nan}) {
            const Index m = c.m, n = c.n, k = c.k;
            SCOPED_TRACE(this->shape_name(m, n) + " behind " + std::to_string(k) + ", kind " +
                         std::to_string(static_cast<int>(kind)));
            const int e = std::is_same_v<T, double> ? 600 : 70;
            Matrix<T> A = random_normal<T>(m, k + n + 5, 3);
            for (Index j = 0; j < A.cols(); ++j) {
                for (Index i = 0; i < m; ++i) {
                    if (kind == Kind::Zeros && j % 7 == 3 && (i >= m - 300 || j % 2 == 0)) A(i, j) = 0;
                    if (kind == Kind::Large) A(i, j) = std::scalbn(A(i, j), e);
                    if (kind == Kind::Small) A(i, j) = std::scalbn(A(i, j), -e);
                }
            }
            if (kind == Kind::Nan) A(m - 2, k + n / 2) = std::numeric_limits<T>::quiet_NaN();
            // V and R of the second panel, or of the only one, and T
            const auto factored = [&](int threads) {
                Context<Host> ctx(threads);
                Matrix<T> F = copy<T>(A.view()), first_T(k, k), Tf(n, n);
                const auto second = F.view().block({k, m}, {k, k + n});
                if (k == 0) {
                    factor_panel<T>(ctx, second, Tf.view());
                } else {
                    const auto first = F.view().col_block({0, k});
                    factor_panel<T>(ctx, first, first_T.view());
                    apply_and_factor_next<T>(ctx, first, first_T.view(), F.view().col_block({k, F.cols()}), Tf.view(),
                                             {});
                }
                // Arm's FMLS negates a NaN, and only some of the ways that lead to a NaN have one
                for (Matrix<T>* const result : {&F, &Tf}) {
                    std::replace_if(
                        result->data(), result->data() + result->rows() * result->cols(), [](T x) { return x != x; },
                        std::numeric_limits<T>::quiet_NaN());
                }
                return std::pair(std::move(F), std::move(Tf));
            };
            const auto [one, T_of_one] = factored(1);
            for (const int threads : {2, 3, 4}) {
                SCOPED_TRACE(threads);
                const auto [F, Tf] = factored(threads);
                EXPECT_TRUE(same_bits<T>(F.view(), one.view()));
                EXPECT_TRUE(same_bits<T>(Tf.view(), T_of_one.view()));
            }
        }
}

/// op(H) C for H = I − V T Vᵀ of a factored panel, by every way that the number of threads chooses among.
TYPED_TEST(HostPrimitives, Panels) {
    using T = TypeParam;
    struct Case {
        Index m, k, p;
    };
    for (auto [m, k, p] : {Case{8, 8, 1}, {9, 8, 47}, {513, 5, 48}, {1025, 12, 49}, {2049, 7, 97}, {9001, 6, 30}}) {
        SCOPED_TRACE(this->shape_name(m, k) + " on " + std::to_string(p));
        Matrix<T> V = random_normal<T>(m, k, 1), Tf(k, k), tau(k, 1), Tf_again(k, k);
        factor_panel<T>(this->ctx, V.view(), Tf.view());
        for (Index j = 0; j < k; ++j) tau(j, 0) = Tf(j, j);
        compact_wy<T>(this->ctx, V.view(), tau.view(), Tf_again.view());
        EXPECT_LE(difference<T>(Tf_again.view(), Tf.view(), k, frobenius_norm<T>(Tf.view())), law);
        const Matrix<T> C = random_normal<T>(m, p, 2);
        for (Op op : {Op::None, Op::Transpose}) {
            // C − V op(T) (VᵀC)
            std::vector<Wide<T>> w(k), tw(k);
            Matrix<T> expected(m, p);
            const auto v = [&](Index i, Index j) {
                return i < j ? Wide<T>(0) : i == j ? Wide<T>(1) : Wide<T>(V(i, j));
            };
            for (Index j = 0; j < p; ++j) {
                for (Index l = 0; l < k; ++l) {
                    w[l] = 0;
                    for (Index i = l; i < m; ++i) w[l] += v(i, l) * Wide<T>(C(i, j));
                }
                for (Index l = 0; l < k; ++l) {
                    tw[l] = 0;
                    for (Index i = 0; i < k; ++i) tw[l] += Wide<T>(op == Op::None ? Tf(l, i) : Tf(i, l)) * w[i];
                }
                for (Index i = 0; i < m; ++i) {
                    Wide<T> x = C(i, j);
                    for (Index l = 0; l < k; ++l) x -= v(i, l) * tw[l];
                    expected(i, j) = static_cast<T>(x);
                }
            }
            std::vector<Padded<T>> results;
            for (int threads : {1, 4}) {
                Context<Host> own(threads);
                Padded<T> X(C.view());
                apply_panel<T>(own, op, V.view(), Tf.view(), X.view());
                EXPECT_TRUE(X.padding_intact());
                EXPECT_LE(difference<T>(X.view(), expected.view(), k, frobenius_norm<T>(C.view())), law) << threads;
                results.push_back(std::move(X));
            }
            for (const auto& X : results) EXPECT_TRUE(same_bits<T>(X.view(), results[0].view()));
        }
    }
}

TYPED_TEST(HostPrimitives, SmallTriangles) {
    using T = TypeParam;
    using W = Wide<T>;
    for (Index n : edges(tile_cols, 2 * tile_cols)) {
        Matrix<T> R = random_normal<T>(n, n, 1);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < n; ++i) R(i, j) = i > j ? T(0) : i == j ? T(2) : R(i, j) / T(n);
        }
        const auto r = std::as_const(R).view();
        // R S of upper triangles
        Padded<T> P(n, n);
        multiply_upper<T>(this->ctx, r, r, P.view());
        this->expect_sums(P, n, "R R", [&](Index i, Index j, Index l) -> W { return W(r(i, l)) * W(r(l, j)); });
        // G = RᵀR gives R back
        Matrix<T> G(n, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < n; ++i) {
                W sum = 0;
                for (Index l = 0; l < n; ++l) sum += W(r(l, i)) * W(r(l, j));
                G(i, j) = static_cast<T>(sum);
            }
        }
        Matrix<Certificate> state(1, 1);
        Padded<T> Y(n, n);
        factor_gram<T>(this->ctx, G.view(), {}, Y.view(), state.view());
        ASSERT_FALSE(state(0, 0).refused());
        EXPECT_TRUE(is_upper_trapezoidal<T>(Y.view()));
        const auto y = std::as_const(Y).view();
        Padded<T> YtY(n, n);
        multiply_transposed<T>(this->ctx, y, y, YtY.view());
        EXPECT_LE(difference<T>(YtY.view(), G.view(), n, frobenius_norm<T>(G.view())), law);
        // op(A)⁻¹ X, of few columns where A lies
        const Matrix<T> l = transposed<T>(r);
        for (Index p : {1, 3, 50}) {
            for (Op op : {Op::None, Op::Transpose}) {
                for (Triangle triangle : {Triangle::Upper, Triangle::UnitLower}) {
                    const auto A = triangle == Triangle::Upper ? MatrixView<const T>(r) : l.view();
                    const Matrix<T> B = random_normal<T>(n, p, 4);
                    Padded<T> X(B.view());
                    solve_triangle<T>(this->ctx, triangle, op, A, X.view());
                    EXPECT_TRUE(X.padding_intact());
                    Matrix<T> back = copy<T>(std::as_const(X).view());
                    multiply_triangle<T>(this->ctx, Side::Left, triangle, op, A, back.view());
                    EXPECT_LE(difference<T>(back.view(), B.view(), n, frobenius_norm<T>(B.view())), law)
                        << n << " " << p;
                }
            }
        }
    }
}

// 1 / r overflows for the first and is denormal for the second: the quotients are exact all the same
TYPED_TEST(HostPrimitives, SolvesByNumbersWithoutANormalReciprocal) {
    using T = TypeParam;
    using Limits = std::numeric_limits<T>;
    for (const T r : {Limits::denorm_min(), Limits::max() / 2 + Limits::max() / 4}) {
        const Index m = 35;
        Matrix<T> X = filled<T>(m, 1, r);
        kernels<T>().solve(m, 1, X.data(), m, &r, 1);
        EXPECT_TRUE(same_bits<T>(X.view(), filled<T>(m, 1, 1).view()));
    }
}

TYPED_TEST(HostPrimitives, Elements) {
    using T = TypeParam;
    constexpr Index sweep = 16384;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (Index m : edges(64, sweep, 2 * sweep)) {
        SCOPED_TRACE(m);
        const Index n = 3;
        Matrix<T> A = random_normal<T>(m, n, 1);
        const auto a = std::as_const(A).view();
        Padded<T> B(m, n), At(n, m);
        quoin::copy<T>(this->ctx, a, B.view());
        EXPECT_TRUE(same_bits<T>(B.view(), a));
        EXPECT_TRUE(B.padding_intact());
        quoin::transpose<T>(this->ctx, a, At.view());
        EXPECT_TRUE(same_bits<T>(At.view(), transposed<T>(a).view()));
        EXPECT_TRUE(At.padding_intact());
        for (Index first : {Index(-(m - 2)), Index(0), Index(1)}) {
            set_identity<T>(this->ctx, first, B.view());
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i) ASSERT_EQ(B.view()(i, j), T(i == j - first)) << i << " " << j;
            }
        }
        // a NaN anywhere is found, the first in column-major order; exponents where a column is beyond 2^±100
        Matrix<int> exponents(n, 1);
        Matrix<Scan> found(1, 1);
        for (Index bad : {Index(0), m / 2, m - 1}) {
            Matrix<T> broken = copy<T>(a);
            broken(bad, 1) = broken(m - 1, 2) = nan;
            scan<T>(this->ctx, broken.view(), 100, exponents.view(), found.view());
            EXPECT_EQ(found(0, 0).bad_row, bad);
            EXPECT_EQ(found(0, 0).bad_col, 1);
            Matrix<T> large = filled<T>(m, n, 1);
            large(bad, 2) = T(0x1.8p101);
            scan<T>(this->ctx, large.view(), 100, exponents.view(), found.view());
            EXPECT_TRUE(found(0, 0).scaled);
            EXPECT_EQ(exponents(2, 0), 101);
            scan<T>(this->ctx, large.view(), 101, exponents.view(), found.view());
            EXPECT_FALSE(found(0, 0).scaled);
            EXPECT_EQ(exponents(2, 0), 0);
        }
        for (Index j = 0; j < n; ++j) exponents(j, 0) = static_cast<int>(j);
        Matrix<T> scaled = copy<T>(a);
        scale_columns<T>(this->ctx, exponents.view(), -1, Part::All, scaled.view());
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) ASSERT_EQ(scaled(i, j), std::ldexp(a(i, j), -int(j)));
        }
    }
    // the upper part alone, of columns longer than a sweep's rows
    const Index k = 70;
    Matrix<int> exponents(k, 1);
    for (Index j = 0; j < k; ++j) exponents(j, 0) = 1;
    const Matrix<T> A = random_normal<T>(k + 30, k, 1);
    Matrix<T> scaled = copy<T>(A.view());
    scale_columns<T>(this->ctx, exponents.view(), 1, Part::Upper, scaled.view());
    Padded<T> R(k + 30, k);
    copy_triangle<T>(this->ctx, A.view(), R.view());
    Matrix<T> stored = filled<T>(k + 30, k, 7);
    store_triangle<T>(this->ctx, A.view(), stored.view());
    EXPECT_TRUE(R.padding_intact());
    for (Index j = 0; j < k; ++j) {
        for (Index i = 0; i < k + 30; ++i) {
            ASSERT_EQ(scaled(i, j), i <= j ? 2 * A(i, j) : A(i, j));
            ASSERT_EQ(R.view()(i, j), i <= j ? A(i, j) : T(0));
            ASSERT_EQ(stored(i, j), i <= j ? A(i, j) : T(7));
        }
    }
}

/// A row of A goes, halved and with a sign, to one row of each of the four parts of its sketch.
TYPED_TEST(HostPrimitives, SketchAddsEveryRowToFour) {
    using T = TypeParam;
    const Matrix<T> small = random_normal<T>(127, 20);
    Padded<T> same(127, 20);
    sketch<T>(this->ctx, small.view(), 0, same.view());
    EXPECT_TRUE(same_bits<T>(same.view(), small.view()));
    for (const Index m : {1, 31, 32, 33, 2047, 2048, 2081}) {
        // an embedding of spaces of d dimensions
        for (const auto& [n, d] : {std::pair<Index, Index>{1, 1}, {7, 7}, {33, 33}, {130, 130}, {50, 9}, {3, 70}}) {
            const Matrix<T> A = random_normal<T>(m, n, 3);
            const Index segments = sketch_segments(d), rows_of_part = segments * sketch_group_rows, seed = n;
            std::vector<std::vector<Index>> rows(sketch_rows(d));
            std::vector<std::vector<T>> signs(sketch_rows(d));
            for (Index i = 0; i < m; ++i) {
                const SketchGroup g = sketch_group(i / sketch_group_rows, seed, segments);
                const Index lane = i % sketch_group_rows;
                for (Index k = 0; k < sketch_parts; ++k) {
                    ASSERT_LT(g.segment[k], segments);
                    const Index to = k * rows_of_part + g.segment[k] * sketch_group_rows +
                                     (lane + g.rotation[k]) % sketch_group_rows;
                    rows[to].push_back(i);
                    signs[to].push_back((g.row_signs >> lane & 1) == (g.part_signs >> k & 1) ? T(0.5) : T(-0.5));
                }
            }
            Padded<T> B(sketch_rows(d), n);
            sketch<T>(this->ctx, A.view(), seed, B.view());
            EXPECT_TRUE(B.padding_intact());
            for (Index j = 0; j < n; ++j) {
                for (Index r = 0; r < sketch_rows(d); ++r) {
                    Wide<T> sum = 0, magnitudes = 0;
                    for (std::size_t l = 0; l < rows[r].size(); ++l) {
                        sum += Wide<T>(signs[r][l]) * Wide<T>(A(rows[r][l], j));
                        magnitudes += std::abs(Wide<T>(A(rows[r][l], j)));
                    }
                    ASSERT_LE(std::abs(Wide<T>(B.view()(r, j)) - sum),
                              Wide<T>(unit_roundoff<T>) * Wide<T>(rows[r].size()) * magnitudes)
                        << r << ", " << j << " of " << shape_name(m, n);
                }
            }
        }
    }
}

/// |‖S x‖ − ‖x‖| <= 3/4 ‖x‖ for every x of the range of A at once, where all of A is in a few rows, in rows that are
/// alike, or in smooth columns: √(n/s) <= 1/2 is what random rows have.
/// One subnormal number makes a column that is not zero.
TYPED_TEST(HostPrimitives, ColumnsOfZerosAreFilledAndCleared) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{1, 1}, {300, 7}, {20000, 40}}) {
        SCOPED_TRACE(shape_name(m, n));
        Padded<T> A(m, n);
        set_zero(this->ctx, A.view());
        for (Index j = 0; j < n; j += 3) A.view()(j * 37 % m, j) = std::numeric_limits<Real<T>>::denorm_min();
        const Matrix<T> before = copy<T>(A.view());
        Matrix<int> exponents(n, 1);
        fill_zero_columns<T>(this->ctx, 0.25, 5, A.view(), exponents.view());
        for (Index j = 0; j < n; ++j) {
            EXPECT_EQ(exponents(j, 0), j % 3 == 0 ? 0 : clearing_exponent);
            for (Index i = 0; i < m; ++i) {
                if (j % 3 == 0) {
                    ASSERT_EQ(A.view()(i, j), before(i, j));
                } else {
                    ASSERT_EQ(std::abs(A.view()(i, j)), Real<T>(0.25));
                }
            }
        }
        scale_columns<T>(this->ctx, exponents.view(), 1, Part::All, A.view());
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) ASSERT_EQ(A.view()(i, j), before(i, j));
        }
        EXPECT_TRUE(A.padding_intact());
    }
}

/// Two columns of signs, and two rows, agree in about half of their entries, whatever the seeds: 6 standard deviations
/// at most.
TYPED_TEST(HostPrimitives, PerturbationsAreIdentitiesAndIndependentSigns) {
    using T = TypeParam;
    const Index m = quick() ? 1000 : 5000, n = 130;
    // columns of norms 1 to 5
    Matrix<T> R(n, n);
    for (Index j = 0; j < n; ++j) {
        std::fill_n(R.view().at(0, j), n, T(0));
        R(j / 2, j) = static_cast<T>(j % 5 + 1);
    }
    Padded<T> square(n, n), signs[2] = {{m, n}, {m, n}};
    for (MatrixView<T> A : {square.view(), signs[0].view(), signs[1].view()}) set_zero(this->ctx, A);
    perturb<T>(this->ctx, Perturbation::Identity, 0.5, R.view(), 0, square.view());
    for (const Index seed : {0, 1}) {
        perturb<T>(this->ctx, Perturbation::Signs, 0.5, R.view(), seed, signs[seed].view());
    }
    for (Index j = 0; j < n; ++j) {
        const T size = static_cast<T>(0.5) * R(j / 2, j);
        for (Index i = 0; i < n; ++i) EXPECT_EQ(square.view()(i, j), i == j ? size : T(0));
        for (const auto& S : signs) {
            for (Index i = 0; i < m; ++i) ASSERT_EQ(std::abs(S.view()(i, j)), size);
        }
    }
    const auto expect_half = [](Index same, Index of) {
        EXPECT_LE(std::abs(2.0 * same - of), 6 * std::sqrt(double(of))) << same << " of " << of;
    };
    const auto is_minus = [&](int seed, Index i, Index j) { return signs[seed].view()(i, j) < 0; };
    for (const auto& [a, b] : {std::pair<int, int>{0, 0}, {0, 1}}) {
        for (const Index distance : {1, 2, 31, 32, 33, 64, 128}) {
            for (Index j = 0; j + distance < n; ++j) {
                Index same = 0;
                for (Index i = 0; i < m; ++i) same += is_minus(a, i, j) == is_minus(b, i, j + distance);
                expect_half(same, m);
            }
            Index same = 0;
            for (Index i = 0; i + distance < m; ++i) {
                for (Index j = 0; j < n; ++j) same += is_minus(a, i, j) == is_minus(b, i + distance, j);
            }
            expect_half(same, (m - distance) * n);
        }
    }
    EXPECT_TRUE(square.padding_intact() && signs[0].padding_intact() && signs[1].padding_intact());
}

TYPED_TEST(HostPrimitives, SketchKeepsNormsOfHostileRanges) {
    using T = TypeParam;
    const Index m = quick() ? 4000 : 20000;
    for (const Index n : {1, 5, 24, 32, 100}) {
        std::vector<Matrix<T>> bases;
        for (const Index apart : {Index(1), Index(4), Index(32), Index(33), Index(128), m / n}) {
            // rows of the unit matrix, so far from each other
            Matrix<T> Q = filled<T>(m, n, 0);
            for (Index j = 0; j < n; ++j) Q(std::min(j * apart, m - n + j), j) = 1;
            bases.push_back(std::move(Q));
        }
        Matrix<T> smooth(m, n), walsh(m, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                smooth(i, j) = static_cast<T>(std::cos(3.141592653589793 * (double(i) + 0.5) * double(j) / double(m)));
                walsh(i, j) = __builtin_parityll(static_cast<unsigned long long>(i & j)) ? T(-1) : T(1);
            }
        }
        for (const Matrix<T>& A : {std::cref(smooth), std::cref(walsh)})
            bases.push_back(qr(this->ctx, A.view(), with(Method::TSQR, QForm::Explicit)).form_q(this->ctx));
        bases.push_back(
            qr(this->ctx, random_normal<T>(m, n).view(), with(Method::TSQR, QForm::Explicit)).form_q(this->ctx));
        for (std::size_t b = 0; b < bases.size(); ++b) {
            Matrix<T> B(sketch_rows(n), n);
            sketch<T>(this->ctx, bases[b].view(), 0, B.view());
            const std::vector<T> s = svd(this->ctx, std::as_const(B).view(), false).s;
            EXPECT_LE(s.front(), 1.75) << "basis " << b << " of " << n;
            EXPECT_GE(s.back(), 0.25) << "basis " << b << " of " << n;
        }
    }
}

/// Tests the generic version, which a device without a fast one runs.
TYPED_TEST(HostPrimitives, Generic) {
    using T = TypeParam;
    const Index m = 300, n = 8;
    const Matrix<T> X = random_normal<T>(m, n, 1), M = random_normal<T>(m, n, 2);
    Matrix<T> scaled = copy<T>(X.view()), kept = filled<T>(m, n, 0), left = copy<T>(M.view()), R(n, n), R_kept(n, n);
    for (Index i = 0; i < m; ++i) scaled(i, 1) = 0, scaled(i, 2) = std::ldexp(T(1), 90);
    scaled(5, 3) = std::numeric_limits<T>::infinity();
    Matrix<int> exponents(n, 1);
    norm_exponents<T>(this->ctx, scaled.view(), exponents.view());
    const int expected[] = {4, 0, 94, 0};  // ‖a‖ = √300 for ones
    for (Index j = 0; j < 4; ++j) EXPECT_EQ(exponents(j, 0), expected[j]) << j;

    round_columns<T>(this->ctx, Arithmetic::FP16, X.view(), 0, kept.data());
    block_gram_schmidt_step_rounded<T>(this->ctx, kept.data(), n, left.view(), R_kept.view(), Arithmetic::FP16);
    scaled = copy<T>(M.view());
    block_gram_schmidt_step<T>(this->ctx, X.view(), scaled.view(), R.view(), Arithmetic::Native, false);
    EXPECT_TRUE(same_bits<T>(left.view(), scaled.view()));
    EXPECT_TRUE(same_bits<T>(R_kept.view(), R.view()));
}

TEST(Tasks, AreLeftOutOnceTheContextWasAskedToStop) {
    for (const int threads : {1, 3}) {
        Context<Host> ctx(threads);
        for (const auto& loop :
             {+[](const Team&team, const std::function<void(Index)>&f) { for_tasks(team, 1000, f); },
              +[](const Team&team, const std::function<void(Index)>&f) { for_parts(team, 1000, f); }}) {
            std::atomic<int> done = 0;
            EXPECT_THROW(loop(Team(ctx, threads),
                              [&](Index) {
                                  ++done;
                                  ctx.request_stop();
                              }),
                         Interrupted);
            EXPECT_LE(done, threads);
            ctx.clear_stop();
            loop(Team(ctx, threads), [&](Index) { ++done; });
            EXPECT_GE(done, 1000);
        }
    }
}

TYPED_TEST(HostPrimitives, StopInAPassOverATallMatrix) {
    using T = TypeParam;
    constexpr Index m = 40000, n = 16;  // enough for several cores a panel
    const Matrix<T> A = random_normal<T>(m, n), before = copy<T>(A.view());
    Matrix<T> B = copy<T>(A.view()), S(n, n), W(4 * n, n);
    const auto V = A.view();
    for (const int threads : {1, 3}) {
        Context<Host> ctx(threads);
        ctx.request_stop();
        EXPECT_THROW((factor_panel<T, Host>(ctx, B.view(), S.view())), Interrupted);
        EXPECT_THROW((apply_panel<T, Host>(ctx, Op::None, V, S.view(), B.view())), Interrupted);
        EXPECT_THROW((multiply_transposed<T, Host>(ctx, V, V, S.view())), Interrupted);
        EXPECT_THROW((subtract_product<T, Host>(ctx, V, S.view(), B.view())), Interrupted);
        EXPECT_THROW((quoin::copy<T, Host>(ctx, V, B.view())), Interrupted);
        EXPECT_THROW((negate<T, Host>(ctx, B.view())), Interrupted);
        EXPECT_THROW(orthogonality<T>(ctx, V), Interrupted);
    }
    EXPECT_TRUE(same_bits<T>(B.view(), before.view()));
}

}  // namespace
}  // namespace quoin::test
