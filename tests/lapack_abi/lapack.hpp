#pragma once

// Shared by the tests of libquoin_lapack.so: LAPACK with the bookkeeping of its callers, and fixtures over types and
// libraries. The names with 64-bit integers are passed on to no LAPACK here, so that Quoin's own code serves them at
// every size.

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "lapack_abi/fortran.hpp"

namespace quoin::test {

using fortran::Complaint;
using fortran::Routines;
using fortran::take_complaint;

inline constexpr Side sides[] = {Side::Left, Side::Right};
inline constexpr Op ops[] = {Op::None, Op::Transpose};

enum class Work { Minimal, Queried };
enum class Solver { Gels, Gelst, Getsls };

/// One LAPACK, with the bookkeeping of its callers.
template <class T, class Int>
class Lapack {
public:
    Lapack(void* library, fortran::Owner owner) : f(library, owner) {}

    std::vector<T> geqrf(MatrixView<T> A, Work size, bool unblocked = false) const {
        return factored(f.geqrf, f.geqr2, A, A.rows, A.cols, size, unblocked);
    }
    void orgqr(MatrixView<T> A, Int k, const std::vector<T>& tau, Work size) const {
        const Int m = A.rows, n = A.cols, lda = A.ld;
        Int info = 99;
        with_work(size, std::max<Int>(1, n), [&](T* work, const Int* lwork) {
            f.orgqr(&m, &n, &k, A.data, &lda, tau.data(), work, lwork, &info);
        });
        EXPECT_EQ(info, 0);
    }
    void ormqr(Side side, Op op, MatrixView<const T> V, const std::vector<T>& tau, MatrixView<T> C, Work size) const {
        const Int m = C.rows, n = C.cols, k = V.cols, lda = V.ld, ldc = C.ld;
        Int info = 99;
        with_work(size, std::max<Int>(1, side == Side::Left ? n : m), [&](T* work, const Int* lwork) {
            f.ormqr(letter(side), letter(op), &m, &n, &k, V.data, &lda, tau.data(), C.data, &ldc, work, lwork, &info, 1,
                    1);
        });
        EXPECT_EQ(info, 0);
    }

    /// nb = 0: geqrt3, one T.
    void geqrt(Int nb, MatrixView<T> A, MatrixView<T> Tf) const {
        const Int m = A.rows, n = A.cols, lda = A.ld, ldt = Tf.ld;
        std::vector<T> work(std::max<Int>(1, nb * n));
        Int info = 99;
        if (nb == 0) {
            f.geqrt3(&m, &n, A.data, &lda, Tf.data, &ldt, &info);
        } else {
            f.geqrt(&m, &n, &nb, A.data, &lda, Tf.data, &ldt, work.data(), &info);
        }
        EXPECT_EQ(info, 0);
    }
    void gemqrt(Side side, Op op, MatrixView<const T> V, MatrixView<const T> Tf, MatrixView<T> C) const {
        const Int m = C.rows, n = C.cols, k = V.cols, nb = Tf.rows, ldv = V.ld, ldt = Tf.ld, ldc = C.ld;
        std::vector<T> work(std::max<Int>(1, nb * std::max(m, n)));
        Int info = 99;
        f.gemqrt(letter(side), letter(op), &m, &n, &k, &nb, V.data, &ldv, Tf.data, &ldt, C.data, &ldc, work.data(),
                 &info, 1, 1);
        EXPECT_EQ(info, 0);
    }

    Routines<T, Int> f;

    /// A := V and L; returns tau.
    std::vector<T> gelqf(MatrixView<T> A, Work size, bool unblocked = false) const {
        return factored(f.gelqf, f.gelq2, A, A.cols, A.rows, size, unblocked);
    }
    void orglq(MatrixView<T> A, Int k, const std::vector<T>& tau, Work size) const {
        const Int m = A.rows, n = A.cols, lda = A.ld;
        Int info = 99;
        with_work(size, std::max<Int>(1, m), [&](T* work, const Int* lwork) {
            f.orglq(&m, &n, &k, A.data, &lda, tau.data(), work, lwork, &info);
        });
        EXPECT_EQ(info, 0);
    }
    void ormlq(Side side, Op op, MatrixView<const T> V, const std::vector<T>& tau, MatrixView<T> C, Work size) const {
        const Int m = C.rows, n = C.cols, k = V.rows, lda = V.ld, ldc = C.ld;
        Int info = 99;
        with_work(size, std::max<Int>(1, side == Side::Left ? n : m), [&](T* work, const Int* lwork) {
            f.ormlq(letter(side), letter(op), &m, &n, &k, V.data, &lda, tau.data(), C.data, &ldc, work, lwork, &info, 1,
                    1);
        });
        EXPECT_EQ(info, 0);
    }
    /// `jpvt` is as in LAPACK, in and out. Returns tau.
    std::vector<T> geqp3(MatrixView<T> A, std::vector<Int>& jpvt, Work size) const {
        const Int m = A.rows, n = A.cols, lda = A.ld;
        return with_tau(A, [&](T* tau, Int* info) {
            with_work(size, std::min(m, n) == 0 ? 1 : 3 * n + 1, [&](T* work, const Int* lwork) {
                f.geqp3(&m, &n, A.data, &lda, jpvt.data(), tau, work, lwork, info);
            });
        });
    }
    /// Results of ?geqp3rk.
    struct Truncated {
        Int info = 99, k = -1;
        T largest = poison, relative = poison;
        std::vector<Int> jpiv;
        std::vector<T> tau;
    };
    /// AB is [A B], A with n columns.
    Truncated geqp3rk(MatrixView<T> AB, Int n, Int kmax, T abstol, T reltol, Work size) const {
        const Int m = AB.rows, nrhs = AB.cols - n, lda = AB.ld, k = std::min(m, n);
        Truncated out;
        out.jpiv.assign(n, 0);
        out.tau.assign(k + 1, poison);
        std::vector<Int> iwork(std::max<Int>(1, n - 1));
        with_work(size, k == 0 ? 1 : 3 * n + nrhs - 1, [&](T* work, const Int* lwork) {
            f.geqp3rk(&m, &n, &nrhs, &kmax, &abstol, &reltol, AB.data, &lda, &out.k, &out.largest, &out.relative,
                      out.jpiv.data(), out.tau.data(), work, lwork, iwork.data(), &out.info);
        });
        EXPECT_TRUE(std::isnan(out.tau.back())) << "tau was written beyond its end";
        out.tau.pop_back();
        return out;
    }
    /// Returns the rank. B has max(m, n) rows.
    Int gelsy(MatrixView<T> A, MatrixView<T> B, std::vector<Int>& jpvt, T rcond, Work size) const {
        const Int m = A.rows, n = A.cols, nrhs = B.cols, lda = A.ld, ldb = B.ld, k = std::min(m, n);
        Int rank = -1, info = 99;
        with_work(size, k == 0 || nrhs == 0 ? 1 : k + std::max({2 * k, n + 1, k + nrhs}),
                  [&](T* work, const Int* lwork) {
                      f.gelsy(&m, &n, &nrhs, A.data, &lda, B.data, &ldb, jpvt.data(), &rcond, &rank, work, lwork, &info);
                  });
        EXPECT_EQ(info, 0);
        return rank;
    }
    /// A (m×n, m <= n) := R and V; returns tau.
    std::vector<T> tzrzf(MatrixView<T> A, Work size) const {
        const Int m = A.rows, n = A.cols, lda = A.ld;
        return with_tau(A, [&](T* tau, Int* info) {
            with_work(size, m == n ? 1 : std::max<Int>(1, m),
                      [&](T* work, const Int* lwork) { f.tzrzf(&m, &n, A.data, &lda, tau, work, lwork, info); });
        });
    }
    /// The last l entries of each row of V are a reflector's.
    void ormrz(Side side, Op op, Int l, MatrixView<const T> V, const std::vector<T>& tau, MatrixView<T> C,
               Work size) const {
        const Int m = C.rows, n = C.cols, k = V.rows, lda = V.ld, ldc = C.ld;
        Int info = 99;
        with_work(size, std::max<Int>(1, side == Side::Left ? n : m), [&](T* work, const Int* lwork) {
            f.ormrz(letter(side), letter(op), &m, &n, &k, &l, V.data, &lda, tau.data(), C.data, &ldc, work, lwork,
                    &info, 1, 1);
        });
        EXPECT_EQ(info, 0);
    }

    void tpqrt(Int l, Int nb, MatrixView<T> R, MatrixView<T> B, MatrixView<T> Tf) const {
        const Int m = B.rows, n = B.cols, lda = R.ld, ldb = B.ld, ldt = Tf.ld;
        std::vector<T> work(std::max<Int>(1, nb * n));
        Int info = 99;
        f.tpqrt(&m, &n, &l, &nb, R.data, &lda, B.data, &ldb, Tf.data, &ldt, work.data(), &info);
        EXPECT_EQ(info, 0);
    }
    void tpmqrt(Side side, Op op, Int l, Int nb, MatrixView<const T> V, MatrixView<const T> Tf, MatrixView<T> C_top,
                MatrixView<T> C) const {
        const Int m = C.rows, n = C.cols, k = V.cols, ldv = V.ld, ldt = Tf.ld, lda = C_top.ld, ldb = C.ld;
        std::vector<T> work(std::max<Int>(1, nb * std::max(m, n)));
        Int info = 99;
        f.tpmqrt(letter(side), letter(op), &m, &n, &k, &l, &nb, V.data, &ldv, Tf.data, &ldt, C_top.data, &lda, C.data,
                 &ldb, work.data(), &info, 1, 1);
        EXPECT_EQ(info, 0);
    }

    void latsqr(Int mb, Int nb, MatrixView<T> A, MatrixView<T> Tf, Work size) const {
        const Int m = A.rows, n = A.cols, lda = A.ld, ldt = Tf.ld;
        Int info = 99;
        with_work(size, n == 0 ? 1 : n * nb, [&](T* work, const Int* lwork) {
            f.latsqr(&m, &n, &mb, &nb, A.data, &lda, Tf.data, &ldt, work, lwork, &info);
        });
        EXPECT_EQ(info, 0);
    }
    void lamtsqr(Side side, Op op, Int mb, Int nb, MatrixView<const T> V, MatrixView<const T> Tf, MatrixView<T> C,
                 Work size) const {
        const Int m = C.rows, n = C.cols, k = V.cols, lda = V.ld, ldt = Tf.ld, ldc = C.ld;
        Int info = 99;
        with_work(size, std::max<Int>(1, (side == Side::Left ? n : mb) * nb), [&](T* work, const Int* lwork) {
            f.lamtsqr(letter(side), letter(op), &m, &n, &k, &mb, &nb, V.data, &lda, Tf.data, &ldt, C.data, &ldc, work,
                      lwork, &info, 1, 1);
        });
        EXPECT_EQ(info, 0);
    }
    void orgtsqr(bool by_rows, Int mb, Int nb, MatrixView<T> A, MatrixView<const T> Tf, Work size) const {
        const Int m = A.rows, n = A.cols, lda = A.ld, ldt = Tf.ld, width = std::min(nb, n);
        const Int least =
            by_rows ? std::max<Int>(1, width * std::max(width, n - width)) : std::max<Int>(2, (m + width) * n);
        Int info = 99;
        with_work(size, least, [&](T* work, const Int* lwork) {
            (by_rows ? f.orgtsqr_row : f.orgtsqr)(&m, &n, &mb, &nb, A.data, &lda, Tf.data, &ldt, work, lwork, &info);
        });
        EXPECT_EQ(info, 0);
    }
    std::vector<T> orhr_col(Int nb, MatrixView<T> A, MatrixView<T> Tf) const {
        const Int m = A.rows, n = A.cols, lda = A.ld, ldt = Tf.ld;
        std::vector<T> d(n, poison);
        Int info = 99;
        f.orhr_col(&m, &n, &nb, A.data, &lda, Tf.data, &ldt, d.data(), &info);
        EXPECT_EQ(info, 0);
        return d;
    }

    /// Returns T, of the least size or the queried one.
    std::vector<T> geqr(MatrixView<T> A, Work size) const {
        const Int m = A.rows, n = A.cols, lda = A.ld, query = size == Work::Minimal ? -2 : -1;
        T sizes[5], answer = poison;
        Int info = 99;
        f.geqr(&m, &n, A.data, &lda, sizes, &query, &answer, &query, &info);
        EXPECT_EQ(info, 0);
        const Int tsize = static_cast<Int>(sizes[0]), lwork = static_cast<Int>(answer);
        if (size == Work::Minimal) {
            EXPECT_EQ(tsize, n + 5);
            EXPECT_EQ(lwork, std::max<Int>(1, n));
        }
        std::vector<T> Tf(tsize + 1, poison), work(lwork);
        f.geqr(&m, &n, A.data, &lda, Tf.data(), &tsize, work.data(), &lwork, &info);
        EXPECT_EQ(info, 0);
        EXPECT_TRUE(std::isnan(Tf.back())) << "T was written beyond its end";
        Tf.pop_back();
        return Tf;
    }
    void gemqr(Side side, Op op, MatrixView<const T> V, const std::vector<T>& Tf, MatrixView<T> C, Work size) const {
        const Int m = C.rows, n = C.cols, k = V.cols, lda = V.ld, ldc = C.ld, tsize = Tf.size();
        const Int mb = static_cast<Int>(Tf[1]), nb = static_cast<Int>(Tf[2]);
        const bool nothing = m == 0 || n == 0 || k == 0;
        Int info = 99;
        with_work(size, nothing ? 1 : (side == Side::Left ? n : mb) * nb, [&](T* work, const Int* lwork) {
            f.gemqr(letter(side), letter(op), &m, &n, &k, V.data, &lda, Tf.data(), &tsize, C.data, &ldc, work, lwork,
                    &info, 1, 1);
        });
        EXPECT_EQ(info, 0);
    }

    /// One of gels, gelst and getsls; returns info.
    Int solve(Solver solver, Op op, MatrixView<T> A, MatrixView<T> B, Work size) const {
        const Int m = A.rows, n = A.cols, nrhs = B.cols, lda = A.ld, ldb = B.ld, k = std::min(m, n);
        const auto routine = solver == Solver::Gels ? f.gels : solver == Solver::Gelst ? f.gelst : f.getsls;
        const bool nothing = k == 0 || nrhs == 0;
        const Int least = solver != Solver::Getsls ? k + std::max(k, nrhs) : nothing ? 1 : k + 5 + std::max(n, nrhs);
        Int info = 99;
        with_work(size, std::max<Int>(1, least), [&](T* work, const Int* lwork) {
            routine(letter(op), &m, &n, &nrhs, A.data, &lda, B.data, &ldb, work, lwork, &info, 1);
        });
        return info;
    }

private:
    static constexpr T poison = std::numeric_limits<T>::quiet_NaN();

    static const char* letter(Side side) { return side == Side::Left ? "L" : "r"; }
    static const char* letter(Op op) { return op == Op::None ? "n" : "T"; }

    /// Returns the tau that factor(tau, info) writes for A, and checks that nothing is written after it.
    template <class F>
    static std::vector<T> with_tau(MatrixView<T> A, F factor) {
        std::vector<T> tau(std::min(A.rows, A.cols) + 1, poison);
        Int info = 99;
        factor(tau.data(), &info);
        EXPECT_EQ(info, 0);
        EXPECT_TRUE(std::isnan(tau.back())) << "tau was written beyond its end";
        tau.pop_back();
        return tau;
    }
    /// Calls ?geqrf or ?geqr2, or their twins for LQ: at most `vectors` reflectors, each of `length` entries.
    template <class Blocked, class Unblocked>
    static std::vector<T> factored(Blocked blocked, Unblocked unblocked, MatrixView<T> A, Index length, Index vectors,
                                   Work size, bool is_unblocked) {
        const Int m = A.rows, n = A.cols, lda = A.ld, least = std::max<Index>(1, vectors);
        return with_tau(A, [&](T* tau, Int* info) {
            if (is_unblocked) {
                std::vector<T> work(least);
                return unblocked(&m, &n, A.data, &lda, tau, work.data(), info);
            }
            with_work(size, length == 0 ? 1 : least,
                      [&](T* work, const Int* lwork) { blocked(&m, &n, A.data, &lda, tau, work, lwork, info); });
        });
    }

    /// call(work, lwork) with a workspace of the least size, or of the size that a query asks for.
    template <class F>
    static void with_work(Work size, Int least, F call) {
        Int lwork = -1;
        if (size == Work::Queried) {
            T answer = poison;
            call(&answer, &lwork);
            lwork = static_cast<Int>(answer);
            ASSERT_GE(lwork, least);
        } else {
            lwork = least;
        }
        std::vector<T> work(lwork);
        call(work.data(), &lwork);
    }
};

template <class T>
Matrix<T> upper(MatrixView<const T> A, Index k) {
    Matrix<T> R = filled<T>(k, A.cols, 0);
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < std::min(k, j + 1); ++i) R(i, j) = A(i, j);
    }
    return R;
}

template <class Types>
class OverAllTypes : public testing::Test {
protected:
    using T = std::tuple_element_t<0, Types>;
    using Int = std::tuple_element_t<1, Types>;
    const Lapack<T, Int> quoin{fortran::quoin_library(), fortran::Owner::Quoin};
};
using AllTypes = testing::Types<std::tuple<float, std::int32_t>, std::tuple<double, std::int32_t>,
                                std::tuple<float, std::int64_t>, std::tuple<double, std::int64_t>>;

/// The system's routines know 32-bit integers only.
template <class T>
class Exchange : public testing::Test {
protected:
    const Lapack<T, std::int32_t> quoin{fortran::quoin_library(), fortran::Owner::Quoin};
    const Lapack<T, std::int32_t> system{fortran::system_library(), fortran::Owner::System};

    /// Either library's `call` reports that argument of xROUTINE, in info and to xerbla.
    template <class Call>
    void expect_refusal(const std::string& routine, std::int32_t argument, Call call) const {
        const std::string name = (std::is_same_v<T, double> ? "D" : "S") + routine;
        for (const auto* lapack : {&quoin, &system}) {
            std::int32_t info = 99;
            take_complaint();
            call(lapack->f, &info);
            EXPECT_EQ(info, -argument) << routine;
            EXPECT_EQ(take_complaint(), (Complaint{name, argument}));
        }
    }
};
using Precisions = testing::Types<float, double>;

}  // namespace quoin::test
