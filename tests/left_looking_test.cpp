// Householder QR of a matrix in slow memory: the law on every class of matrices, many slabs, ragged ones, and the same
// bits as in fast memory where the reflectors are applied in the same order.

#include "algorithms/out_of_core/left_looking.hpp"

#include <gtest/gtest.h>

#include <string>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

/// Slow memory that remembers what was asked of it.
template <class T>
class Remembering {
public:
    explicit Remembering(MatrixView<T> A) : A_(A) {}
    Index rows() const { return A_.rows; }
    Index cols() const { return A_.cols; }
    void read(Context<Host>& ctx, Range rows, Range cols, MatrixView<T> to) {
        quoin::copy<T>(ctx, A_.block(rows, cols), to);
        in += rows.size() * cols.size();
    }
    void write(Context<Host>& ctx, MatrixView<const T> from, Range rows, Range cols) {
        quoin::copy<T>(ctx, from, A_.block(rows, cols));
        out += rows.size() * cols.size();
    }
    Index in = 0, out = 0;

private:
    MatrixView<T> A_;
};

struct Shape {
    Index m, n;
    Slabs slabs;
};
const Shape shapes[] = {{1, 1, {1, 1, 1}},     {40, 0, {4, 4, 4}},   {0, 7, {4, 4, 4}},    {40, 40, {8, 4, 4}},
                        {90, 37, {8, 4, 8}},   {37, 90, {12, 4, 8}}, {64, 63, {64, 8, 8}}, {61, 61, {5, 5, 5}},
                        {200, 50, {10, 5, 5}}, {33, 34, {16, 8, 24}}};

template <class T>
class LeftLooking : public testing::Test {
protected:
    Context<Host> ctx{3};

    /// A = QR in place of A: V and R, then Q; whether all is as it must be.
    void expect_law(MatrixView<const T> A, const Slabs& slabs) {
        const Index m = A.rows, n = A.cols, k = std::min(m, n);
        Padded<T> memory(A);
        Remembering<T> slow(memory.view());
        Matrix<T> Tf = filled<T>(slabs.panel, k, std::numeric_limits<T>::quiet_NaN());
        Matrix<T> R(k, n);
        {
            LeftLookingQR<T, Host, Remembering<T>> qr(ctx, slow, slabs, Tf.view());
            for (Index j = 0; j < qr.count(); ++j) qr.factor(j);
            copy_triangle<T>(ctx, memory.view().row_block({0, k}), R.view());
            // moved: A, and the trapezoid of V left of each slab
            Index in = m * n;
            for (Index j = 0; j < qr.count(); ++j) {
                const Index before = std::min(k, j * slabs.slab);
                for (Index b = 0; b < before; b += slabs.v_block)
                    in += (m - b) * (std::min(before, b + slabs.v_block) - b);
            }
            EXPECT_EQ(slow.in, in);
            EXPECT_EQ(slow.out, m * n);
            for (Index j = qr.q_count() - 1; j >= 0; --j) qr.form_q(j, slow);
            qr.finish();
        }
        EXPECT_TRUE(memory.padding_intact());
        const MatrixView<const T> Q = memory.view().col_block({0, k});
        EXPECT_TRUE(is_finite<T>(Q) && is_finite<T>(R.view()));
        EXPECT_LE(orthogonality_error<T>(Q, k), law);
        EXPECT_LE(residual_error<T>(A, Q, R.view()), law);
        EXPECT_LE(column_residual_error<T>(A, Q, R.view()), law);
    }
};
TYPED_TEST_SUITE(LeftLooking, Scalars);

TYPED_TEST(LeftLooking, ObeysTheLaw) {
    for (const Gallery g : gallery()) {
        for (const Shape& shape : shapes) {
            if (shape.m == 0 || shape.n == 0) continue;
            SCOPED_TRACE(to_string(g) + " " + shape_name(shape.m, shape.n) + " slabs of " +
                         std::to_string(shape.slabs.slab));
            const Matrix<TypeParam> A = generate<TypeParam>(g, shape.m, shape.n);
            this->expect_law(A.view(), shape.slabs);
        }
    }
}

TYPED_TEST(LeftLooking, TakesEmptyMatrices) {
    for (const Shape& shape : shapes) {
        if (shape.m > 0 && shape.n > 0) continue;
        const Matrix<TypeParam> A(shape.m, shape.n);
        this->expect_law(A.view(), shape.slabs);
    }
}

TYPED_TEST(LeftLooking, GoesOnWhereAnotherStopped) {
    using T = TypeParam;
    const Index m = 70, n = 52;
    const Slabs slabs{12, 4, 8};
    const Matrix<T> A = random_normal<T>(m, n);
    Matrix<T> whole = test::copy<T>(A.view()), parts = test::copy<T>(A.view()), T1(4, n), T2(4, n);
    HostMemory<T> slow_whole(whole.view()), slow_parts(parts.view());
    LeftLookingQR<T, Host, HostMemory<T>> one(this->ctx, slow_whole, slabs, T1.view());
    for (Index j = 0; j < one.count(); ++j) one.factor(j);
    for (Index j = 0; j < one.count(); ++j) {
        LeftLookingQR<T, Host, HostMemory<T>> step(this->ctx, slow_parts, slabs, T2.view());
        step.factor(j);
    }
    EXPECT_TRUE(same_bits<T>(whole.view(), parts.view()));
}

TYPED_TEST(LeftLooking, NamesTheFirstBadEntry) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(30, 20), Tf(4, 20);
    A(7, 13) = std::numeric_limits<T>::quiet_NaN();
    HostMemory<T> slow(A.view());
    LeftLookingQR<T, Host, HostMemory<T>> qr(this->ctx, slow, {8, 4, 4}, Tf.view());
    qr.factor(0);
    try {
        qr.factor(1);
        FAIL() << "NaN went through";
    } catch (const NonFiniteEntry& entry) {
        EXPECT_EQ(entry.row, 7);
        EXPECT_EQ(entry.col, 13);
    }
}

TYPED_TEST(LeftLooking, StopsWhenAsked) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(30, 20), Tf(4, 20);
    HostMemory<T> slow(A.view());
    LeftLookingQR<T, Host, HostMemory<T>> qr(this->ctx, slow, {8, 4, 4}, Tf.view());
    this->ctx.request_stop();
    EXPECT_THROW(qr.factor(0), Interrupted);
    this->ctx.clear_stop();
}

}  // namespace
}  // namespace quoin::test
