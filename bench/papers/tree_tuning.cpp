// The tuning study of CAQR on one GPU (Anderson, Ballard, Demmel, Keutzer 2010 and 2011, Figure 7, and the share of the
// tree), for trees of batches. The papers' own, quad trees of 64×16 blocks and trees of 128×16, come first.

#include "interrupt.hpp"
#include "measure/cuda/device.hpp"
#include "papers/tree_stages.hpp"
#include "results.hpp"

namespace quoin::cli {

void bench_tree_tuning(const BenchArguments& arguments) {
    Context<Cuda> ctx = device_context();
    const InterruptGuard guard(ctx);
    Results results(arguments);
    results.describe(bench::describe_device());
    results.say("{}\n", bench::describe_device());
    std::vector<bench::TreeShape> trees = {{64, 16, 4}, {128, 16, 8}};
    for (const Index leaf_rows : {256, 512, 1024, 2048, 4096})
        for (const Index panel_width : {16, 32, 64, 96, 192})
            trees.push_back({leaf_rows, panel_width, 8192 / panel_width});
    for (const Index fan_in : {2, 4, 16}) trees.push_back({1024, 192, fan_in});
    for (const Shape shape : arguments.shapes_or({{1000000, 192}})) {
        for (const bench::TreeShape& tree : trees)
            arguments.for_each_dtype({ScalarKind::F32, ScalarKind::F64}, [&]<class T>(T) {
                throw_if_interrupted();
                const auto stages = bench::measure_tree_stages<T>(ctx, shape.rows, shape.cols, tree);
                JsonLine line = case_line(shape, scalar_kind<T>);
                line.add("leaf_rows", tree.leaf_rows).add("panel_width", tree.panel_width).add("fan_in", tree.fan_in);
                line.add_measured("update_gflops", stages.update_gflops).add("factor_gflops", stages.factor_gflops);
                line.add("tree_share", stages.tree_share).add("factor_leaves_ms", stages.factor_leaves_ms);
                line.add("apply_leaves_ms", stages.apply_leaves_ms).add("factor_ms", stages.factor_ms);
                line.add("apply_ms", stages.apply_ms).add("form_ms", stages.form_ms);
                results.add(line);
            });
    }
}

}  // namespace quoin::cli
