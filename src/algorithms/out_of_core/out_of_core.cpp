// The front of the out-of-core factorizations of a matrix in the host's memory.

#include "quoin/out_of_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "algorithms/out_of_core/gram_schmidt.hpp"
#include "algorithms/out_of_core/left_looking.hpp"
#include "devices.hpp"

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

/// Measures a factorization: time, bytes moved, memory.
template <class T, class D>
class Measured {
public:
    Measured(Context<D>& ctx, MatrixView<const T> A, OutOfCoreOptions options, const OutOfCoreSchedule& schedule = {})
        : ctx_(ctx) {
        check_operand<T>("A", A, A.rows, A.cols);
        if (options.memory_bytes < 0 || !(options.memory_bytes == options.memory_bytes)) {
            throw InvalidArgument("memory_bytes must not be negative");
        }
        if (options.memory_bytes == 0) options.memory_bytes = 0.9 * memory_in_use(ctx).obtainable;
        report.plan = plan_out_of_core<T, D>(A.rows, A.cols, options, {}, schedule);
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
        report.memory_bytes = memory_in_use(ctx_).own;
        if (Tuning<D>::asynchronous && ctx_.trace()) report.hidden = out_of_core_times(*ctx_.trace(), since_).hidden();
        return report;
    }
    OutOfCoreReport report;

private:
    Context<D>& ctx_;
    std::chrono::steady_clock::time_point start_;
    double since_ = 0;
};

/// Reports progress as the share of `flops` that is done.
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
                           const Progress<D>& progress, const OutOfCoreSchedule& schedule) {
    HostMemory<T> slow_a(A), slow_r(R);
    {
        OutOfCoreGramSchmidt<T, D, HostMemory<T>, HostMemory<T>> gram_schmidt(ctx, slow_a, slow_r, plan, progress,
                                                                              schedule);
        if (plan.method == OutOfCoreMethod::Recursive) {
            gram_schmidt.by_recursion();
        } else {
            gram_schmidt.by_blocks();
        }
        // R := R D⁻¹
        if (gram_schmidt.scaled()) {
            scale_columns<T>(host_context(ctx), gram_schmidt.exponents().view(), 1, Part::Upper, R);
        }
    }
    return {slow_a.moved().in + slow_r.moved().in, slow_a.moved().out + slow_r.moved().out};
}

}  // namespace

template <class T, class D>
OutOfCoreReport qr_out_of_core(Context<D>& ctx, MatrixView<T> A, MatrixView<T> R, const OutOfCoreOptions& options) {
    return qr_out_of_core<T, D>(ctx, A, R, options, {});
}

template <class T, class D>
OutOfCoreReport qr_out_of_core(Context<D>& ctx, MatrixView<T> A, MatrixView<T> R, const OutOfCoreOptions& options,
                               const OutOfCoreSchedule& schedule) {
    OutOfCoreOptions with_q = options;
    with_q.form_q = true;
    check_operand<T>("R", R, std::min(A.rows, A.cols), A.cols);
    Measured<T, D> measured(ctx, A, with_q, schedule);
    const OutOfCorePlan& plan = measured.report.plan;
    const Index k = std::min(A.rows, A.cols);
    const Progress<D> progress(ctx, options, plan.flops);
    if (plan.method != OutOfCoreMethod::Householder) {
        return measured.finish(by_gram_schmidt<T, D>(ctx, plan, A, R, progress, schedule));
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
        store_triangle<T>(host_context(ctx), A.row_block({0, k}), R);
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
        wait_for(copy_out_stream(ctx), ctx);
        start_copy_to_host<T>(copy_out_stream(ctx), taus.view(), tau);
        qr.finish();
    }
    return measured.finish(slow.moved());
}

OutOfCoreTimes out_of_core_times(const Trace& trace, double since) {
    // a panel's span covers its own steps, on its own stream
    enum Kind { In, Out, OfProducts, Main, MainPanel, Beside, BesidePanel, Kinds };
    struct Edge {
        double time;
        Kind kind;
        int change;
    };
    std::vector<Edge> edges;
    for (const Trace::Span& span : trace.spans()) {
        if (span.times.begin < since) continue;
        const auto count = [&](Kind kind) {
            edges.push_back({span.times.begin, kind, 1});
            edges.push_back({span.times.end, kind, -1});
        };
        const auto is = [&](const char* what) { return span.name.starts_with(what); };
        const bool copy = span.row == Trace::Row::ToDevice || span.row == Trace::Row::ToHost;
        const bool panel = is("panel") || is("Gram passes");
        switch (span.row) {
            case Trace::Row::Host: break;
            case Trace::Row::Device: count(panel ? MainPanel : Main); break;
            case Trace::Row::SideStream: count(panel ? BesidePanel : Beside); break;
            case Trace::Row::ToDevice: count(In); break;
            case Trace::Row::ToHost: count(Out); break;
        }
        if (copy && !panel && !is("slab") && !is("copy")) count(OfProducts);
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
    OutOfCoreTimes sums;
    std::array<int, Kinds> at{};
    double last = 0;
    for (const Edge& edge : edges) {
        const double seconds = 1e-6 * (edge.time - last);
        const bool panel = at[MainPanel] > 0 || at[BesidePanel] > 0, copies = at[In] > 0 || at[Out] > 0;
        const bool product = (at[Main] > 0 && at[MainPanel] == 0) || (at[Beside] > 0 && at[BesidePanel] == 0);
        if (at[In] > 0) sums.in += seconds;
        if (at[Out] > 0) sums.out += seconds;
        if (panel) sums.panels += seconds;
        if (product) sums.products += seconds;
        if (copies) sums.copies += seconds;
        if (copies && (panel || product)) sums.copies_hidden += seconds;
        if (at[OfProducts] > 0) sums.product_copies += seconds;
        if (at[OfProducts] > 0 && (panel || product)) sums.product_copies_hidden += seconds;
        at[edge.kind] += edge.change;
        last = edge.time;
    }
    return sums;
}

#define QUOIN_INSTANTIATE(T, D)                                                                                        \
    template OutOfCoreReport qr_out_of_core<T, D>(Context<D>&, MatrixView<T>, MatrixView<T>, const OutOfCoreOptions&); \
    template OutOfCoreReport qr_out_of_core<T, D>(Context<D>&, MatrixView<T>, MatrixView<T>, const OutOfCoreOptions&,  \
                                                  const OutOfCoreSchedule&);                                           \
    template OutOfCoreReport factor_out_of_core<T, D>(Context<D>&, MatrixView<T>, MatrixView<T>,                       \
                                                      const OutOfCoreOptions&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
