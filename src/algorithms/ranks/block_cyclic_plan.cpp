// Costs of block-cyclic QR: counts the messages of block_cyclic_qr.cpp and block_cyclic_panel.hpp rank by rank.

#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/ranks/block_cyclic.hpp"

namespace quoin {

namespace {

/// The cost of one rank.
struct Cost {
    Traffic traffic;
    double bytes = 0, flops = 0;  // sent and received
};

/// Ranks of a communicator. Each function counts the messages of the call with its name.
class CountedRanks {
public:
    /// Takes every `stride`-th of `all` from `first` on.
    CountedRanks(std::vector<Cost>& all, int first, int stride, int size)
        : all_(all), first_(first), stride_(stride), size_(size) {}
    int size() const { return size_; }
    Cost& operator[](int rank) const { return all_[first_ + rank * stride_]; }

    void message(int from, int to, Index words, std::size_t word_bytes) const {
        Cost &sender = (*this)[from], &receiver = (*this)[to];
        sender.traffic.messages_sent += 1;
        sender.traffic.words_sent += words;
        receiver.traffic.messages_received += 1;
        receiver.traffic.words_received += words;
        for (Cost* cost : {&sender, &receiver}) cost->bytes += number(words) * number(word_bytes);
    }
    /// Counts messages along the edges of RankTree.
    void broadcast(Index words, std::size_t word_bytes, int root = 0) const {
        for_each_edge(root, [&](int head, int member) { message(head, member, words, word_bytes); });
    }
    void reduce(Index words, std::size_t word_bytes, int root = 0) const {
        for_each_edge(root, [&](int head, int member) { message(member, head, words, word_bytes); });
    }
    void sum_on_all(Index words, std::size_t word_bytes) const {
        reduce(words, word_bytes);
        broadcast(words, word_bytes);
    }
    void agree() const { sum_on_all(JointCall::agreement_words(size_), sizeof(Index)); }

private:
    template <class F>
    void for_each_edge(int root, F f) const {
        const auto rank_at = [&](int place) { return (place + root) % size_; };
        for (int place = 1; place < size_; ++place) f(rank_at(place & (place - 1)), rank_at(place));
    }

    std::vector<Cost>& all_;
    int first_, stride_, size_;
};

template <class T, class D>
class CyclicPlanner {
public:
    CyclicPlanner(const Context<D>& ctx, const BlockCyclic& layout, int grid_rows, int grid_cols, Index width)
        : ctx_(ctx),
          layout_(layout),
          row_axis_{layout.rows, layout.row_block, grid_rows, layout.first_row},
          col_axis_{layout.cols, layout.col_block, grid_cols, layout.first_col},
          panels_(
              panels_of(layout, grid_cols, width > 0 ? width : panel_width_for<T, D>(layout, grid_rows, grid_cols))),
          step_(static_cast<std::size_t>(grid_rows) * static_cast<std::size_t>(grid_cols)) {
        plan_.traffic.resize(step_.size());
        plan_.panel_width = 1;
        for (const auto& p : panels_) plan_.panel_width = std::max(plan_.panel_width, p.width);
        for (int row = 0; row < grid_rows; ++row) plan_.rows = std::max(plan_.rows, row_axis_.local_size(row));
        for (int col = 0; col < grid_cols; ++col) plan_.cols = std::max(plan_.cols, col_axis_.local_size(col));
    }

    BlockCyclicPlan plan(bool forms_q) {
        // the arguments, the scales, memory, success
        for (int i = 0; i < 4; ++i) all().agree();
        if (row_axis_.processes > 1 && updates_are_corrected()) norm_exponents();
        end_step();
        const std::size_t count = panels_.size();
        for (std::size_t s = 0; s < count; ++s) {
            const CyclicPanel& p = panels_[s];
            panel(p);
            share(p);
            // the next panel's columns by themselves
            const Index next = s + 1 < count ? panels_[s + 1].cols().end : p.cols().end;
            for (int col = 0; col < col_axis_.processes; ++col) {
                const bool owns = s + 1 < count && col == col_axis_.owner(panels_[s + 1].first);
                if (owns) update(p, col, {p.cols().end, next});
                update(p, col, {owns ? next : p.cols().end, layout_.cols});
            }
            end_step();
        }
        if (forms_q) form_q();
        plan_.memory_bytes = memory(forms_q);
        return std::move(plan_);
    }

private:
    using S = Sum<T, D>;
    CountedRanks all() { return {step_, 0, 1, static_cast<int>(step_.size())}; }
    CountedRanks row(int r) { return {step_, r * col_axis_.processes, 1, col_axis_.processes}; }
    CountedRanks column(int c) { return {step_, c, col_axis_.processes, row_axis_.processes}; }
    Index rows_from(int r, Index i) const { return row_axis_.local_size(r) - row_axis_.before(r, i); }

    /// Ends a step. It takes as long as the rank with the most to do.
    void end_step() {
        double messages = 0, bytes = 0, flops = 0;
        for (std::size_t rank = 0; rank < step_.size(); ++rank) {
            const Traffic& t = step_[rank].traffic;
            Traffic& sum = plan_.traffic[rank];
            sum.messages_sent += t.messages_sent;
            sum.words_sent += t.words_sent;
            sum.messages_received += t.messages_received;
            sum.words_received += t.words_received;
            messages = std::max(messages, number(t.messages_sent + t.messages_received));
            bytes = std::max(bytes, step_[rank].bytes);
            flops = std::max(flops, step_[rank].flops);
            step_[rank] = {};
        }
        plan_.messages += messages;
        plan_.bytes += bytes;
        plan_.flops += flops;
    }

    bool updates_are_corrected() const {
        Options options;
        options.method = BlockedHouseholder{plan_.panel_width};
        return plan_qr<T>(ctx_, layout_.rows, layout_.cols, options).arithmetic != Arithmetic::Native;
    }
    /// Counts the agreement on norms of columns over the ranks of their process column.
    void norm_exponents() {
        for (int col = 0; col < col_axis_.processes; ++col)
            column(col).sum_on_all(col_axis_.local_size(col), sizeof(Index));
        all().agree();
    }

    void panel(const CyclicPanel& p) {
        const Index w = p.width, m = layout_.rows - p.first;
        const int root = row_axis_.owner(p.first);
        const CountedRanks ranks = column(col_axis_.owner(p.first));
        const auto add_flops = [&](double of_a_row) {
            for (int r = 0; r < ranks.size(); ++r) ranks[r].flops += of_a_row * number(rows_from(r, p.first));
        };
        if (panels_are_whole<D>(row_axis_.processes, layout_.rows)) {
            ranks[root].flops += 3 * number(m * w * w);
            for (int r = 0; r < ranks.size(); ++r) {
                if (r == root) continue;
                const Index words = rows_from(r, p.first) * w;
                ranks.message(r, root, words, sizeof(T));
                ranks.message(root, r, words + w * w, sizeof(T));
            }
            return;
        }
        ranks.sum_on_all(1, sizeof(Index));
        ranks.agree();
        Options options;
        options.q = QForm::Explicit;
        if (is_cholesky(plan_over_ranks<T>(ctx_, m, w, options).method)) {
            const bool one_pass = one_pass_if_random<D>(m, w);
            collect_top(ranks, p, root);
            ranks.reduce(packed_size(w, w), sizeof(S), root);
            ranks.broadcast(1, sizeof(Index), root);
            ranks.broadcast(w * w, sizeof(S), root);
            if (!one_pass) {
                ranks.reduce(packed_size(w, w), sizeof(S), root);
                ranks.broadcast(1, sizeof(Index), root);
                ranks.broadcast(w * w, sizeof(S), root);
            }
            add_flops((one_pass ? 2 : 4) * number(w * w));
        } else {
            orthonormalize(ranks, p);
            collect_top(ranks, p, root);
            ranks.broadcast(1, sizeof(Index), root);
            ranks.broadcast(w * w, sizeof(S), root);
            add_flops(5 * number(w * w));
        }
        // unit reflectors; V₁ with R, and T
        ranks.reduce(w, sizeof(T), root);
        ranks.broadcast(2 * w * w, sizeof(T), root);
        ranks.agree();
    }

    /// Counts how the first w rows of the panel reach its root.
    void collect_top(const CountedRanks& ranks, const CyclicPanel& p, int root) {
        for (int r = 0; r < ranks.size(); ++r) {
            const Index rows = row_axis_.before(r, p.first + p.width) - row_axis_.before(r, p.first);
            if (r != root && rows > 0) ranks.message(r, root, rows * p.width, sizeof(T));
        }
    }

    /// Counts Q and R of the panel by the tree of ranks.
    void orthonormalize(const CountedRanks& ranks, const CyclicPanel& p) {
        std::vector<Index> heights(ranks.size());
        for (int r = 0; r < ranks.size(); ++r) heights[r] = rows_from(r, p.first);
        const RowGroups layout(heights, p.width);
        const Index triangle = packed_size(p.width, p.width);
        const double node = 4 * number(p.width * p.width * p.width) / 3;  // factored, and Q formed
        // memory; the arguments, the scales; Q's memory, success; R; Q is taken; it is in the panel's place
        for (int i = 0; i < 8; ++i) ranks.agree();
        for (std::size_t g = 0; g < layout.groups.size(); ++g) {
            const auto& group = layout.groups[g];
            for (Index r = group.ranks.begin; r < group.ranks.end; ++r) {
                if (r == group.leader) continue;
                ranks.message(static_cast<int>(r), group.leader, heights[r] * p.width, sizeof(T));
                ranks.message(group.leader, static_cast<int>(r), heights[r] * p.width, sizeof(T));
            }
            if (g == 0) continue;
            const int head = layout.groups[g & (g - 1)].leader;
            ranks.message(group.leader, head, triangle, sizeof(T));
            ranks.message(head, group.leader, triangle, sizeof(T));
            ranks[head].flops += node;
        }
        ranks.broadcast(0, sizeof(T), layout.root());
        ranks.broadcast(triangle, sizeof(T), layout.root());
    }

    /// Counts V and T on their way along the process rows.
    void share(const CyclicPanel& p) {
        for (int r = 0; r < row_axis_.processes; ++r) {
            row(r).broadcast(rows_from(r, p.first) * p.width, sizeof(T), col_axis_.owner(p.first));
            row(r).broadcast(p.width * p.width, sizeof(T), col_axis_.owner(p.first));
        }
    }

    /// Counts the update of process column `col`'s part of `cols`: the sums of W = VᵀC, and C − V (TᵀW).
    void update(const CyclicPanel& p, int col, Range cols) {
        const Index c = col_axis_.before(col, cols.end) - col_axis_.before(col, cols.begin), w = p.width;
        if (c == 0) return;
        const CountedRanks ranks = column(col);
        ranks.sum_on_all(w * c, sizeof(T));
        for (int r = 0; r < ranks.size(); ++r)
            ranks[r].flops += (4 * number(rows_from(r, p.first)) + number(w)) * number(w * c);
    }

    void form_q() {
        all().agree();
        all().agree();
        end_step();
        for (auto p = panels_.rbegin(); p != panels_.rend(); ++p) {
            share(*p);
            for (int col = 0; col < col_axis_.processes; ++col)
                update(*p, col, {p->cols().end, std::min(layout_.rows, layout_.cols)});
            // [I; 0] − V (T V₁ᵀ)
            const CountedRanks ranks = column(col_axis_.owner(p->first));
            ranks.sum_on_all(p->width * p->width, sizeof(T));
            for (int r = 0; r < ranks.size(); ++r)
                ranks[r].flops += number(rows_from(r, p->first)) * number(p->width * p->width);
            end_step();
        }
    }

    double memory(bool forms_q) const {
        const double m = number(plan_.rows), n = number(plan_.cols), w = number(plan_.panel_width);
        // A, and V and R, or Q with them; T
        double words = (forms_q ? 3 : 2) * m * n + w * n;
        // V and T of a panel and of the next one; W and a rank's part of its sum
        const bool gathered = row_axis_.processes > 1 && panels_are_whole<D>(row_axis_.processes, layout_.rows);
        words += (panels_.size() > 1 ? 2 : 1) * (w + (gathered || col_axis_.processes > 1 ? m : std::min(m, w))) * w;
        words += (row_axis_.processes > 1 ? 2 : 1) * w * std::max(n, w);
        // of a panel: its Q and a copy, squares; all its rows, memory to factor them, and a message
        words += 2 * (gathered ? number(layout_.rows) : m) * w + (gathered ? m * w : 0) + 8 * w * w;
        return words * sizeof(T);
    }

    const Context<D>& ctx_;
    const BlockCyclic layout_;
    const CyclicAxis row_axis_, col_axis_;
    const std::vector<CyclicPanel> panels_;
    std::vector<Cost> step_;  // of each rank of the grid
    BlockCyclicPlan plan_;
};

}  // namespace

template <class T, class D>
BlockCyclicPlan plan_block_cyclic(const Context<D>& ctx, const BlockCyclic& layout, int grid_rows, int grid_cols,
                                  bool forms_q, Index panel_width) {
    if (grid_rows < 1 || grid_cols < 1)
        throw InvalidArgument(fmt::format("a grid of {} x {} processes is empty", grid_rows, grid_cols));
    check_layout(grid_rows, grid_cols, layout);
    check_width(panel_width);
    return CyclicPlanner<T, D>(ctx, layout, grid_rows, grid_cols, panel_width).plan(forms_q);
}

#define QUOIN_INSTANTIATE(T, D) \
    template BlockCyclicPlan plan_block_cyclic<T, D>(const Context<D>&, const BlockCyclic&, int, int, bool, Index);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
