// A flat tree over the row blocks of a file: one block is read and another written while the one between them is computed.

#include "file_qr/row_blocks.hpp"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <optional>
#include <vector>

#include "algorithms/flat_tree.hpp"
#include "algorithms/solver_steps.hpp"
#include "devices.hpp"
#include "file_qr/run.hpp"
#include "quoin/io.hpp"

namespace quoin {

namespace {

/// Matrices of one place in a file each, in multiples of a page.
template <class T>
class Slots {
public:
    Slots(const std::string& path, Index slot_elements, io::ByteCounters& counters)
        : slot_bytes_(io::BulkFile::aligned(slot_elements * Index{sizeof(T)})),
          file_(path, io::BulkFile::Access::Write, counters) {}
    void write(Index slot, MatrixView<const T> A) const {
        file_.write(slot * slot_bytes_, A.data, A.rows * A.cols * Index{sizeof(T)});
    }
    void flush() const { file_.flush(); }
    void read(Index slot, MatrixView<T> A) const {
        file_.read(slot * slot_bytes_, A.data, A.rows * A.cols * Index{sizeof(T)});
    }
    /// Slots from this one on are gone.
    void drop_from(Index slot) const { file_.truncate(slot * slot_bytes_); }

private:
    Index slot_bytes_;
    io::BulkFile file_;
};

template <class T>
class RowBlocksRun {
public:
    using Node = FlatTreeNode<T, Host>;
    using Square = std::shared_ptr<const Matrix<T>>;  // of n×n, written behind the computation that goes on from it

    RowBlocksRun(Context<Host>& ctx, const FileRun<T>& run)
        : ctx_(ctx),
          run_(run),
          m_(run.plan.rows),
          n_(run.plan.cols),
          blocks_{m_, n_, run.plan.block},
          triangles_(run.journal.path("triangles"), n_ * n_, run.bytes) {
        if (run.plan.stored) {
            const Plan plan = plan_of(0);
            v_.emplace(run.journal.path("V"), plan.rows * n_, run.bytes);
            const Matrix<T> Tf = node_t<T, Host>(ctx, plan);
            t_.emplace(run.journal.path("T"), Tf.rows() * Tf.cols(), run.bytes);
        }
    }

    void run() {
        const Index count = blocks_.count(), factored = run_.done("R");
        if (factored < count) forward(factored);
        if (run_.records(journal_r) == 0) write_r();
        if (run_.plan.want_q) backward(count - run_.done("Q"));
        run_.journal.append(journal_end);
    }

private:
    Plan plan_of(Index i) const { return plan_node<T, Host>(ctx_, blocks_.node_rows(i), n_, run_.plan.want_q); }

    /// Where the second pass recomputes, every R_i is needed again; for R alone the last two that were written are there.
    bool keeps_every_r() const { return run_.plan.want_q; }
    /// E after block i; in the place of R's that are not needed any more.
    Index e_slot(Index i) const { return (run_.plan.stored ? 0 : blocks_.count()) + i % 2; }

    Node node_for(Index i) {
        const Index rows = blocks_.node_rows(i);
        Node node;
        if (!spare_.empty()) {
            node = std::move(spare_.back());
            spare_.pop_back();
        }
        if (node.W.rows() != rows) node.W = Matrix<T>(rows, n_);
        return node;
    }
    void spare(Node node) {
        if (node.W.rows() > 0) spare_.push_back(std::move(node));
    }

    std::future<Node> read_a(Index i) {
        return std::async(std::launch::async, [this, i, node = node_for(i)]() mutable {
            const BusyClock::Scope busy(run_.reading);
            run_.A.read(blocks_.rows(i), {0, n_}, node.W.view().row_block(blocks_.own_rows(i)));
            return std::move(node);
        });
    }
    /// V and T of block i as they were after its factorization.
    std::future<Node> read_v(Index i) {
        return std::async(std::launch::async, [this, i, node = node_for(i)]() mutable {
            const BusyClock::Scope busy(run_.reading);
            v_->read(i, node.W.view());
            if (node.Tf.rows() == 0) node.Tf = node_t<T, Host>(ctx_, plan_of(i));
            t_->read(i, node.Tf.view());
            return std::move(node);
        });
    }

    /// The block on its way to the disk is there, and its memory free. One is under way at a time.
    void finish_write() {
        if (write_.valid()) spare(write_.get());
    }
    template <class Write>
    void write_behind(const char* pass, Index done, Node node, Write write) {
        finish_write();
        write_ = std::async(std::launch::async, [this, pass, done, node = std::move(node), write]() mutable {
            const BusyClock::Scope busy(run_.writing);
            write(std::as_const(node));
            run_.journal.append(fmt::format("{} {}", pass, done));
            return std::move(node);
        });
    }
    bool is_writing() const {
        return write_.valid() && write_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    }

    /// R of the blocks before `done`, where no V is stored. Flushing a small file may take longer than a block: while it does,
    /// those that follow wait together, and for R alone the last of them stands for all, until as much work as may be lost hangs
    /// on them.
    void write_triangle(Index done, const Square& R, bool last) {
        if (!keeps_every_r()) waiting_.clear();
        waiting_.push_back(R);
        const double now = worked();
        if (is_writing() && !last && std::ssize(waiting_) + 3 < most_squares && now - on_disk_ < run_.journal_seconds)
            return;
        // the journal is not written to once the write before is finished
        finish_write();
        waited_ += worked() - now;
        on_disk_ = std::exchange(on_its_way_, now);
        const Index first = keeps_every_r() ? done - std::ssize(waiting_) : run_.records("R") % 2;
        write_behind("R", done, {}, [this, first, squares = std::exchange(waiting_, {})](const Node&) {
            for (std::size_t s = 0; s < squares.size(); ++s)
                triangles_.write(first + static_cast<Index>(s), squares[s]->view());
            triangles_.flush();
        });
    }
    /// Seconds of this pass, those left out in which nothing but the disk was waited for.
    double worked() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() - waited_;
    }

    /// W := [R_{i−1}; A_i] = H_i [R_i; 0]
    void factor(Index i, Node& node, const Square& R) {
        if (i > 0) copy<T>(ctx_, R->view(), node.W.view().row_block({0, n_}));
        try {
            factor_node<T, Host>(ctx_, plan_of(i), node);
        } catch (const NonFiniteEntry& e) {
            throw NonFiniteEntry(blocks_.rows(i).begin + e.row - blocks_.own_rows(i).begin, e.col, run_.A.path());
        }
    }
    Square triangle_of(const Node& node) {
        auto R = std::make_shared<Matrix<T>>(n_, n_);
        copy_triangle<T>(ctx_, node.W.view().row_block({0, n_}), R->view());
        return R;
    }
    /// R of blocks 0 … i, the last one unless every one is kept.
    Square triangle_in_file(Index i) {
        if (run_.plan.stored) {
            Node node = node_for(i);
            v_->read(i, node.W.view());
            Square R = triangle_of(node);
            spare(std::move(node));
            return R;
        }
        return square_in_file(keeps_every_r() ? i : (run_.records("R") - 1) % 2);
    }
    Square square_in_file(Index slot) {
        auto S = std::make_shared<Matrix<T>>(n_, n_);
        triangles_.read(slot, S->view());
        return S;
    }

    void forward(Index first) {
        const Index count = blocks_.count();
        Square R = first > 0 ? triangle_in_file(first - 1) : Square();
        std::future<Node> next = read_a(first);
        for (Index i = first; i < count; ++i) {
            Node node = next.get();
            if (i + 1 < count) next = read_a(i + 1);
            factor(i, node, R);
            R = triangle_of(node);
            if (run_.plan.stored) {
                write_behind("R", i + 1, std::move(node), [this, i](const Node& written) {
                    v_->write(i, written.W.view());
                    t_->write(i, written.Tf.view());
                    v_->flush();
                    t_->flush();
                });
            } else {
                spare(std::move(node));
                write_triangle(i + 1, R, i + 1 == count);
            }
        }
        finish_write();
    }

    void write_r() {
        const io::NpyBlockWriter<T> R(run_.r_path(), true, n_, n_, run_.bytes);
        R.write_cols(0, triangle_in_file(blocks_.count() - 1)->view());
        R.flush();
        run_.journal.append(std::string(journal_r) + " is written");
    }

    /// Blocks [0, left) have no rows of Q yet.
    void backward(Index left) {
        const Index count = blocks_.count();
        q_.emplace(run_.q_path(), false, m_, n_, run_.bytes);
        Square E = left < count ? square_in_file(e_slot(left)) : identity();
        const auto read = [&](Index i) { return run_.plan.stored ? read_v(i) : read_a(i); };
        std::future<Node> next;
        if (left > 0) next = read(left - 1);
        for (Index i = left; i-- > 0;) {
            Node node = next.get();
            if (i > 0) next = read(i - 1);
            if (!run_.plan.stored) factor(i, node, i > 0 ? square_in_file(i - 1) : Square());
            form_node<T, Host>(ctx_, plan_of(i), node, E->view());
            auto above = std::make_shared<Matrix<T>>(n_, n_);
            copy<T>(ctx_, std::as_const(node.W).view().row_block({0, n_}), above->view());
            E = above;
            write_behind("Q", count - i, std::move(node), [this, i, E](const Node& written) {
                q_->write_rows(blocks_.rows(i).begin, written.W.view().row_block(blocks_.own_rows(i)));
                q_->flush();
                triangles_.write(e_slot(i), E->view());
                triangles_.flush();
                // the journal has the block after this one
                if (v_) v_->drop_from(i + 1), t_->drop_from(i + 1);
            });
        }
        finish_write();
    }

    Square identity() {
        auto I = std::make_shared<Matrix<T>>(n_, n_);
        set_identity<T>(ctx_, 0, I->view());
        return I;
    }

    Context<Host>& ctx_;
    const FileRun<T>& run_;
    const Index m_, n_;
    const FileRowBlocks blocks_;
    Slots<T> triangles_;
    std::optional<Slots<T>> v_, t_;
    std::optional<io::NpyBlockWriter<T>> q_;
    std::vector<Node> spare_;
    std::vector<Square> waiting_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    double waited_ = 0, on_disk_ = 0, on_its_way_ = 0;  // when the last R there, and that on its way, was computed
    std::future<Node> write_;                           // the last member: what is under way ends before the others do
};

}  // namespace

template <class T>
void run_row_blocks(Context<Host>& ctx, const FileRun<T>& run) {
    RowBlocksRun<T>(ctx, run).run();
}

template void run_row_blocks<float>(Context<Host>&, const FileRun<float>&);
template void run_row_blocks<double>(Context<Host>&, const FileRun<double>&);

}  // namespace quoin
