// The tuning study of CAQR on one GPU (Anderson, Ballard, Demmel, Keutzer 2011, Figure 7, and the share of the tree):
// CSV on standard output.
//
//   tree_tuning [--rows M] [--cols N] [--probe LEAF_ROWS,PANEL_WIDTH,FAN_IN,DOMAIN_LEAVES]
//
// A := Q and R, panel by panel, on a fresh copy of the same random A, with an event between two primitives: the median
// of 5 runs after 1, stage by stage. total_ms: without events in between, so that nodes are factored while leaves are
// updated, as the library does. update_gflops: 4mnp flops / time of apply_leaves in the factorization; factor_gflops:
// 2mn² / time of factor_leaves; tree_share: the part of the factorization's time in factor_nodes and apply_nodes. These
// counts leave out the flops that the tree adds.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "devices.hpp"
#include "measure/cuda/noise.cuh"
#include "quoin/io.hpp"

using namespace quoin;

namespace {

struct Shape {
    Index leaf_rows, panel_width, fan_in, domain_leaves;
};

enum Stage {
    FactorLeaves,
    FactorNodes,
    ApplyLeaves,
    ApplyNodes,
    FormApplyLeaves,
    FormApplyNodes,
    FormPanel,
    Other,
    Stages
};

class Study {
public:
    template <class T>
    void measure(Index m, Index n, const Shape& shape) {
        Matrix<T, Cuda> A(ctx_, m, n), W(ctx_, m, n);
        fill_with_noise(0, A.view(), ctx_.stream());
        std::vector<PanelTree> trees;
        Index t_cols = 0;
        for (Index first = 0; first < n; first += shape.panel_width) {
            const Index width = std::min(shape.panel_width, n - first);
            trees.push_back({m - first, width, shape.panel_width, shape.leaf_rows,
                             shape.leaf_rows * shape.domain_leaves, shape.fan_in});
            t_cols += trees.back().t_cols();
        }
        Matrix<T, Cuda> Tf(ctx_, shape.panel_width, t_cols);
        std::array<std::vector<double>, Stages + 1> times;
        for (int run = 0; run < 6; ++run) {
            copy<T>(ctx_, A.view(), W.view());
            const auto stages = factor_and_form<T>(true, trees, shape.panel_width, W.view(), Tf.view());
            copy<T>(ctx_, A.view(), W.view());
            const auto whole = factor_and_form<T>(false, trees, shape.panel_width, W.view(), Tf.view());
            if (run == 0) continue;
            for (int s = 0; s < Stages; ++s) times[s].push_back(stages[s]);
            times[Stages].push_back(whole[Other]);
        }
        std::array<double, Stages + 1> ms;
        for (int s = 0; s <= Stages; ++s) {
            std::sort(times[s].begin(), times[s].end());
            ms[s] = times[s][times[s].size() / 2];
        }
        double update = 0, factor = 0;
        Index first = 0;
        for (const PanelTree& tree : trees) {
            first += tree.width;
            factor += 2.0 * tree.rows * tree.width * tree.width;
            update += 4.0 * tree.rows * tree.width * (n - first);
        }
        const double nodes = ms[FactorNodes] + ms[ApplyNodes];
        std::printf("%s,%lld,%lld,%lld,%lld,%.0f,%.0f,%.3f", to_string(scalar_kind<T>),
                    static_cast<long long>(shape.leaf_rows), static_cast<long long>(shape.panel_width),
                    static_cast<long long>(shape.fan_in), static_cast<long long>(shape.domain_leaves),
                    update / ms[ApplyLeaves] / 1e6, factor / ms[FactorLeaves] / 1e6,
                    nodes / (nodes + ms[FactorLeaves] + ms[ApplyLeaves]));
        for (const double t : ms) std::printf(",%.3f", t);
        std::printf("\n");
        std::fflush(stdout);
    }

private:
    /// Milliseconds of every stage, or all of them as `Other`.
    template <class T>
    std::array<double, Stages> factor_and_form(bool staged, const std::vector<PanelTree>& trees, Index panel_width,
                                               MatrixView<T, Cuda> W, MatrixView<T, Cuda> Tf) {
        std::vector<Stage> order;
        const auto mark = [&](Stage stage, bool always = false) {
            if (!staged && !always) return;
            order.push_back(stage);
            if (events_.size() < order.size()) {
                events_.emplace_back();
                check(cudaEventCreate(&events_.back()));
            }
            check(cudaEventRecord(events_[order.size() - 1], ctx_.stream()));
        };
        const auto panel = [&](std::size_t p) {
            const Index first = static_cast<Index>(p) * panel_width;
            return W.block({first, W.rows}, {first, first + trees[p].width});
        };
        const auto trailing = [&](std::size_t p) {
            const Index first = static_cast<Index>(p) * panel_width;
            return W.block({first, W.rows}, {first + trees[p].width, W.cols});
        };
        std::vector<MatrixView<T, Cuda>> factors;
        Index t_col = 0;
        for (const PanelTree& tree : trees) {
            factors.push_back(Tf.block({0, tree.inner_block}, {t_col, t_col + tree.t_cols()}));
            t_col += tree.t_cols();
        }
        mark(Other, true);
        for (std::size_t p = 0; p < trees.size(); ++p) {
            const PanelTree& tree = trees[p];
            const auto V = panel(p), C = trailing(p);
            factor_leaves<T>(ctx_, tree, V, factors[p]);
            mark(FactorLeaves);
            if (staged || C.cols == 0) {
                for (Index l = 0; l < tree.levels(); ++l) factor_nodes<T>(ctx_, tree, l, V, factors[p]);
                mark(FactorNodes);
                if (C.cols == 0) continue;
                apply_leaves<T>(ctx_, tree, Op::Transpose, V, factors[p], C);
                mark(ApplyLeaves);
            } else {
                factor_nodes_and_apply_leaves<T>(ctx_, tree, V, factors[p], C);
            }
            for (Index l = 0; l < tree.levels(); ++l) apply_nodes<T>(ctx_, tree, l, Op::Transpose, V, factors[p], C);
            mark(ApplyNodes);
        }
        for (std::size_t p = trees.size(); p-- > 0;) {
            const PanelTree& tree = trees[p];
            const auto V = panel(p), C = trailing(p);
            if (C.cols > 0) {
                set_identity<T>(ctx_, C.cols, C.row_block({0, tree.width}));
                mark(Other);
                for (Index l = tree.levels() - 1; l >= 0; --l)
                    apply_nodes<T>(ctx_, tree, l, Op::None, V, factors[p], C);
                mark(FormApplyNodes);
            }
            set_root<T>(ctx_, V);
            for (Index l = tree.levels() - 1; l >= 0; --l) form_nodes<T>(ctx_, tree, l, V, factors[p]);
            mark(FormPanel);
            form_leaves<T>(ctx_, tree, V, factors[p], C);
            mark(C.cols > 0 ? FormApplyLeaves : FormPanel);
        }
        if (!staged) mark(Other, true);
        check(cudaStreamSynchronize(ctx_.stream()));
        std::array<double, Stages> stages = {};
        for (std::size_t e = 1; e < order.size(); ++e) {
            float ms = 0;
            check(cudaEventElapsedTime(&ms, events_[e - 1], events_[e]));
            stages[order[e]] += ms;
        }
        return stages;
    }
    static void check(cudaError_t status) {
        if (status == cudaSuccess) return;
        std::fprintf(stderr, "tree_tuning: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }

    Context<Cuda> ctx_;
    std::vector<cudaEvent_t> events_;
};

}  // namespace

int main(int argc, char** argv) {
    Index m = 1'000'000, n = 192;
    std::vector<Shape> shapes;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char* value = argv[i + 1];
        if (std::strcmp(argv[i], "--rows") == 0) m = std::atoll(value);
        if (std::strcmp(argv[i], "--cols") == 0) n = std::atoll(value);
        long long s[4];
        if (std::strcmp(argv[i], "--probe") == 0 &&
            std::sscanf(value, "%lld,%lld,%lld,%lld", &s[0], &s[1], &s[2], &s[3]) == 4) {
            shapes.push_back({s[0], s[1], s[2], s[3]});
        }
    }
    if (shapes.empty()) {
        for (Index leaf_rows : {64, 128, 256}) {
            for (Index panel_width : {8, 16, 32}) shapes.push_back({leaf_rows, panel_width, 10, 1024 / leaf_rows});
        }
        for (Index fan_in : {2, 4, 16}) shapes.push_back({128, 32, fan_in, 8});
        for (Index domain_leaves : {1, 4, 10, 16}) shapes.push_back({128, 32, 10, domain_leaves});
    }
    Study study;
    std::printf(
        "dtype,leaf_rows,panel_width,fan_in,domain_leaves,update_gflops,factor_gflops,tree_share,factor_leaves_ms,"
        "factor_nodes_ms,apply_leaves_ms,apply_nodes_ms,form_apply_leaves_ms,form_apply_nodes_ms,form_panel_ms,other_"
        "ms,"
        "total_ms\n");
    for (const Shape& shape : shapes) {
        study.measure<float>(m, n, shape);
        study.measure<double>(m, n, shape);
    }
}
