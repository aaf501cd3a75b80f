// The functions that quoin.torch calls for matrices in host memory on the short way of an eager call. They take and
// return DLPack's capsules, which PyTorch makes and takes in a fraction of a microsecond each. They check nothing.

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <vector>

#include "batches.hpp"
#include "bindings.hpp"

namespace quoin::python {
namespace {

/// Returns a DLPack capsule of a stack with leading dimensions `shape`. Its rows×cols matrices lie in `M` one after the
/// other, each by columns.
template <class T>
nb::object to_capsule(Matrix<T>&& M, std::vector<std::size_t> shape, Index rows, Index cols) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t stride = rows * cols;
    for (std::size_t d = shape.size(); d-- > 0;) {
        strides[d] = stride;
        stride *= static_cast<std::int64_t>(shape[d]);
    }
    shape.insert(shape.end(), {static_cast<std::size_t>(rows), static_cast<std::size_t>(cols)});
    strides.insert(strides.end(), {1, rows});
    return to_library<T>(std::move(M), shape, strides);
}

/// Returns the thin Q, or None, and R of one matrix or of a stack.
template <class T>
nb::tuple tensor_qr(const Array<T>& array, bool with_q) {
    const Batch<T, Host> stack(array);
    const Index m = stack.rows(), n = stack.cols(), k = std::min(m, n), count = stack.count();
    const Options options{.q = with_q ? QForm::Explicit : QForm::None, .check_finite = false};
    const bool one = stack.shape().empty();
    Matrix<T> Q = with_q ? Matrix<T>(m, k * count) : Matrix<T>(), R(k, n * count);
    run_released(Home<Host>(0), one ? where_for(0, m, n) : 0, flops_of_qr(m, n) * count, [&](Context<Host>& ctx) {
        if (one) return qr<T, Host>(ctx, Readable<T, Host>(ctx, stack[0], Q.view()).view, Q.view(), R.view(), options);
        const BatchView<T> Qs(Q.data(), m, k, m, m * k, count), Rs(R.data(), k, n, k, k * n, count);
        qr<T, Host>(ctx, Operands<T, Host>(ctx, stack).view, with_q ? Qs : BatchView<T>(), Rs, options);
    });
    nb::object R_ = to_capsule<T>(std::move(R), stack.shape(), k, n);
    if (!with_q) return nb::make_tuple(nb::none(), R_);
    return nb::make_tuple(to_capsule<T>(std::move(Q), stack.shape(), m, k), R_);
}

/// Turns `G`, whose first K columns are the gradient of the M×K `Q`, into the gradient of A = Q R, by plain loops along
/// the columns. The result is [(G + Q (S + E)) R₁⁻ᵀ, Q gR₂] with R = [R₁ R₂], E = R₂ gR₂ᵀ, and S symmetric with the
/// upper triangle of gR₁ R₁ᵀ − Qᵀ G − E. A `gR` without data is zero. `SE` is workspace of K² entries.
template <class T>
void qr_gradient(MatrixView<const T> Q, const StridedMatrix<T>& R, const StridedMatrix<T>& gR, MatrixView<T> G, T* SE) {
    const Index m = Q.rows, k = Q.cols, n = R.cols;
    const auto add = [m](T* to, const T* column, T factor) {
        for (Index r = 0; r < m; ++r) to[r] += factor * column[r];
    };
    const auto e = [&](Index i, Index j) {
        T sum = 0;
        for (Index l = k; gR.data && l < n; ++l) sum += R.at(i, l) * gR.at(j, l);
        return sum;
    };
    for (Index j = 0; j < k; ++j) {
        for (Index i = 0; i <= j; ++i) {
            const T *q = Q.at(0, i), *g = G.at(0, j), e_ij = e(i, j);
            T s = -e_ij;
            for (Index l = j; gR.data && l < k; ++l) s += gR.at(i, l) * R.at(j, l);
            for (Index r = 0; r < m; ++r) s -= q[r] * g[r];
            SE[j + i * k] = s + e(j, i);
            SE[i + j * k] = s + e_ij;
        }
    }
    for (Index j = k - 1; j >= 0; --j) {
        T* g = G.at(0, j);
        for (Index l = 0; l < k; ++l) add(g, Q.at(0, l), SE[l + j * k]);
        for (Index l = j + 1; l < k; ++l) add(g, G.at(0, l), -R.at(j, l));
        for (Index r = 0; r < m; ++r) g[r] /= R.at(j, j);
    }
    for (Index j = k; j < n; ++j) {
        T* g = G.at(0, j);
        std::fill_n(g, m, T(0));
        for (Index l = 0; gR.data && l < k; ++l) add(g, Q.at(0, l), gR.at(l, j));
    }
}

/// Returns the gradient of A = Q R, for one matrix or a stack, from the gradients of the thin Q and R. One of the two
/// may be missing.
template <class T>
nb::object tensor_qr_gradient(const Array<T>& q, const Array<T>& r, const std::optional<Array<T>>& gq,
                              const std::optional<Array<T>>& gr) {
    const Batch<T, Host> Q(q), R(r);
    const Index m = Q.rows(), k = Q.cols(), n = R.cols(), count = Q.count();
    std::optional<Batch<T, Host>> gQ, gR;
    if (gq) gQ.emplace(*gq);
    if (gr) gR.emplace(*gr);
    Matrix<T> G(m, n * count), SE(k, k);
    run_released(Home<Host>(0), 1, 6.0 * m * k * n * count, [&](Context<Host>& ctx) {
        for (Index b = 0; b < count; ++b) {
            const MatrixView<T> G_b = G.view().col_block({b * n, (b + 1) * n});
            if (gQ) {
                load<T>(ctx, (*gQ)[b], G_b.col_block({0, k}));
            } else {
                std::fill_n(G_b.data, m * k, T(0));
            }
            qr_gradient<T>(ColumnMajor<T, Host>(ctx, Q[b]).view, R[b], gR ? (*gR)[b] : StridedMatrix<T>(), G_b,
                           SE.data());
        }
    });
    return to_capsule<T>(std::move(G), Q.shape(), m, n);
}

}  // namespace

void bind_tensors(nb::module_& module) {
    using namespace nb::literals;
    const auto bind = [&]<class T>(T) {
        module.def("tensor_qr", &tensor_qr<T>, "a"_a.noconvert(), "with_q"_a);
        module.def("tensor_qr_gradient", &tensor_qr_gradient<T>, "q"_a.noconvert(), "r"_a.noconvert(),
                   "gq"_a.noconvert().none(), "gr"_a.noconvert().none());
    };
    bind(double());
    bind(float());
}

}  // namespace quoin::python
