// SVD of a bidiagonal matrix by divide and conquer: LAPACK's steps, and products that all threads share.

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "host/bidiagonal.hpp"
#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin::host {
namespace {

// LAPACKE lacks these steps of bdsdc.

/// Decomposes an n×(n + sqre) matrix on one thread: n, sqre, d, e, U, ldu, Vt, ldvt, smlsiz, iwork, work, info.
template <class T>
using Lasd0 = void(const lapack_int*, const lapack_int*, T*, T*, T*, const lapack_int*, T*, const lapack_int*,
                   const lapack_int*, lapack_int*, T*, lapack_int*);
/// Deflates the merge of two matrices: nl, nr, sqre, k, d, z, alpha, beta, U, ldu, Vt, ldvt, dsigma, U2, ldu2, Vt2,
/// ldvt2, idxp, idx, idxc, idxq, coltyp, info.
template <class T>
using Lasd2 = void(const lapack_int*, const lapack_int*, const lapack_int*, lapack_int*, T*, T*, const T*, const T*, T*,
                   const lapack_int*, T*, const lapack_int*, T*, T*, const lapack_int*, T*, const lapack_int*,
                   lapack_int*, lapack_int*, lapack_int*, lapack_int*, lapack_int*, lapack_int*);
/// Finds root i of the secular equation of k terms: k, i, d, z, delta, rho, sigma, work, info.
template <class T>
using Lasd4 = void(const lapack_int*, const lapack_int*, const T*, const T*, T*, const T*, T*, T*, lapack_int*);

extern "C" Lasd0<float> LAPACK_GLOBAL(slasd0, SLASD0);
extern "C" Lasd0<double> LAPACK_GLOBAL(dlasd0, DLASD0);
extern "C" Lasd2<float> LAPACK_GLOBAL(slasd2, SLASD2);
extern "C" Lasd2<double> LAPACK_GLOBAL(dlasd2, DLASD2);
extern "C" Lasd4<float> LAPACK_GLOBAL(slasd4, SLASD4);
extern "C" Lasd4<double> LAPACK_GLOBAL(dlasd4, DLASD4);

template <class T>
struct Steps {
    Lasd0<T>* solve;
    Lasd2<T>* deflate;
    Lasd4<T>* root;
};
constexpr Steps<float> steps(float) {
    return {LAPACK_GLOBAL(slasd0, SLASD0), LAPACK_GLOBAL(slasd2, SLASD2), LAPACK_GLOBAL(slasd4, SLASD4)};
}
constexpr Steps<double> steps(double) {
    return {LAPACK_GLOBAL(dlasd0, DLASD0), LAPACK_GLOBAL(dlasd2, DLASD2), LAPACK_GLOBAL(dlasd4, DLASD4)};
}

/// The most rows of a matrix that one thread decomposes.
constexpr Index leaf_rows = 64;

template <class T>
class DivideAndConquer {
public:
    DivideAndConquer(Context<Host>& ctx, std::span<T> d, std::span<const T> e, MatrixView<T> U, MatrixView<T> Vt,
                     T* work)
        : ctx_(ctx), n_(U.cols), d_(d), e_(e.begin(), e.end()), U_(U), Vt_(Vt), work_(work), order_(n_) {}

    /// d := the values, in the order of U's columns and Vt's rows. Returns false if a step of LAPACK does not converge.
    bool run() {
        Index leaves = 1;
        while (n_ / leaves > leaf_rows) leaves *= 2;
        // leaf l has the rows from begin(l) to begin(l + 1) − 1; the row between two leaves belongs to neither
        const auto begin = [&](Index l) { return l * (n_ + 1) / leaves; };
        std::vector<char> solved(leaves);
        for_tasks(team(ctx_, 20.0 * n_ * leaf_rows * leaf_rows), leaves, [&](Index l) {
            solved[l] = solve({begin(l), begin(l + 1) - 1});
        });
        if (!std::all_of(solved.begin(), solved.end(), [](char yes) { return yes; })) return false;
        for (Index step = 1; step < leaves; step *= 2) {
            for (Index l = 0; l < leaves; l += 2 * step) {
                if (!merge(begin(l), begin(l + step) - 1, begin(l + 2 * step) - 1)) return false;
            }
        }
        return true;
    }
    /// Returns the order in which the values ascend, from 1 on.
    const std::vector<lapack_int>& order() const { return order_; }

private:
    /// Rows up to `end` have one column more than rows, but for the last.
    lapack_int more_columns(Index end) const { return end < n_ ? 1 : 0; }

    void sort(Index first, Index end) {
        const auto order = order_.begin() + first;
        std::iota(order, order + (end - first), 1);
        std::stable_sort(order, order + (end - first),
                         [d = &d_[first]](lapack_int i, lapack_int j) { return d[i - 1] < d[j - 1]; });
    }

    bool solve(Range rows) {
        const auto n = static_cast<lapack_int>(rows.size()), more = more_columns(rows.end), m = n + more,
                   ldu = static_cast<lapack_int>(U_.ld), ldvt = static_cast<lapack_int>(Vt_.ld);
        const lapack_int least_divided = 25;
        std::vector<lapack_int> iwork(8 * n);
        std::vector<T> work(3 * m * m + 2 * m);
        lapack_int info = 0;
        const Index i = rows.begin;
        steps(T()).solve(&n, &more, &d_[i], &e_[i], U_.at(i, i), &ldu, Vt_.at(i, i), &ldvt, &least_divided,
                         iwork.data(), work.data(), &info);
        sort(rows.begin, rows.end);
        return info == 0;
    }

    /// Decomposes the rows from `first` to `end`, given the SVDs of those before and after row `middle`.
    bool merge(Index first, Index middle, Index end) {
        const auto nl = static_cast<lapack_int>(middle - first), nr = static_cast<lapack_int>(end - middle - 1),
                   more = more_columns(end), n = nl + nr + 1, m = n + more, ldu = static_cast<lapack_int>(U_.ld),
                   ldvt = static_cast<lapack_int>(Vt_.ld);
        const MatrixView<T> U = U_.block({first, end}, {first, end}),
                            Vt = Vt_.block({first, first + m}, {first, first + m}), U2(work_, n, n, n),
                            Vt2(U2.data + Index{n} * n, m, m, m);
        T *const d = &d_[first], alpha = d[nl], beta = e_[middle];
        d[nl] = 0;
        T norm = std::max(std::abs(alpha), std::abs(beta));
        for (Index i = 0; i < n; ++i) norm = std::max(norm, d[i]);
        for (Index i = 0; i < n; ++i) d[i] /= norm;
        alpha /= norm;
        beta /= norm;

        // the k values that remain are the roots of 1 + Σ z_j²/(sigma_j² − σ²) = 0
        std::vector<lapack_int> idxp(n), idx(n), from(n), types(n), infos(n);
        std::vector<T> sigma(n), z(m);
        lapack_int k = 0, info = 0;
        steps(T()).deflate(&nl, &nr, &more, &k, d, z.data(), &alpha, &beta, U.data, &ldu, Vt.data, &ldvt, sigma.data(),
                           U2.data, &n, Vt2.data, &m, idxp.data(), idx.data(), from.data(), &order_[first],
                           types.data(), &info);
        if (info != 0) return false;
        from[0] = 1;
        const std::vector<T> signs(z);
        T squares = 0;
        for (Index j = 0; j < k; ++j) squares += z[j] * z[j];
        for (Index j = 0; j < k; ++j) z[j] /= std::sqrt(squares);
        // differences sigma_j − σ_i and sums sigma_j + σ_i
        const MatrixView<T> minus = U.block({0, k}, {0, k}), plus = Vt.block({0, k}, {0, k});
        const Team all = team(ctx_, 100.0 * k * k);
        for_parts(all, k, [&](Index i) {
            const lapack_int root = static_cast<lapack_int>(i + 1);
            steps(T()).root(&k, &root, sigma.data(), z.data(), minus.at(0, i), &squares, d + i, plus.at(0, i),
                            &infos[i]);
        });
        if (std::count(infos.begin(), infos.end(), 0) < n) return false;
        if (k == 1) minus(0, 0) = -1;

        // the z whose roots these are exactly (Gu and Eisenstat 1995), so that the vectors are orthogonal
        constexpr Index strip = 64;
        for_parts(all, (k + strip - 1) / strip, [&](Index s) {
            const Range rows{s * strip, std::min<Index>(k, (s + 1) * strip)};
            for (Index j = rows.begin; j < rows.end; ++j) z[j] = minus(j, k - 1) * plus(j, k - 1);
            for (Index i = 0; i + 1 < k; ++i) {
                for (Index j = rows.begin; j < rows.end; ++j) {
                    const T other = sigma[i < j ? i : i + 1];
                    z[j] *= minus(j, i) * plus(j, i) / ((sigma[j] - other) * (sigma[j] + other));
                }
            }
            for (Index j = rows.begin; j < rows.end; ++j) z[j] = std::copysign(std::sqrt(std::abs(z[j])), signs[j]);
        });
        // v_j = z_j / (sigma_j² − σ_i²), u_j = sigma_j v_j and u_0 = −1, in the order of the groups of columns of U2
        const MatrixView<T> Q(Vt2.data + Index{m} * m, k, k, k);
        const auto place = [&](const T* x, T sign, T* q) {
            double sum = 0;  // squares of z/σ² may overflow float
            for (Index j = 0; j < k; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
            const T scale = sign / static_cast<T>(std::sqrt(sum));
            for (Index j = 0; j < k; ++j) q[j] = scale * x[from[j] - 1];
        };
        for_parts(all, k, [&](Index i) {
            T *const u = minus.at(0, i), *const v = plus.at(0, i);
            for (Index j = 0; j < k; ++j) {
                v[j] = z[j] / u[j] / v[j];
                u[j] = sigma[j] * v[j];
            }
            u[0] = -1;
            place(u, -1, Q.at(0, i));
        });

        // column 0 of U2 is e_nl; the next have rows above it, then below it, then both
        const Range above{0, nl}, below{nl + 1, n}, left{0, nl + 1}, right{nl + 1, m}, upper{1, 1 + types[0]},
            both{upper.end + types[1], k}, lower{upper.end, k};
        const MatrixView<T> new_U = U.col_block({0, k}), new_Vt = Vt.row_block({0, k});
        set_zero<T>(ctx_, new_U);
        subtract_product<T>(ctx_, U2.block(above, upper), Q.row_block(upper), new_U.row_block(above));
        subtract_product<T>(ctx_, U2.block(above, both), Q.row_block(both), new_U.row_block(above));
        subtract_product<T>(ctx_, U2.block(below, lower), Q.row_block(lower), new_U.row_block(below));
        for (Index i = 0; i < k; ++i) new_U(nl, i) = -Q(0, i);
        for_parts(all, k, [&](Index i) { place(plus.at(0, i), 1, Q.at(0, i)); });
        const auto multiply = [&](Range rows, Range cols, bool accumulate) {
            multiply_transposed<T>(ctx_, Q.row_block(rows), Vt2.block(rows, cols), new_Vt.col_block(cols), accumulate);
        };
        multiply({0, upper.end}, left, false);
        if (both.size() > 0) multiply(both, left, true);
        multiply({0, 1}, right, false);
        if (lower.size() > 0) multiply(lower, right, true);
        for (Index i = 0; i < n; ++i) d[i] *= norm;
        sort(first, end);
        return true;
    }

    Context<Host>& ctx_;
    Index n_;
    std::span<T> d_;
    std::vector<T> e_;
    MatrixView<T> U_, Vt_;
    T* work_;
    std::vector<lapack_int> order_;
};

}  // namespace

template <class T>
bool divide_and_conquer(Context<Host>& ctx, std::span<T> s, std::span<const T> e, MatrixView<T> U, MatrixView<T> Vt,
                        T* work) {
    const Index n = U.cols;
    T scale = 0;
    for (const T x : s) scale = std::max(scale, std::abs(x));
    for (const T x : e) scale = std::max(scale, std::abs(x));
    set_identity<T>(ctx, 0, U);
    set_identity<T>(ctx, 0, Vt);
    if (scale == 0) return true;
    // a perturbation of u‖B‖, as bdsdc makes it
    constexpr T u = Scalar<T>::u;
    for (T& x : s) x = std::abs(x / scale) < u ? std::copysign(u, x) : x / scale;
    std::vector<T> of_e(e.begin(), e.end());
    for (T& x : of_e) x /= scale;
    DivideAndConquer<T> halves(ctx, s, of_e, U, Vt, work);
    if (!halves.run()) return false;

    const std::vector<T> values(s.begin(), s.end());
    const auto from = [&](Index i) { return halves.order()[n - 1 - i] - 1; };
    for (Index i = 0; i < n; ++i) s[i] = scale * values[from(i)];
    for_parts(team(ctx, 0, 2 * n * n), n, [&](Index i) { std::copy_n(U.at(0, from(i)), n, work + i * n); });
    copy<T>(ctx, MatrixView<const T>(work, n, n), U);
    for_parts(team(ctx, 0, 2 * n * n), n, [&](Index j) {
        T* const column = work + j * n;
        for (Index i = 0; i < n; ++i) column[i] = Vt(from(i), j);
    });
    copy<T>(ctx, MatrixView<const T>(work, n, n), Vt);
    return true;
}

template bool divide_and_conquer(Context<Host>&, std::span<float>, std::span<const float>, MatrixView<float>,
                                 MatrixView<float>, float*);
template bool divide_and_conquer(Context<Host>&, std::span<double>, std::span<const double>, MatrixView<double>,
                                 MatrixView<double>, double*);

}  // namespace quoin::host
