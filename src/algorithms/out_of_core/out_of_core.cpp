// The front of the out-of-core factorizations of a matrix in the host's memory.

#include "quoin/out_of_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "algorithms/instantiate.hpp"
#include "algorithms/out_of_core/gram_schmidt.hpp"
#include "algorithms/out_of_core/left_looking.hpp"

namespace quoin {

namespace {

template <class T>
void check_operand(const char* name, MatrixView<const T> A, Index rows, Index cols) {
    if (A.rows != rows || A.cols != cols) {
        throw InvalidArgument(fmt::format("{} must be {} x {}, and is {} x {}", name, rows, cols, A.rows, A.cols));
    }
    if (A.ld < std::max<Index>(1, A.rows)) {
        throw InvalidArgument(fmt::format("{}: ld must be at least max(1, rows) = {}, and is {}", name,
                                          std::max<Index>(1, A.rows), A.ld));
    }
    if (!A.data && !A.empty()) throw InvalidArgument(fmt::format("{} has no data", name));
}

/// What is measured around a factorization.
template <class T, class D>
class Measured {
public:
    Measured(Context<D>& ctx, MatrixView<const T> A, OutOfCoreOptions options)
        : ctx_(ctx), before_(memory_in_use(ctx)) {
        check_operand<T>("A", A, A.rows, A.cols);
        if (options.memory_bytes < 0 || !(options.memory_bytes == options.memory_bytes)) {
            throw InvalidArgument("memory_bytes must not be negative");
        }
        if (options.memory_bytes == 0) options.memory_bytes = 0.9 * before_.obtainable;
        report.plan = plan_out_of_core<T, D>(A.rows, A.cols, options);
        // the rest is for small matrices
        limit_workspace(ctx, 0.8 * (report.plan.workspace_bytes - Tuning<D>::library_bytes));
        start_ = std::chrono::steady_clock::now();
        if (ctx.trace()) since_ = ctx.trace()->now();
    }
    Measured(const Measured&) = delete;
    ~Measured() { limit_workspace(ctx_, 0); }
    OutOfCoreReport finish(const BytesMoved& moved) {
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        report.bytes_in = moved.in;
        report.bytes_out = moved.out;
        if constexpr (!std::is_same_v<D, Host>) {
            report.memory_bytes = memory_in_use(ctx_).taken - (before_.taken - before_.own);
            if (ctx_.trace()) report.hidden = hidden_copies(*ctx_.trace(), since_);
        }
        return report;
    }
    OutOfCoreReport report;

private:
    Context<D>& ctx_;
    MemoryInUse before_;
    std::chrono::steady_clock::time_point start_;
    double since_ = 0;
};

/// Tells how far the context has come with `flops` whenever it is asked to.
template <class D>
class Progress {
public:
    Progress(Context<D>& ctx, const OutOfCoreOptions& options, double flops)
        : ctx_(ctx), tell_(options.progress), flops_(flops), start_(ctx.flops_done()) {}
    void operator()() const {
        if (tell_ && flops_ > 0) tell_(std::min(1.0, (ctx_.flops_done() - start_) / flops_));
    }

private:
    Context<D>& ctx_;
    const std::function<void(double)>& tell_;
    double flops_, start_;
};

template <class T, class D>
BytesMoved by_gram_schmidt(Context<D>& ctx, const OutOfCorePlan& plan, MatrixView<T> A, MatrixView<T> R,
                           const Progress<D>& progress) {
    HostMemory<T> slow_a(A), slow_r(R);
    {
        OutOfCoreGramSchmidt<T, D, HostMemory<T>, HostMemory<T>> gram_schmidt(ctx, slow_a, slow_r, plan, progress);
        if (plan.method == OutOfCoreMethod::Recursive) {
            gram_schmidt.by_recursion();
        } else {
            gram_schmidt.by_blocks();
        }
        // R := R D⁻¹
        if (gram_schmidt.scaled()) {
            scale_columns<T>(host_beside(ctx), gram_schmidt.exponents().view(), 1, Part::Upper, R);
        }
    }
    return {slow_a.moved().in + slow_r.moved().in, slow_a.moved().out + slow_r.moved().out};
}

}  // namespace

template <class T, class D>
OutOfCoreReport qr_out_of_core(Context<D>& ctx, MatrixView<T> A, MatrixView<T> R, const OutOfCoreOptions& options) {
    OutOfCoreOptions with_q = options;
    with_q.form_q = true;
    check_operand<T>("R", R, std::min(A.rows, A.cols), A.cols);
    Measured<T, D> measured(ctx, A, with_q);
    const OutOfCorePlan& plan = measured.report.plan;
    const Index k = std::min(A.rows, A.cols);
    const Progress<D> progress(ctx, options, plan.flops);
    if (plan.method != OutOfCoreMethod::Householder) {
        return measured.finish(by_gram_schmidt<T, D>(ctx, plan, A, R, progress));
    }
    HostMemory<T> slow(A);
    {
        Matrix<T, D> Tf(ctx, plan.panel, k);
        LeftLookingQR<T, D, HostMemory<T>> qr(ctx, slow, slabs_of(plan), Tf.view());
        for (Index j = 0; j < qr.count(); ++j) {
            qr.factor(j, plan.check_finite);
            progress();
        }
        qr.finish();
        store_triangle<T>(host_beside(ctx), A.row_block({0, k}), R);
        for (Index j = qr.q_count() - 1; j >= 0; --j) {
            qr.form_q(j, slow);
            progress();
        }
        qr.finish();
    }
    return measured.finish(slow.moved());
}

template <class T, class D>
OutOfCoreReport factor_out_of_core(Context<D>& ctx, MatrixView<T> A, MatrixView<T> tau,
                                   const OutOfCoreOptions& options) {
    if (options.method != OutOfCoreMethod::Householder) {
        throw InvalidArgument(
            fmt::format("LAPACK's format is householder's, and the method is {}", to_string(options.method)));
    }
    OutOfCoreOptions without_q = options;
    without_q.form_q = false;
    Measured<T, D> measured(ctx, A, without_q);
    const OutOfCorePlan& plan = measured.report.plan;
    const Index k = std::min(A.rows, A.cols);
    check_operand<T>("tau", tau, k, 1);
    const Progress<D> progress(ctx, options, plan.flops);
    HostMemory<T> slow(A);
    {
        Matrix<T, D> Tf(ctx, plan.panel, k), taus(ctx, k, 1);
        LeftLookingQR<T, D, HostMemory<T>> qr(ctx, slow, slabs_of(plan), Tf.view());
        for (Index j = 0; j < qr.count(); ++j) {
            qr.factor(j, plan.check_finite);
            progress();
        }
        for (Index j = 0; j < k; j += plan.panel) {
            const Range P{j, std::min(k, j + plan.panel)};
            copy_diagonal<T>(ctx, Tf.view().block({0, P.size()}, P), taus.view().row_block(P));
        }
        wait_for(moving_out(ctx), ctx);
        move_out<T>(moving_out(ctx), taus.view(), tau);
        qr.finish();
    }
    return measured.finish(slow.moved());
}

double hidden_copies(const Trace& trace, double since) {
    struct Edge {
        double time;
        int copies, computing;
    };
    std::vector<Edge> edges;
    for (const Trace::Span& span : trace.spans()) {
        const bool copy = span.row == Trace::Row::ToDevice || span.row == Trace::Row::ToHost;
        if (span.times.begin < since || span.row == Trace::Row::Host) continue;
        edges.push_back({span.times.begin, copy, !copy});
        edges.push_back({span.times.end, -int(copy), -int(!copy)});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
    double moving = 0, hidden = 0, last = 0;
    int copies = 0, computing = 0;
    for (const Edge& edge : edges) {
        if (copies > 0) moving += edge.time - last;
        if (copies > 0 && computing > 0) hidden += edge.time - last;
        copies += edge.copies;
        computing += edge.computing;
        last = edge.time;
    }
    return moving > 0 ? hidden / moving : 1;
}

#define QUOIN_INSTANTIATE(T, D)                                                                                        \
    template OutOfCoreReport qr_out_of_core<T, D>(Context<D>&, MatrixView<T>, MatrixView<T>, const OutOfCoreOptions&); \
    template OutOfCoreReport factor_out_of_core<T, D>(Context<D>&, MatrixView<T>, MatrixView<T>,                       \
                                                      const OutOfCoreOptions&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
