// The tuning study of CAQR on one GPU (Anderson, Ballard, Demmel, Keutzer 2011, Figure 7, and the share of the tree),
// for trees of batches: CSV on standard output. The paper's kernels for 64×16 blocks and quad trees are not among
// them.
//
//   tree_tuning [--rows M] [--cols N] [--probe LEAF_ROWS,PANEL_WIDTH,FAN_IN]
//
// A := Q and R, panel by panel, on a fresh copy of the same random A: the median of 5 runs after 1. update_gflops: 4mnp
// flops / time of the updates of the trailing matrix; factor_gflops: 2mn² / time of the panels; tree_share: the part of
// both times beyond the leaves, which are timed alone. These counts leave out the flops that the tree adds.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "algorithms/one_matrix/batch_tree.hpp"
#include "devices.hpp"
#include "measure/cuda/noise.cuh"

using namespace quoin;

namespace {

struct Shape {
    Index leaf_rows, panel_width, fan_in;
};

enum Stage { FactorLeaves, ApplyLeaves, Factor, Apply, Form, Stages };

class Study {
public:
    Study() {
        for (cudaEvent_t& event : events_) check(cudaEventCreate(&event));
    }

    template <class T>
    void measure(Index m, Index n, const Shape& shape) {
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
        std::printf("%s,%lld,%lld,%lld,%.0f,%.0f,%.3f", to_string(scalar_kind<T>),
                    static_cast<long long>(shape.leaf_rows), static_cast<long long>(shape.panel_width),
                    static_cast<long long>(shape.fan_in), update / ms[Apply] / 1e6, factor / ms[Factor] / 1e6,
                    1 - (ms[FactorLeaves] + ms[ApplyLeaves]) / (ms[Factor] + ms[Apply]));
        for (const double t : ms) std::printf(",%.3f", t);
        std::printf("\n");
        std::fflush(stdout);
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
        SmallBatch<T, Cuda> batch(ctx_, leaves.each, panel.cols, leaves.count());
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
        if (status == cudaSuccess) return;
        std::fprintf(stderr, "tree_tuning: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }

    Context<Cuda> ctx_;
    cudaEvent_t events_[2];
};

}  // namespace

int main(int argc, char** argv) try {
    Index m = 1'000'000, n = 192;
    std::vector<Shape> shapes;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char* value = argv[i + 1];
        if (std::strcmp(argv[i], "--rows") == 0) m = std::atoll(value);
        if (std::strcmp(argv[i], "--cols") == 0) n = std::atoll(value);
        long long s[3];
        if (std::strcmp(argv[i], "--probe") == 0 && std::sscanf(value, "%lld,%lld,%lld", &s[0], &s[1], &s[2]) == 3)
            shapes.push_back({s[0], s[1], s[2]});
    }
    if (shapes.empty()) {
        for (Index leaf_rows : {256, 512, 1024, 2048, 4096}) {
            for (Index panel_width : {16, 32, 64, 96, 192})
                shapes.push_back({leaf_rows, panel_width, 8192 / panel_width});
        }
        for (Index fan_in : {2, 4, 16}) shapes.push_back({1024, 192, fan_in});
    }
    Study study;
    std::printf(
        "dtype,leaf_rows,panel_width,fan_in,update_gflops,factor_gflops,tree_share,factor_leaves_ms,apply_leaves_ms,"
        "factor_ms,apply_ms,form_ms\n");
    for (const Shape& shape : shapes) {
        study.measure<float>(m, n, shape);
        study.measure<double>(m, n, shape);
    }
} catch (const Error& error) {
    std::fprintf(stderr, "tree_tuning: %s\n", error.what());
    return error_info(error.code()).exit_code;
}
