// What quoin.torch calls for matrices in host memory on the short way of an eager call: DLPack's capsules in and out, which PyTorch makes
// and takes in a fraction of a microsecond each. Nothing is checked.

#include <algorithm>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"

namespace quoin::python {
namespace {

/// Returns a DLPack capsule of `shape`, whose matrices lie one after the other in `M`, each by columns.
template <class T>
nb::object to_capsule(Matrix<T>&& M, std::vector<std::size_t> shape, Index rows, Index cols) {
    std::vector<std::int64_t> strides(shape.size() + 2, 1);
    std::int64_t stride = rows * cols;
    for (std::size_t d = shape.size(); d-- > 0;) {
        strides[d] = stride;
        stride *= static_cast<std::int64_t>(shape[d]);
    }
    strides.back() = rows;
    shape.push_back(rows);
    shape.push_back(cols);
    return to_library<T>(std::move(M), shape, strides);
}

/// Returns Q and R of one matrix, thin.
template <class T>
nb::tuple tensor_qr(const Array<T>& array, bool with_q) {
    const StridedMatrix<T> A = matrix_of<T, Host>(array);
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    const Options options{.q = with_q ? QForm::Explicit : QForm::None, .check_finite = false};
    ThinQR<T, Host> thin = result_of<Host>(Home<Host>(0), where_for(0, m, n), flops_of_qr(m, n), [&](Context<Host>& ctx) {
        return factor_matrix<T>(ctx, A, options).take_thin(ctx);
    });
    nb::object R = to_capsule<T>(std::move(thin.R), {}, k, n);
    if (!with_q) return nb::make_tuple(nb::none(), R);
    return nb::make_tuple(to_capsule<T>(std::move(thin.Q), {}, m, k), R);
}

/// G := (G + Q S) R⁻ᵀ, S symmetric with the upper triangle of gR Rᵀ − Qᵀ G, for the m×k Q and G and the k×k R. A `gR` without data
/// is zero. For small matrices: plain loops along the columns. `S` holds k² entries.
template <class T>
void qr_gradient(MatrixView<const T> Q, const StridedMatrix<T>& R, const StridedMatrix<T>& gR, MatrixView<T> G, T* S) {
    const Index m = Q.rows, k = Q.cols;
    for (Index j = 0; j < k; ++j) {
        for (Index i = 0; i <= j; ++i) {
            T sum = 0;
            for (Index l = j; gR.data && l < k; ++l) sum += gR.at(i, l) * R.at(j, l);
            const T *q_i = Q.at(0, i), *g_j = G.at(0, j);
            for (Index r = 0; r < m; ++r) sum -= q_i[r] * g_j[r];
            S[i + j * k] = S[j + i * k] = sum;
        }
    }
    for (Index j = k - 1; j >= 0; --j) {
        T* g_j = G.at(0, j);
        const auto add = [&](const T* column, T factor) {
            for (Index r = 0; r < m; ++r) g_j[r] += factor * column[r];
        };
        for (Index l = 0; l < k; ++l) add(Q.at(0, l), S[l + j * k]);
        for (Index l = j + 1; l < k; ++l) add(G.at(0, l), -R.at(j, l));
        const T r_jj = R.at(j, j);
        for (Index r = 0; r < m; ++r) g_j[r] /= r_jj;
    }
}

/// Returns the gradient of A from those of Q and R, of which one may be missing, for stacks of M×N matrices with M >= N.
template <class T>
nb::object tensor_qr_gradient(const Array<T>& q, const Array<T>& r, const std::optional<Array<T>>& gq,
                              const std::optional<Array<T>>& gr) {
    const Batch<T, Host> Q(q), R(r);
    const Index m = Q.rows(), k = Q.cols(), count = Q.count();
    std::optional<Batch<T, Host>> gQ, gR;
    if (gq) gQ.emplace(*gq);
    if (gr) gR.emplace(*gr);
    Matrix<T> G(m, k * count), S(k, k);
    run_released(Home<Host>(0), 1, 6.0 * m * k * k * count, [&](Context<Host>& ctx) {
        for (Index b = 0; b < count; ++b) {
            const MatrixView<T> G_b = G.view().col_block({b * k, (b + 1) * k});
            if (gQ) {
                load<T>(ctx, (*gQ)[b], G_b);
            } else {
                std::fill_n(G_b.data, m * k, T(0));
            }
            qr_gradient<T>(ColumnMajor<T, Host>(ctx, Q[b]).view, R[b], gR ? (*gR)[b] : StridedMatrix<T>(), G_b, S.data());
        }
    });
    return to_capsule<T>(std::move(G), Q.shape(), m, k);
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
