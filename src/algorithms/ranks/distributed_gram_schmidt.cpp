// Block classical Gram-Schmidt over ranks, reorthogonalised always (Barlow, Smoktunowicz 2013).

#include <fmt/format.h>

#include <numeric>

#include "algorithms/ranks/distributed.hpp"
#include "algorithms/shared/matrix_checks.hpp"

namespace quoin {

namespace {

constexpr Index max_rank_passes = 5;

/// Whether ‖H‖_F <= 1/2 for H = QᵀW and orthonormal W. The columns of W − QH are far from dependent then, σ² >= 3/4,
/// and their QR loses no orthogonality. Throws NumericalBreakdown if not and the pass is the `last` one.
template <class T, class D>
bool certify(Context<D>& ctx, MatrixView<const T, D> H, bool last) {
    std::vector<Real<T>> norms(H.cols);
    column_norms<T>(ctx, H, norms);
    double squares = 0;
    for (const auto norm : norms) squares += static_cast<double>(norm) * static_cast<double>(norm);
    if (squares <= 0.25 || !last) return squares <= 0.25;
    const auto worst = std::max_element(norms.begin(), norms.end()) - norms.begin();
    const Index column = H.rows + static_cast<Index>(worst);
    throw NumericalBreakdown(
        fmt::format("column {} depends on the columns before it, and rounding errors leave none in its place", column),
        column);
}

}  // namespace

template <class T, class D>
DistributedGramSchmidt<T, D>::DistributedGramSchmidt(Context<D>& ctx, Index h) {
    if (h < 0) throw InvalidArgument(fmt::format("DistributedGramSchmidt: the number of rows is {}", h));
    Q_ = Matrix<T, D>(ctx, h, 0);
    R_ = Matrix<T, D>(ctx, 0, 0);
}

template <class T, class D>
void DistributedGramSchmidt<T, D>::append(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A) {
    const Index k = cols(), p = A.cols;
    JointCall call(host_context(ctx), comm, RankOperation::Append);
    Matrix<T, D> W, H1, H2, part, R;
    Matrix<int, D> exponents;
    call.attempt([&] {
        check_matrix(A);
        if (A.rows != rows())
            throw InvalidArgument(fmt::format("append: A has {} rows, and this rank of Q {}", A.rows, rows()));
        require_finite<T>(ctx, A);
        if (k + p > Q_.cols()) {
            Matrix<T, D> more(ctx, A.rows, std::max(2 * Q_.cols(), k + p));
            copy<T>(ctx, q(), more.view().col_block({0, k}));
            Q_ = std::move(more);
        }
        W = copy_of<T, D>(ctx, A);
        for (Matrix<T, D>* H : {&H1, &H2, &part}) *H = Matrix<T, D>(ctx, k, p);
        R = Matrix<T, D>(ctx, k + p, k + p);
        exponents = Matrix<int, D>(ctx, p, 1);
    });
    const auto heights = call.agree(
        {{"the number of columns so far", k}, {"the number of columns of A", p}, {"the size of an element", sizeof(T)}},
        A.rows);
    if (const Index m = std::accumulate(heights.begin(), heights.end(), Index{0}); k + p > m)
        throw InvalidArgument(fmt::format("append: {} columns after {} are more than the {} rows", p, k, m));
    // columns of order 1, so that no product overflows
    choose_exponents<T, D>(ctx, call, comm, A, exponents.view());
    call.attempt([&] { scale_columns<T>(ctx, exponents.view(), -1, Part::All, W.view()); });

    const auto project = [&](MatrixView<T, D> H) {
        call.attempt([&] {
            throw_if_stopped(ctx);
            multiply_transposed<T>(ctx, q(), W.view(), H);
        });
        sum_on_all<T, D>(ctx, call, comm, H, part.view());
        call.attempt([&] { subtract_product<T>(ctx, q(), H, W.view()); });
    };
    const auto orthonormalize = [&] {
        call.agree();
        auto f = qr<T, D>(ctx, comm, std::as_const(W).view(), {.q = QForm::Explicit});
        Matrix<T, D> S = f.r(ctx);
        W = std::move(f).take_q(ctx);
        return S;
    };
    if (k > 0) project(H1.view());
    Matrix<T, D> S = orthonormalize();
    // twice, and again if a column depends on the columns before it: W consists of its rounding errors then
    bool certified = k == 0;
    Index pass = 1;
    while (!certified) {
        ++pass;
        project(H2.view());
        call.attempt([&] { certified = certify<T, D>(ctx, H2.view(), pass == max_rank_passes); }, JointCall::Of::All);
        const Matrix<T, D> S2 = orthonormalize();
        // H₁ := H₁ + H₂S₁,  S₁ := S₂S₁
        call.attempt([&] {
            multiply_triangle<T>(ctx, Side::Right, Triangle::Upper, Op::None, S.view(), H2.view());
            add<T>(ctx, H2.view(), H1.view());
            multiply_upper<T>(ctx, S2.view(), S.view(), S.view());
        });
    }
    call.attempt([&] {
        const Range old{0, k}, appended{k, k + p};
        scale_columns<T>(ctx, exponents.view(), 1, Part::All, H1.view());
        scale_columns<T>(ctx, exponents.view(), 1, Part::Upper, S.view());
        set_zero(ctx, R.view());
        copy<T>(ctx, r(), R.view().block(old, old));
        copy<T>(ctx, H1.view(), R.view().block(old, appended));
        copy<T>(ctx, S.view(), R.view().block(appended, appended));
        copy<T>(ctx, W.view(), Q_.view().col_block(appended));
        ctx.wait();
    });
    call.agree();
    R_ = std::move(R);
}

#define QUOIN_INSTANTIATE(T, D) template class DistributedGramSchmidt<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
