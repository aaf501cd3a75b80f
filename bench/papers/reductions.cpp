// Section IV.E of Anderson, Ballard, Demmel and Keutzer (2010 and 2011): the kernel apply_qt_h by each strategy of
// reduction.

#include <algorithm>

#include "interrupt.hpp"
#include "measure/cuda/device.hpp"
#include "measure/cuda/random.hpp"
#include "papers/reduction_strategies.hpp"
#include "results.hpp"

namespace quoin::cli {

void bench_reductions(const BenchArguments& arguments) {
    constexpr Index entries = Index(1) << 24;  // of all blocks together: more than a GPU's caches hold
    Context<Cuda> ctx = device_context();
    const InterruptGuard guard(ctx);
    Results results(arguments);
    results.describe(bench::describe_device());
    results.say("{}\napply_qt_h, 4mn² flops for a block of m×n\n", bench::describe_device());
    for (const bench::UpdateBlock block : {bench::UpdateBlock{64, 8},
                                           {128, 8},
                                           {256, 8},
                                           {64, 16},
                                           {128, 16},
                                           {256, 16},
                                           {32, 32},
                                           {64, 32},
                                           {128, 32}}) {
        const Index count = entries / (block.rows * block.cols);
        Matrix<float, Cuda> V(ctx, block.rows, block.cols * count), C(ctx, block.rows, block.cols * count);
        bench::fill_normal(ctx, V);
        bench::fill_normal(ctx, C);
        // I − τvvᵀ keeps norms about as they are
        Matrix<float> taus(block.cols, count);
        std::fill_n(taus.data(), block.cols * count, 2.0f / static_cast<float>(block.rows));
        const Matrix<float, Cuda> tau = copy_to_device<float>(ctx, taus.view());
        for (const bench::Reduction reduction : bench::reductions) {
            throw_if_interrupted();
            const double seconds = median_of(
                [&] {
                    return bench::seconds_of(ctx, [&] {
                        bench::apply_block_reflectors(ctx, reduction, block, count, V.data(), tau.data(), C.data());
                    });
                },
                0);
            const double rate = 4e-9 * static_cast<double>(entries) * block.cols / seconds;
            JsonLine line = case_line({block.rows, block.cols}, ScalarKind::F32);
            line.add("code", to_string(reduction)).add("seconds", seconds).add("gflops", rate);
            results.add(line);
        }
    }
}

}  // namespace quoin::cli
