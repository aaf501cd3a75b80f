#pragma once

#include <omp.h>

#include <algorithm>
#include <exception>

#include "host/parallel.hpp"

namespace quoin {

/// work(b, X(:, b·width : (b+1)·width)) for every b, shared out to the threads that `flops` are worth; once, without
/// columns, where X has none. The blocks do not depend on the number of threads. What work throws is thrown, and
/// Interrupted if the context was asked to stop.
template <class Work>
void for_each_block(Context<Host>& ctx, double flops, MatrixView<double> X, Index width, Work&& work) {
    const Index count = std::max<Index>(1, (X.cols + width - 1) / width);
    const auto block = [&](Index b) { return X.col_block({b * width, std::min(X.cols, (b + 1) * width)}); };
    const host::Team team = host::team(ctx, flops);
    const int threads = static_cast<int>(std::min<Index>(count, team));
    if (threads == 1) {
        for (Index b = 0; b < count; ++b) {
            team.throw_if_stopped();
            work(b, block(b));
        }
        return;
    }
    std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (Index b = 0; b < count; ++b) {
        try {
            team.throw_if_stopped();
            work(b, block(b));
        } catch (...) {
#pragma omp critical(quoin_block_failure)
            failure = std::current_exception();
        }
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace quoin
