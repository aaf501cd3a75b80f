// Plans a factorization from file to file: route, block sizes, bytes and time.

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/out_of_core/slabs.hpp"
#include "algorithms/shared/sampled_sum.hpp"
#include "devices.hpp"
#include "file_qr/flat_tree.hpp"
#include "file_qr/plan.hpp"
#include "file_qr/row_blocks.hpp"
#include "primitives/tuning.hpp"
#include "quoin/distributed.hpp"

namespace quoin {

namespace {

template <class T>
void count_row_blocks(const Context<Host>& ctx, FilePlan& plan) {
    const FileRowBlocks blocks{plan.rows, plan.cols, plan.block, plan.first_row};
    const double s = sizeof(T), m = number(plan.rows), n = number(plan.cols), nn = n * n * s;
    const Plan node = plan_node<T>(ctx, blocks.node_rows(0), plan.cols, plan.want_q);
    const double M = number(node.rows), node_bytes = M * n * s, count = number(blocks.count());
    const double panel_bytes = M * number(std::min(node.panel_width, plan.cols)) * s;
    plan.blocks = blocks.count();
    const double t_bytes = number(node.panel_width) * n * s;
    if (node.method == Method::TSQR) {
        plan.memory_bytes = 2 * node_bytes + node.workspace_bytes;
    } else {
        // with T; V of a panel once more, and where its CholeskyQR is refused the panel
        plan.memory_bytes = (plan.want_q ? 3 : 2) * (node_bytes + t_bytes) + t_bytes + 2 * panel_bytes;
    }
    plan.memory_bytes += (plan.stored ? 3 : number(CommonTuning::most_squares)) * nn;

    const Plan last = plan_node<T>(ctx, blocks.node_rows(plan.blocks - 1), plan.cols, plan.want_q);
    const double factor = (count - 1) * node.flops + last.flops;
    const double stacked = m + (count - 1) * n;  // rows of all nodes
    const double v_bytes = stacked * n * s + count * t_bytes;
    plan.flops = factor;
    plan.bytes_read = m * n * s;
    plan.bytes_written = nn + (plan.stored ? v_bytes : count * nn);
    plan.disk_bytes = 3 * nn;
    // the last R comes back once, for R.npy
    plan.bytes_read += plan.stored ? number(last.rows) * n * s : nn;
    if (plan.ranks > 1) {
        Options options;
        options.method = Method::TSQR;
        options.q = plan.want_q ? QForm::Explicit : QForm::None;
        const RankPlan joined = plan_ranks<T>(ctx, plan.ranks * plan.cols, plan.cols, plan.ranks, options);
        plan.memory_bytes += joined.memory_bytes;
        plan.flops += joined.flops;
        // R is in rank 0's file, and E in every rank's own file
        if (plan.first_row > 0) plan.bytes_written -= nn;
        if (plan.want_q) plan.bytes_written += nn, plan.bytes_read += nn;
    }
    if (!plan.want_q) return;
    plan.flops += 2 * (stacked - count * n / 3) * n * n + (plan.stored ? 0 : factor);
    plan.bytes_read += plan.stored ? v_bytes : m * n * s + (count - 1) * nn;
    plan.bytes_written += m * n * s + count * nn;
    plan.disk_bytes = 3 * nn + (plan.stored ? v_bytes + node_bytes : m * n * s + count * nn);
}

/// Bytes of the buffers between the files and a GPU: pinned buffers for each direction, and two chunks of the largest
/// useful size. T and R go by slabs and columns.
template <class T, class D>
void count_passage(FilePlan& plan, const FileOptions& options) {
    const double s = sizeof(T), m = number(plan.rows);
    const double pinned = 2 * number(Tuning<D>::staging_buffers * Tuning<D>::staging_bytes);
    const double fixed = pinned + s * (number(plan.panel) * number(plan.block) + m);
    const double most = std::min(CommonTuning::largest_chunk_bytes, (options.memory - fixed) / 2) / (m * s);
    plan.chunk = std::clamp<Index>(static_cast<Index>(std::max(most, 0.0)), 1, std::min(plan.block, plan.cols));
    plan.memory_bytes = fixed + 2 * m * s * number(plan.chunk);
    OutOfCoreOptions beyond;
    beyond.arithmetic = plan.arithmetic;
    beyond.memory_bytes = options.device_memory;
    beyond.block = plan.block;
    beyond.form_q = plan.want_q;
    const OutOfCorePlan fits = plan_out_of_core<T, D>(plan.rows, plan.cols, beyond);
    if (fits.panel != plan.panel) {
        throw InvalidArgument(fmt::format(
            "device_memory of {:.0f} bytes allows panels of {} columns, and the journal has {}: give as much "
            "as before, or restart",
            options.device_memory, fits.panel, plan.panel));
    }
    plan.device_memory_bytes = fits.memory_bytes;
    plan.device_workspace_bytes = fits.workspace_bytes;
}

/// The slab; three blocks of V, though two are there: a count of two would change the slabs, and the bits, of a given
/// memory; T; a panel whose CholeskyQR is refused.
template <class T>
void count_slab_memory(const Context<Host>& ctx, FilePlan& plan) {
    Options options;
    options.method = BlockedHouseholder{plan.panel};
    options.q = QForm::Reflectors;
    const Plan slab = plan_qr<T>(ctx, plan.rows, std::min(plan.block, plan.cols), options);
    const double across = number(std::min(plan.block, plan.cols)) + 3 * number(plan.v_block) + 2 * number(plan.panel),
                 t = number(plan.panel) * number(std::min(plan.rows, plan.cols));
    plan.memory_bytes = (number(plan.rows) * across + t) * sizeof(T) + slab.workspace_bytes;
}

template <class T>
void count_slabs(FilePlan& plan) {
    const double s = sizeof(T), m = number(plan.rows), n = number(plan.cols), k = std::min(m, n);
    const Index q_columns = std::min(plan.rows, plan.cols);
    plan.blocks = (plan.cols + plan.block - 1) / plan.block;
    const auto passing = [&](Index columns) { return passing_elements(m, number(columns), number(plan.v_block)); };
    double in = m * n, out = m * n + (k + number(plan.panel) * k / n) * n;
    for_each_sampled(plan.blocks,
                     [&](Index slab, double times) { in += times * passing(std::min(slab * plan.block, q_columns)); });
    plan.flops = 4 * m * n * k - 2 * (m + n) * k * k + 4.0 / 3 * k * k * k;
    plan.disk_bytes = (out + (plan.want_q ? m * number(plan.block) : 0)) * s;
    if (plan.want_q) {
        for_each_sampled((q_columns + plan.block - 1) / plan.block, [&](Index slab, double times) {
            const Index j = slab * plan.block;
            in += times * ((m - number(j)) * number(std::min(q_columns - j, plan.block)) + passing(j));
        });
        out += m * k;
        plan.flops += 2 * m * k * k - 2.0 / 3 * k * k * k;
    }
    plan.bytes_read = in * s;
    plan.bytes_written = out * s;
}

/// Returns the largest h in [lowest, highest] with a true `fits(h)`, or 0.
template <class Fits>
Index largest(Index lowest, Index highest, Fits&& fits) {
    if (lowest > highest || !fits(lowest)) return 0;
    Index good = lowest, beyond = highest + 1;
    while (beyond - good > 1) {
        const Index h = good + (beyond - good) / 2;
        (fits(h) ? good : beyond) = h;
    }
    return good;
}

template <class T>
FilePlan row_block_plan(const Context<Host>& ctx, FilePlan plan, const FileOptions& options) {
    const Index m = plan.rows, n = plan.cols, most = m - n;
    plan.route = FileRoute::RowBlocks;
    plan.stored =
        options.want_q && (options.second_pass == SecondPass::Auto ? n >= CommonTuning::stored_from_cols
                                                                   : options.second_pass == SecondPass::Stored);
    const auto with = [&](Index h) {
        plan.block = h;
        count_file_plan<T>(ctx, plan, options);
        return plan;
    };
    const Index lowest = std::min(most, std::max<Index>(n, 64));
    const Index useful =
        std::max<Index>(16 * n, static_cast<Index>(CommonTuning::largest_block_bytes / (number(n) * sizeof(T))));
    const Index h = largest(lowest, std::clamp(useful, lowest, most),
                            [&](Index rows) { return with(rows).memory_bytes <= options.memory; });
    if (h == 0) return with(lowest);
    // as many blocks, of one height
    const Index count = (most + h - 1) / h;
    return with((most + count - 1) / count);
}

/// Slabs as wide as memory allows; blocks of V an eighth of that. Narrower panels where even one of each does not fit.
template <class T>
FilePlan slab_plan(const Context<Host>& ctx, FilePlan plan, const FileOptions& options) {
    plan.route = FileRoute::Slabs;
    const auto with = [&](Index panels) {
        plan.block = panels * plan.panel;
        plan.v_block = std::max<Index>(1, panels / 8) * plan.panel;
        count_file_plan<T>(ctx, plan, options);
        return plan;
    };
    const Index k = std::min(plan.rows, plan.cols);
    for (plan.panel = Tuning<Host>::panel_width(k); plan.panel >= CommonTuning::narrowest_slab_panel; plan.panel /= 2) {
        const Index panels = largest(1, (plan.cols + plan.panel - 1) / plan.panel,
                                     [&](Index p) { return with(p).memory_bytes <= options.memory; });
        if (panels > 0) return with(panels);
    }
    plan.panel = CommonTuning::narrowest_slab_panel;
    return with(1);
}

}  // namespace

const char* to_string(SecondPass second_pass) {
    constexpr const char* names[] = {"auto", "stored", "recomputed"};
    return names[static_cast<int>(second_pass)];
}

Index FilePlan::steps() const { return (want_q ? 2 : 1) * blocks; }

template <class T, class D>
void count_file_plan(const Context<D>& ctx, FilePlan& plan, const FileOptions& options) {
    if constexpr (!std::is_same_v<D, Host>) {
        count_passage<T, D>(plan, options);
    } else {
        if (plan.route == FileRoute::RowBlocks) return count_row_blocks<T>(ctx, plan);
        count_slab_memory<T>(ctx, plan);
    }
    count_slabs<T>(plan);
}

template <class T, class D>
FilePlan plan_file_qr(const Context<D>& ctx, Index m, Index n, const FileOptions& options) {
    if constexpr (!std::is_same_v<D, Host>) {
        return plan_file_qr<T, D>(m, n, options);
    } else {
        detail::checked_bytes(m, n, sizeof(T));
        FilePlan plan;
        plan.rows = plan.all_rows = m;
        plan.cols = n;
        plan.scalar = scalar_kind<T>;
        plan.want_q = options.want_q;
        FilePlan by_rows, by_slabs = slab_plan<T>(ctx, plan, options);
        if (m > n) {
            by_rows = row_block_plan<T>(ctx, plan, options);
            const bool smaller = by_rows.memory_bytes <= by_slabs.memory_bytes;
            if (by_rows.memory_bytes <= options.memory || (by_slabs.memory_bytes > options.memory && smaller))
                return by_rows;
        }
        return by_slabs;
    }
}

template <class T>
FilePlan plan_file_qr(const Context<Host>& ctx, Index m, Index n, const FileOptions& options, int ranks, int rank) {
    if (ranks == 1) return plan_file_qr<T, Host>(ctx, m, n, options);
    detail::checked_bytes(m, n, sizeof(T));
    if (m / ranks <= n) {
        throw InvalidArgument(fmt::format(
            "from file to file a rank needs more rows than columns, and a rank of {} has {} of {} rows and {} columns",
            ranks, m / ranks, m, n));
    }
    const Range rows = rows_of_rank(m, ranks, rank);
    FilePlan plan;
    plan.rows = rows.size();
    plan.cols = n;
    plan.ranks = ranks;
    plan.first_row = rows.begin;
    plan.all_rows = m;
    plan.scalar = scalar_kind<T>;
    plan.want_q = options.want_q;
    return row_block_plan<T>(ctx, plan, options);
}

template <class T, class D>
FilePlan plan_file_qr(Index m, Index n, const FileOptions& options) {
    OutOfCoreOptions beyond;
    beyond.arithmetic = options.arithmetic;
    beyond.memory_bytes = options.device_memory;
    beyond.form_q = options.want_q;
    const OutOfCorePlan fits = plan_out_of_core<T, D>(m, n, beyond);
    const Slabs slabs = slabs_of(fits);
    FilePlan plan;
    plan.rows = plan.all_rows = m;
    plan.cols = n;
    plan.scalar = scalar_kind<T>;
    plan.route = FileRoute::Slabs;
    plan.want_q = options.want_q;
    plan.block = slabs.slab;
    plan.panel = slabs.panel;
    plan.v_block = slabs.v_block;
    plan.arithmetic = slabs.arithmetic;
    count_passage<T, D>(plan, options);
    count_slabs<T>(plan);
    return plan;
}

std::string to_string(const FilePlan& plan) {
    std::string text;
    const bool rows = plan.route == FileRoute::RowBlocks;
    if (rows) {
        text = fmt::format("{} blocks of {} rows by a flat tree", plan.blocks, plan.block);
        if (plan.want_q) {
            text += plan.stored ? ", V and T of every block on the disk between the passes"
                                : ", every block factored in both passes";
        }
    } else {
        text = fmt::format("{} slabs of {} columns from the left, panels of {}", plan.blocks, plan.block, plan.panel);
        if (plan.chunk > 0) {
            text +=
                fmt::format(", {} arithmetic within {:.3g} GB of the GPU, {} columns at a time in the host's memory",
                            to_string(plan.arithmetic), plan.device_memory_bytes / 1e9, plan.chunk);
        }
    }
    return text +
           fmt::format(
               "\n{:.3g} GFLOP, {:.3g} GB read, {:.3g} GB written, {:.3g} MB of memory, at most {:.3g} GB on the disk",
               plan.flops / 1e9, plan.bytes_read / 1e9, plan.bytes_written / 1e9, plan.memory_bytes / 1e6,
               plan.disk_bytes / 1e9);
}

#define QUOIN_INSTANTIATE(T, D)                                                            \
    template void count_file_plan<T, D>(const Context<D>&, FilePlan&, const FileOptions&); \
    template FilePlan plan_file_qr<T, D>(const Context<D>&, Index, Index, const FileOptions&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE
template FilePlan plan_file_qr<float>(const Context<Host>&, Index, Index, const FileOptions&, int, int);
template FilePlan plan_file_qr<double>(const Context<Host>&, Index, Index, const FileOptions&, int, int);
#ifdef QUOIN_HAVE_CUDA
template FilePlan plan_file_qr<float, Cuda>(Index, Index, const FileOptions&);
template FilePlan plan_file_qr<double, Cuda>(Index, Index, const FileOptions&);
#endif

}  // namespace quoin
