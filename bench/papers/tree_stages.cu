#include "papers/tree_stages.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "algorithms/one_matrix/batch_tree.hpp"
#include "devices.hpp"
#include "measure/cuda/noise.cuh"

namespace quoin::bench {

namespace {

enum Stage { FactorLeaves, ApplyLeaves, Factor, Apply, Form, Stages };

class StageTimer {
public:
    explicit StageTimer(Context<Cuda>& ctx) : ctx_(ctx) {
        for (cudaEvent_t& event : events_) check(cudaEventCreate(&event));
    }

    ~StageTimer() {
        for (cudaEvent_t event : events_) cudaEventDestroy(event);
    }

    template <class T>
    TreeStages measure(Index m, Index n, const TreeShape& shape) {
        Matrix<T, Cuda> A(ctx_, m, n), W(ctx_, m, n);
        fill_with_noise(0, A.view(), ctx_.stream());
        double update = 0, factor = 0;
        std::array<std::vector<double>, Stages> times;
        for (int run = 0; run < 6; ++run) {
            copy<T>(ctx_, A.view(), W.view());
            std::array<double, Stages> ms = {};
            update = factor = 0;
            for (Index first = 0; first < n; first += shape.panel_width) {
                const Index width = std::min(shape.panel_width, n - first), rows = m - first;
                const auto panel = W.view().block({first, m}, {first, first + width}),
                           right = W.view().block({first, m}, {first + width, n});
                panel_times<T>({shape.leaf_rows, 0, shape.fan_in}, panel, right, ms);
                factor += 2.0 * rows * width * width;
                update += 4.0 * rows * width * right.cols;
            }
            for (int s = 0; run > 0 && s < Stages; ++s) times[s].push_back(ms[s]);
        }
        std::array<double, Stages> ms;
        for (int s = 0; s < Stages; ++s) {
            std::sort(times[s].begin(), times[s].end());
            ms[s] = times[s][times[s].size() / 2];
        }
        return {update > 0 ? update / ms[Apply] / 1e6 : -1,
                factor / ms[Factor] / 1e6,
                1 - (ms[FactorLeaves] + ms[ApplyLeaves]) / (ms[Factor] + ms[Apply]),
                ms[FactorLeaves],
                ms[ApplyLeaves],
                ms[Factor],
                ms[Apply],
                ms[Form]};
    }

private:
    /// Adds the milliseconds of a panel's stages, and multiplies the columns on its right by Qᵀ.
    template <class T>
    void panel_times(const TreePlan& plan, MatrixView<T, Cuda> panel, MatrixView<T, Cuda> right,
                     std::array<double, Stages>& ms) {
        Matrix<T, Cuda> R(ctx_, panel.cols, panel.cols);
        const BatchLevel leaves = levels_of(plan, panel.rows, panel.cols).front();
        const Members all{{}, leaves.count()};
        const auto matrices = [&](MatrixView<T, Cuda> X) {
            return BatchView<T, Cuda>(X.data, leaves.each, X.cols, X.ld, leaves.each, leaves.count());
        };
        SmallBatch<T, Cuda> batch(ctx_, leaves.each, panel.cols, leaves.count(), nullptr, leaves.of);
        BatchTree<T, Cuda> tree;
        ms[FactorLeaves] += time([&] { batch.factor(ctx_, matrices(panel), all, false); });
        ms[Factor] += time([&] { tree.factor(ctx_, plan, panel, true, true, R.view()); });
        if (right.cols > 0) {
            ms[Apply] += time([&] { tree.apply_q(ctx_, Op::Transpose, right); });
            // Q_leavesᵀ once more, and back
            ms[ApplyLeaves] += time([&] { batch.apply_q(ctx_, Op::Transpose, all, matrices(right), matrices(right)); });
            batch.apply_q(ctx_, Op::None, all, matrices(right), matrices(right));
        }
        ms[Form] += time([&] { tree.form_q(ctx_, panel); });
    }
    template <class Work>
    double time(Work work) {
        check(cudaEventRecord(events_[0], ctx_.stream()));
        work();
        check(cudaEventRecord(events_[1], ctx_.stream()));
        check(cudaStreamSynchronize(ctx_.stream()));
        float ms = 0;
        check(cudaEventElapsedTime(&ms, events_[0], events_[1]));
        return ms;
    }
    static void check(cudaError_t status) {
        if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
    }

    Context<Cuda>& ctx_;
    cudaEvent_t events_[2];
};

}  // namespace

template <class T>
TreeStages measure_tree_stages(Context<Cuda>& ctx, Index m, Index n, const TreeShape& shape) {
    return StageTimer(ctx).measure<T>(m, n, shape);
}
template TreeStages measure_tree_stages<float>(Context<Cuda>&, Index, Index, const TreeShape&);
template TreeStages measure_tree_stages<double>(Context<Cuda>&, Index, Index, const TreeShape&);

}  // namespace quoin::bench
