// A flat tree over the row blocks of a file: one block is read and another written while the one between them is
// computed.

#include "file_qr/row_blocks.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "devices.hpp"
#include "file_qr/flat_tree.hpp"
#include "file_qr/run.hpp"
#include "quoin/distributed.hpp"

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
    using Square = std::shared_ptr<const Matrix<T>>;  // n×n, written while the computation goes on from it

    RowBlocksRun(Context<Host>& ctx, const FileRun<T>& run)
        : ctx_(ctx),
          run_(run),
          m_(run.plan.rows),
          n_(run.plan.cols),
          blocks_{m_, n_, run.plan.block, run.plan.first_row},
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
        pass([&] {
            if (factored < count) forward(factored);
        });
        const bool has_r = run_.records(journal_r) > 0;
        if (run_.ranks) {
            if (!run_.ranks->everywhere(has_r)) join_ranks();
        } else if (!has_r) {
            write_r(triangle_in_file(count - 1)->view());
            run_.journal.append(r_is_written);
        }
        if (run_.plan.want_q) pass([&] { backward(count - run_.done("Q")); });
        pass([&] {
            if (is_root()) run_.journal.append(journal_end);
        });
    }

private:
    static inline const std::string r_is_written = std::string(journal_r) + " is written";

    bool is_root() const { return !run_.ranks || run_.ranks->is_root(); }
    template <class Work>
    void pass(Work work) {
        run_.ranks ? run_.ranks->together(work) : work();
    }
    void step_is_computed(Index left) {
        if (run_.ranks) run_.ranks->meet(left);
    }

    Plan plan_of(Index i) const { return plan_node<T, Host>(ctx_, blocks_.node_rows(i), n_, run_.plan.want_q); }

    /// Where the second pass recomputes, every R_i is needed again; for R alone the last two that were written are
    /// there.
    bool keeps_every_r() const { return run_.plan.want_q; }
    /// E after block i; in the place of R's that are not needed any more.
    Index e_slot(Index i) const { return (run_.plan.stored ? 0 : blocks_.count()) + i % 2; }

    /// By turns: one is read and one written while the one between them is computed; none is written for R alone.
    Node& node_of(Index i) {
        Node& node = nodes_[i % (run_.plan.want_q ? 3 : 2)];
        const Index rows = blocks_.node_rows(i);
        if (node.W.rows() != rows) node.W = Matrix<T>(rows, n_);
        return node;
    }

    void read_a(Index i) {
        in_.start([this, i, own = node_of(i).W.view().row_block(blocks_.own_rows(i))] {
            const BusyClock::Scope busy(run_.reading);
            run_.A.read(blocks_.rows(i), {0, n_}, own);
        });
    }
    /// V and T of block i as they were after its factorization.
    void read_v(Index i) {
        in_.start([this, i, &node = node_of(i)] {
            const BusyClock::Scope busy(run_.reading);
            v_->read(i, node.W.view());
            if (node.Tf.rows() == 0) node.Tf = node_t<T, Host>(ctx_, plan_of(i));
            t_->read(i, node.Tf.view());
        });
    }
    template <class Write>
    void write_behind(const char* pass, Index done, Write write) {
        out_.start([this, pass, done, write = std::move(write)] {
            const BusyClock::Scope busy(run_.writing);
            write();
            run_.journal.append(fmt::format("{} {}", pass, done));
        });
    }

    /// Writes R of the blocks before `done`, if no V is stored. Flushing a small file may take longer than a block. The
    /// triangles that follow meanwhile wait together. For R alone only the last of them is written, until the work that
    /// a kill would lose is the most that is allowed.
    void write_triangle(Index done, const Square& R, bool last) {
        if (!keeps_every_r()) waiting_.clear();
        waiting_.push_back(R);
        const double now = worked();
        if (out_.is_busy() && !last && std::ssize(waiting_) + 3 < CommonTuning::most_squares &&
            now - on_disk_ < run_.journal_seconds)
            return;
        // the journal is not written to once the write before is finished
        out_.wait();
        waited_ += worked() - now;
        on_disk_ = std::exchange(on_its_way_, now);
        const Index first = keeps_every_r() ? done - std::ssize(waiting_) : run_.records("R") % 2;
        write_behind("R", done, [this, first, squares = std::exchange(waiting_, {})] {
            for (std::size_t s = 0; s < squares.size(); ++s)
                triangles_.write(first + static_cast<Index>(s), squares[s]->view());
            triangles_.flush();
        });
    }
    /// Returns the seconds of this pass without those in which it only waited for the disk.
    double worked() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() - waited_;
    }

    /// W := [R_{i−1}; A_i] = H_i [R_i; 0]
    void factor(Index i, const Square& R) {
        Node& node = node_of(i);
        if (i > 0) copy<T>(ctx_, R->view(), node.W.view().row_block({0, n_}));
        try {
            factor_node<T, Host>(ctx_, plan_of(i), node);
        } catch (const NonFiniteEntry& e) {
            throw NonFiniteEntry(blocks_.rows(i).begin + e.row - blocks_.own_rows(i).begin, e.col, run_.A.path());
        }
    }
    Square triangle_of(Index i) {
        auto R = std::make_shared<Matrix<T>>(n_, n_);
        copy_triangle<T>(ctx_, std::as_const(node_of(i).W).view().row_block({0, n_}), R->view());
        return R;
    }
    /// R of blocks 0 … i, the last one unless every one is kept.
    Square triangle_in_file(Index i) {
        if (run_.plan.stored) {
            v_->read(i, node_of(i).W.view());
            return triangle_of(i);
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
        pipeline_.run(
            count - first, [&](Index s) { read_a(first + s); },
            [&](Index s) {
                factor(first + s, R);
                step_is_computed(count - first - s - 1);
            },
            [&](Index s) { R = triangle_of(first + s); },
            [&](Index s) {
                const Index i = first + s;
                if (!run_.plan.stored) return write_triangle(i + 1, R, i + 1 == count);
                write_behind("R", i + 1, [this, i, &node = node_of(i)] {
                    v_->write(i, node.W.view());
                    t_->write(i, node.Tf.view());
                    v_->flush();
                    t_->flush();
                });
            });
        out_.wait();
    }

    void write_r(MatrixView<const T> R) {
        const io::NpyBlockWriter<T> file(run_.r_path(), true, n_, n_, run_.bytes);
        file.write_cols(0, R);
        file.flush();
    }

    /// [R_0; …; R_{P−1}] = [E_0; …; E_{P−1}] R of the ranks: R and, where the last block of the backward pass looks for
    /// it, E_i of this rank. No rank goes on to that pass, which drops V, before all have theirs on the disk.
    void join_ranks() {
        Square mine;
        pass([&] { mine = triangle_in_file(blocks_.count() - 1); });
        Options options;
        options.method = Method::TSQR;
        options.q = run_.plan.want_q ? QForm::Explicit : QForm::None;
        auto f = qr<T, Host>(ctx_, run_.ranks->comm(), mine->view(), options);
        const Matrix<T> R = f.r(ctx_, Ranks::Root), E = run_.plan.want_q ? std::move(f).take_q(ctx_) : Matrix<T>();
        pass([&] {
            if (is_root()) write_r(R.view());
            if (run_.plan.want_q) {
                if (is_root()) open_q().flush();  // its header
                triangles_.write(e_slot(blocks_.count()), E.view());
                triangles_.flush();
            }
            run_.journal.append(r_is_written);
        });
    }

    io::NpyBlockWriter<T>& open_q() { return q_.emplace(run_.q_path(), false, run_.plan.all_rows, n_, run_.bytes); }

    /// Blocks [0, left) have no rows of Q yet.
    void backward(Index left) {
        const Index count = blocks_.count();
        open_q();
        Square E = left < count || run_.ranks ? square_in_file(e_slot(left)) : identity();
        const auto block = [&](Index s) { return left - 1 - s; };
        pipeline_.run(
            left, [&](Index s) { run_.plan.stored ? read_v(block(s)) : read_a(block(s)); },
            [&](Index s) {
                const Index i = block(s);
                if (!run_.plan.stored) factor(i, i > 0 ? square_in_file(i - 1) : Square());
                form_node<T, Host>(ctx_, plan_of(i), node_of(i), E->view());
                step_is_computed(i);
            },
            [&](Index s) {
                auto above = std::make_shared<Matrix<T>>(n_, n_);
                copy<T>(ctx_, std::as_const(node_of(block(s)).W).view().row_block({0, n_}), above->view());
                E = above;
            },
            [&](Index s) {
                const Index i = block(s);
                write_behind("Q", count - i, [this, i, E, &node = node_of(i)] {
                    q_->write_rows(blocks_.rows(i).begin, node.W.view().row_block(blocks_.own_rows(i)));
                    q_->flush();
                    triangles_.write(e_slot(i), E->view());
                    triangles_.flush();
                    // the journal has the block after this one
                    if (v_) v_->drop_from(i + 1), t_->drop_from(i + 1);
                });
            });
        out_.wait();
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
    std::array<Node, 3> nodes_;
    std::vector<Square> waiting_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    double waited_ = 0, on_disk_ = 0, on_its_way_ = 0;  // when the last R there, and that on its way, was computed
    Context<Disk> in_, out_;                            // the last members: their work ends before the other members do
    Pipeline<Host, Disk> pipeline_{ctx_, in_};
};

}  // namespace

template <class T>
void run_row_blocks(Context<Host>& ctx, const FileRun<T>& run) {
    std::optional<RowBlocksRun<T>> blocks;
    const auto open = [&] { blocks.emplace(ctx, run); };
    run.ranks ? run.ranks->together(open) : open();
    blocks->run();
}

template void run_row_blocks<float>(Context<Host>&, const FileRun<float>&);
template void run_row_blocks<double>(Context<Host>&, const FileRun<double>&);

}  // namespace quoin
