// Plans an out-of-core factorization: block sizes for the memory, and the data that move.

#include <fmt/format.h>

#include <cmath>
#include <compare>
#include <map>
#include <utility>

#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/out_of_core/slabs.hpp"
#include "algorithms/out_of_core/tiles.hpp"
#include "algorithms/shared/sampled_sum.hpp"
#include "devices.hpp"
#include "primitives/tuning.hpp"
#include "quoin/study.hpp"

namespace quoin {

namespace {

/// Times a stage, which takes as long as the slowest of its three engines, or as all one after the other.
class Clock {
public:
    Clock(const OutOfCoreRates& rates, const OutOfCorePlan& plan, bool asynchronous)
        : link_(rates.link),
          bytes_(bytes_of(plan.scalar)),
          flops_per_second_(rate(rates, plan)),
          asynchronous_(asynchronous) {}
    double seconds(double in, double out, double flops) const {
        const double come = in * bytes_ / link_, leave = out * bytes_ / link_, work = flops / flops_per_second_;
        return asynchronous_ ? std::max({come, leave, work}) : come + leave + work;
    }

private:
    static double rate(const OutOfCoreRates& rates, const OutOfCorePlan& plan) {
        switch (plan.arithmetic) {
            case Arithmetic::Corrected:
                if (plan.method == OutOfCoreMethod::Householder) return rates.corrected_by_panels;
                return rates.corrected * std::min(1.0, 2 / (1 + number(plan.rows) / rates.corrected_rows));
            case Arithmetic::Native: return entry_for(plan.scalar, rates.native_f32, rates.native_f64);
            default: return plan.arithmetic == study::TF32 ? rates.tf32 : rates.tensor;
        }
    }
    double link_, bytes_, flops_per_second_;
    bool asynchronous_;
};

struct Total {
    double in = 0, out = 0, flops = 0, seconds = 0;
    void add(const Clock& clock, double in_, double out_, double flops_, double times = 1) {
        in += times * in_;
        out += times * out_;
        flops += times * flops_;
        seconds += times * clock.seconds(in_, out_, flops_);
    }
};

/// Counts the moves, flops and time of OutOfCoreGramSchmidt.
class GramSchmidtCount {
public:
    GramSchmidtCount(const Tiles& tiles, const Clock& clock) : tiles_(tiles), clock_(clock), m_(number(tiles.m)) {}

    /// Counts level by level of the recursion. Equal nodes are counted at once.
    Total by_recursion() {
        std::map<Node, Many> level;
        if (tiles_.n > 0) level[{tiles_.n, 0, true}].add(1, 0);
        while (!level.empty()) {
            std::map<Node, Many> next;
            for (const auto& [node, many] : level) {
                if (node.columns <= tiles_.leaf) {
                    leaf(node, many);
                    continue;
                }
                const Index left = tiles_.middle({0, node.columns}), right = node.columns - left;
                const Index stay = pass(left, right, many.count);
                next[{left, node.stayed, node.first}].add(many.count, many.begins);
                next[{right, stay, false}].add(many.count, many.begins + many.count * number(left));
            }
            level = std::move(next);
        }
        return total_;
    }
    Total by_blocks() {
        for_each_sampled((tiles_.n + tiles_.leaf - 1) / tiles_.leaf, [&](Index block, double times) {
            const Index begin = block * tiles_.leaf, w = std::min(tiles_.leaf, tiles_.n - begin);
            leaf({w, 0, begin == 0}, {times, times * number(begin)});
            const double s = number(w), p = number(tiles_.n - begin - w);
            total_.add(clock_, 2 * m_ * p + (p > 0 ? leaf_again(s) : 0), m_ * p + s * p, 4 * m_ * s * p, times);
        });
        return total_;
    }

private:
    struct Node {
        Index columns = 0;
        Index stayed = 0;    ///< columns of its first leaf that are in place already
        bool first = false;  ///< whether it begins at column 0
        auto operator<=>(const Node&) const = default;
    };
    struct Many {
        double count = 0, begins = 0;  ///< nodes, and the sum of their first columns
        void add(double count_, double begins_) {
            count += count_;
            begins += begins_;
        }
    };

    /// Counts `times` passes of s columns of Q past p columns of A₂. Returns the columns that stay.
    Index pass(Index s, Index p, double times) {
        const double left = number(s), right = number(p);
        if (!tiles_.passes_q(s, p)) {
            total_.add(clock_, m_ * right + leaf_again(left), m_ * right + left * right, 4 * m_ * left * right, times);
            return 0;
        }
        const Tiles::Passing sizes = tiles_.passing_q(s, p);
        const Index tiles = (p + sizes.columns - 1) / sizes.columns;
        for_each_sampled(tiles, [&](Index t, double of_tiles) {
            const double c = number(passing_columns(p, sizes.columns, tiles, t));
            const double come = number(s - sizes.there(s, t)), stay = number(t + 1 == tiles ? sizes.stay : 0);
            total_.add(clock_, m_ * (come + c), m_ * (c - stay) + left * c, 4 * m_ * left * c, times * of_tiles);
        });
        return sizes.stay;
    }
    /// Returns the numbers of a leaf of `columns` columns that come again for a product.
    double leaf_again(double columns) const { return tiles_.schedule.joined_stages ? 0 : m_ * columns; }
    void leaf(const Node& node, const Many& many) {
        const double w = number(node.columns), come = number(node.columns - node.stayed);
        double of_r = 0;
        for (const Range& part : tiles_.arriving(node.columns)) {
            of_r += number(part.end) * number(part.size());
        }
        total_.add(clock_, m_ * come, m_ * w + of_r, 2 * m_ * w * w, many.count);
        if (!tiles_.again) return;
        if (node.first) return total_.add(clock_, 0, 0, 2 * m_ * w * w, many.count);
        total_.add(clock_, m_ * many.begins + many.begins * w, many.begins * w,
                   4 * m_ * many.begins * w + 2 * many.begins * w * w + many.count * 2 * m_ * w * w);
    }

    const Tiles& tiles_;
    const Clock& clock_;
    const double m_;
    Total total_;
};

/// Counts LeftLookingQR's V, R and T, and Q from them if `with_q`.
Total count_slabs(Index m, Index n, const Slabs& slabs, bool with_q, const Clock& clock) {
    Total total;
    const Index k = std::min(m, n);
    const auto slabs_over = [&](Index columns) { return (columns + slabs.slab - 1) / slabs.slab; };
    // V of columns [0, before), in blocks as it comes by; 4 (rows) flops for each of its columns and one of the slab
    const auto passing = [&](Index before) {
        return passing_elements(number(m), number(before), number(slabs.v_block));
    };
    for_each_sampled(slabs_over(n), [&](Index slab, double times) {
        const Index j = slab * slabs.slab, w = std::min(slabs.slab, n - j), rows = m - std::min(m, j);
        const double V = passing(std::min(j, k)), r = number(rows), q = number(std::min(w, rows));
        total.add(clock, number(m) * number(w) + V, number(m) * number(w),
                  4 * V * number(w) + 4 * r * number(w) * q - 2 * q * q * (r + number(w)) + 4.0 / 3 * q * q * q, times);
    });
    for_each_sampled(with_q ? slabs_over(k) : 0, [&](Index slab, double times) {
        const Index j = slab * slabs.slab, w = std::min(slabs.slab, k - j);
        const double V = passing(j), r = number(m - j), q = number(w);
        total.add(clock, r * q + V, number(m) * q, 4 * V * q + 2 * r * q * q - 2.0 / 3 * q * q * q, times);
    });
    return total;
}

/// Returns the part of `memory` for the libraries and for the workspace of products and panels. Operands of 16 bits are
/// made a GiB at a time, two at a time and their partial sums (products_by_halves.hpp). If their matrix is smaller than
/// that, they take as much as it does, three times that for Corrected.
template <class D>
double workspace(double memory, Arithmetic arithmetic, bool slabs, Index m, Index nb) {
    const double free = std::max(0.0, memory - Tuning<D>::library_bytes), GiB = 1 << 30;
    const double most = slabs ? 12 * number(m) * number(nb) + 2.75 * GiB : (takes_halves(arithmetic) ? 4.25 : 2) * GiB;
    return Tuning<D>::library_bytes + std::min(Tuning<D>::workspace_share(arithmetic, slabs) * free, most);
}

[[noreturn]] void refuse_memory(double memory, double needed) {
    throw OutOfMemory(fmt::format("memory_bytes is {:.0f}, and this matrix needs at least {:.0f} on the device", memory,
                                  std::ceil(needed)));
}

void choose_gram_schmidt(OutOfCorePlan& plan, const OutOfCoreOptions& options) {
    const Index m = plan.rows, n = std::max<Index>(1, plan.cols);
    // next to a leaf there are places for the data that pass it, or come by again
    const double most = CommonTuning::leaf_share(plan.reorthogonalize);
    const auto fits = [&](Index leaf) {
        return Tiles::min_elements(m, leaf) <= plan.elements &&
               number(m) * number(leaf) + number(leaf) * number(leaf) <= most * number(plan.elements);
    };
    const auto refuse = [&](Index leaf) {
        refuse_memory(plan.memory_bytes,
                      plan.workspace_bytes + bytes_of(plan.scalar) * number(Tiles::min_elements(m, leaf)) / most);
    };
    if (options.block > 0) {
        plan.block = std::min(options.block, n);
        if (!fits(plan.block)) refuse(plan.block);
    } else {
        if (!fits(1)) refuse(1);
        Index low = 1, high = n;
        while (low < high) {
            const Index leaf = (low + high + 1) / 2;
            if (fits(leaf)) {
                low = leaf;
            } else {
                high = leaf - 1;
            }
        }
        // leaves of one size
        const Index leaves = (n + low - 1) / low, each = (n + leaves - 1) / leaves;
        plan.block = std::min(low, (each + 255) / 256 * 256);
    }
    plan.block = std::min(plan.block, n);
}

template <class D>
void choose_slabs(OutOfCorePlan& plan, const OutOfCoreOptions& options) {
    const Index m = std::max<Index>(1, plan.rows), k = std::max<Index>(1, std::min(plan.rows, plan.cols));
    const double room = (plan.memory_bytes - plan.workspace_bytes) / bytes_of(plan.scalar);
    Index nb = std::min(k, Tuning<D>::panel_width(m, k, plan.scalar, plan.arithmetic));
    // T, two blocks of V that come by, and a slab at least as wide as a block
    const auto needed = [&](Index panel) { return 3.0 * number(m) * number(panel) + number(panel) * number(k); };
    while (nb > 1 && needed(nb) > room) nb /= 2;
    if (needed(nb) > room) refuse_memory(plan.memory_bytes, plan.workspace_bytes + bytes_of(plan.scalar) * needed(1));
    plan.panel = nb;
    const double left = room - number(nb) * number(k) - 2.0 * number(m) * number(nb);
    const Index most = static_cast<Index>(left / number(m)), n = std::max<Index>(1, plan.cols);
    if (options.block > 0) {
        plan.block = std::min(std::max(options.block / nb, Index(1)) * nb, (n + nb - 1) / nb * nb);
        if (plan.block > most) {
            refuse_memory(plan.memory_bytes,
                          plan.memory_bytes + bytes_of(plan.scalar) * number(m) * number(plan.block - most));
        }
        return;
    }
    const Index count = (n + most - 1) / most, each = (n + count - 1) / count;
    plan.block = std::max<Index>(1, std::min(most / nb, (each + nb - 1) / nb)) * nb;
}

}  // namespace

Slabs slabs_of(const OutOfCorePlan& plan) { return {plan.block, plan.panel, plan.panel, plan.arithmetic}; }

Tiles tiles_of(const OutOfCorePlan& plan, const OutOfCoreSchedule& schedule) {
    const bool halves = takes_halves(plan.arithmetic) && plan.arithmetic != Arithmetic::Corrected;
    return {plan.rows, plan.cols, plan.block, plan.elements, plan.reorthogonalize, halves, schedule};
}

template <class T, class D>
OutOfCorePlan plan_out_of_core(Index m, Index n, const OutOfCoreOptions& options, const OutOfCoreRates& rates) {
    return plan_out_of_core<T, D>(m, n, options, rates, {});
}

template <class T, class D>
OutOfCorePlan plan_out_of_core(Index m, Index n, const OutOfCoreOptions& options, const OutOfCoreRates& rates,
                               const OutOfCoreSchedule& schedule) {
    const auto refuse = [](const std::string& why) { throw InvalidArgument(why); };
    const bool gram_schmidt = options.method != OutOfCoreMethod::Householder;
    detail::checked_bytes(m, n, sizeof(T));
    if (options.block < 0) refuse(fmt::format("block must not be negative, and is {}", options.block));
    if (!(options.memory_bytes > 0)) refuse("memory_bytes must be positive for a plan");
    if (gram_schmidt && m < n) {
        refuse(fmt::format("out of core, {} needs at least as many rows as columns, and A is {} x {}",
                           to_string(options.method), m, n));
    }
    if (!gram_schmidt && options.reorthogonalize) refuse("reorthogonalize belongs to the methods by Gram-Schmidt");
    OutOfCorePlan plan;
    plan.rows = m;
    plan.cols = n;
    plan.scalar = scalar_kind<T>;
    plan.method = options.method;
    plan.reorthogonalize = options.reorthogonalize;
    plan.check_finite = options.check_finite;
    plan.form_q = options.form_q;
    plan.memory_bytes = options.memory_bytes;
    const bool corrected = corrected_products<T, D>;
    plan.arithmetic = options.arithmetic != Arithmetic::Auto ? options.arithmetic
                      : corrected && !gram_schmidt           ? Arithmetic::Corrected
                                                             : Arithmetic::Native;
    if (plan.arithmetic != Arithmetic::Native && !corrected) {
        refuse(fmt::format("arithmetic {} is for f32 on a GPU", to_string(plan.arithmetic)));
    }
    if (!gram_schmidt && plan.arithmetic != Arithmetic::Native && plan.arithmetic != Arithmetic::Corrected) {
        refuse(fmt::format("arithmetic {} is for Gram-Schmidt: householder keeps Q orthonormal in native and corrected",
                           to_string(plan.arithmetic)));
    }
    plan.workspace_bytes = workspace<D>(plan.memory_bytes, plan.arithmetic, !gram_schmidt, m,
                                        Tuning<D>::panel_width(m, std::min(m, n), plan.scalar, plan.arithmetic));
    const double room = (plan.memory_bytes - plan.workspace_bytes) / bytes_of(plan.scalar);
    const Clock clock(rates, plan, schedule.asynchronous);
    Total total;
    if (gram_schmidt) {
        // more than this is of no use
        const double useful = 4 * number(m) * number(n) + 8 * number(n) * number(n) + 64;
        // buffers placed from the end are aligned, too
        plan.elements = static_cast<Index>(std::clamp(room, 0.0, useful)) / 64 * 64;
        choose_gram_schmidt(plan, options);
        const Tiles tiles = tiles_of(plan, schedule);
        GramSchmidtCount count(tiles, clock);
        total = plan.method == OutOfCoreMethod::Recursive ? count.by_recursion() : count.by_blocks();
    } else {
        choose_slabs<D>(plan, options);
        total = count_slabs(m, n, slabs_of(plan), plan.form_q, clock);
    }
    plan.bytes_in = total.in * bytes_of(plan.scalar);
    plan.bytes_out = total.out * bytes_of(plan.scalar);
    plan.flops = total.flops;
    plan.seconds = total.seconds;
    return plan;
}

study::PaperBytes study::paper_bytes(const OutOfCorePlan& plan, Index block) {
    const double M = number(plan.rows), N = number(plan.cols), b = number(block), e = bytes_of(plan.scalar);
    const double k = std::max(1.0, std::ceil(N / b));
    if (plan.method == study::Blocking)
        return {e * ((k + 2) * M * N + N * N / 2 - N * b / 2), e * 0.5 * ((k + 1) * M * N + N * N + N * b)};
    return {e * (2 * (std::log2(k) + 1) * M * N + M * N / 2 - N * b / 2),
            e * (0.5 * std::log2(k) * M * N + N * N / 2 + M * N)};
}

const char* to_string(OutOfCoreMethod method) {
    if (method == study::Blocking) return "blocking";
    return method == OutOfCoreMethod::Householder ? "householder" : "recursive";
}

std::string to_string(const OutOfCorePlan& plan) {
    constexpr double GiB = 1 << 30;
    const bool slabs = plan.method == OutOfCoreMethod::Householder;
    std::string text = fmt::format("{} x {} {} out of core within {:.3g} GiB of the device: {}", plan.rows, plan.cols,
                                   to_string(plan.scalar), plan.memory_bytes / GiB,
                                   slabs ? "householder by slabs" : "classical Gram-Schmidt by ");
    if (!slabs) text += plan.method == OutOfCoreMethod::Recursive ? "recursion" : "blocks";
    text += fmt::format(", {} arithmetic{}\n", to_string(plan.arithmetic),
                        plan.reorthogonalize ? ", reorthogonalised" : "");
    text += slabs ? fmt::format("slabs of {} columns, panels of {}\n", plan.block, plan.panel)
                  : fmt::format("blocks of {} columns stay on the device\n", plan.block);
    text +=
        fmt::format("moves {:.4g} GiB to the device and {:.4g} GiB from it", plan.bytes_in / GiB, plan.bytes_out / GiB);
    return text + fmt::format("\n{:.3g} GFLOP; about {:.3g} s on an H100 (prediction)", plan.flops / 1e9, plan.seconds);
}

#define QUOIN_INSTANTIATE(T, D)                                                                                  \
    template OutOfCorePlan plan_out_of_core<T, D>(Index, Index, const OutOfCoreOptions&, const OutOfCoreRates&); \
    template OutOfCorePlan plan_out_of_core<T, D>(Index, Index, const OutOfCoreOptions&, const OutOfCoreRates&,  \
                                                  const OutOfCoreSchedule&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
