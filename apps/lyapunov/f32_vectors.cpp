#include "lyapunov/column_blocks.hpp"
#include "lyapunov/same_system.hpp"

namespace quoin {
namespace {

class F32Vectors final : public SameSystem<float, Host> {
public:
    using SameSystem::SameSystem;

    void advance(Context<Host>& ctx, Index steps, std::span<double> x, MatrixView<float> X) override {
        const Index n = dimension(), p = X.cols;
        if (X_.cols() != p) X_ = Matrix<double>(n, p);
        const double moved = 10 * static_cast<double>(n * p);
        for_each_block(ctx, moved, X_.view(), block_columns, [&](Index b, MatrixView<double> block) {
            for (Index j = 0; j < block.cols; ++j) std::copy_n(X.at(0, b * block_columns + j), n, block.at(0, j));
        });
        system().advance(ctx, steps, x, X_.view());
        for_each_block(ctx, moved, X_.view(), block_columns, [&](Index b, MatrixView<double> block) {
            for (Index j = 0; j < block.cols; ++j) std::copy_n(block.at(0, j), n, X.at(0, b * block_columns + j));
        });
    }

private:
    static constexpr Index block_columns = 16;
    Matrix<double> X_;  // the vectors in f64
};

}  // namespace

std::unique_ptr<TangentMap<float>> with_f32_vectors(std::unique_ptr<TangentMap<>> system) {
    if (!system) throw InvalidArgument("with_f32_vectors needs a system, and has none");
    return std::make_unique<F32Vectors>(std::move(system));
}

}  // namespace quoin
