// Left-looking Householder of a file (algorithms/out_of_core/left_looking.hpp): A is read from its own file, the slabs that are
// done from a scratch file of V and R, and the next block of V is read while one is applied. A device with memory of its own is
// reached by way of two places in the host's memory, of some columns each: one is read or written while the other travels. The
// tests have the host's own computation go that way.

#include <fmt/format.h>

#include <future>

#include "algorithms/out_of_core/left_looking.hpp"
#include "devices.hpp"
#include "file_qr/run.hpp"

namespace quoin {

namespace {

/// Whether columns travel between where files are read and written and where is computed: always before a device.
bool travels(const FilePlan& plan) { return plan.chunk > 0; }

/// Columns of a matrix in Fortran order from a byte of a file on.
template <class T>
class FileColumns {
public:
    FileColumns(const FileRun<T>& run, const std::string& path, Index first_byte, Index rows, Index cols)
        : first_byte_(first_byte),
          rows_(rows),
          cols_(cols),
          file_(path, io::BulkFile::Access::Write, run.bytes),
          reader_(path, io::npy_header_of<T>(true, rows, cols, first_byte), run.bytes, run.staging) {}

    Index rows() const { return rows_; }
    Index cols() const { return cols_; }
    void read(Range rows, Range cols, MatrixView<T> to) const { reader_.read(rows, cols, to); }
    void write(Index first, MatrixView<const T> columns) const {
        const Index column = rows_ * Index{sizeof(T)};
        if (columns.ld == rows_) return file_.write(byte(first), columns.data, columns.cols * column);
        for (Index j = 0; j < columns.cols; ++j) file_.write(byte(first + j), columns.at(0, j), column);
    }
    void flush() const { file_.flush(); }
    /// Columns from this one on are gone.
    void drop_from(Index col) const { file_.truncate(byte(col)); }

private:
    Index byte(Index col) const { return first_byte_ + col * rows_ * Index{sizeof(T)}; }
    Index first_byte_, rows_, cols_;
    io::BulkFile file_;
    io::NpyBlockReader<T> reader_;
};

/// The same as an .npy file.
template <class T>
FileColumns<T> npy_columns(const FileRun<T>& run, const std::string& path, Index rows, Index cols) {
    const std::string header = io::compose_npy_header<T>(true, fmt::format("({}, {})", rows, cols));
    const io::BulkFile file(path, io::BulkFile::Access::Write, run.bytes);
    if (file.size() == 0) file.write(0, header.data(), static_cast<Index>(header.size()));
    return FileColumns<T>(run, path, static_cast<Index>(header.size()), rows, cols);
}

/// Places in the host's memory, taken in turn: one for what is read ahead of the host's own computation, two before a device.
template <class T, class D>
class Places {
public:
    Places(const FilePlan& plan)
        : columns_(std::min(travels(plan) ? plan.chunk : plan.v_block, plan.cols)), count_(travels(plan) ? 2 : 1) {
        for (int b = 0; b < count_; ++b) places_[b] = Matrix<T>(plan.rows, columns_);
    }
    /// What travels goes by so many columns.
    Index columns() const { return columns_; }
    MatrixView<T> next(Index rows, Index cols) { return places_[turn_].view().block({0, rows}, {0, cols}); }
    void turn() { turn_ = (turn_ + 1) % count_; }

    /// `write(j, columns)` for the columns of `from` from j on, where they are unless they travel.
    template <class Write>
    void write_out(Context<D>& ctx, MatrixView<const T, D> from, Write write) {
        if constexpr (std::is_same_v<D, Host>) {
            if (count_ == 1) return write(Index(0), from);
        }
        std::future<void> written;
        for (Index j = 0; j < from.cols; j += columns_) {
            const Range piece{j, std::min(from.cols, j + columns_)};
            const MatrixView<T> place = next(from.rows, piece.size());
            start_copy_to_host<T>(ctx, from.col_block(piece), place);
            finish_copies(ctx);
            ctx.wait();
            if (written.valid()) written.get();
            written = std::async(std::launch::async, [&write, j, place] { write(j, MatrixView<const T>(place)); });
            turn();
        }
        if (written.valid()) written.get();
    }

private:
    Index columns_;
    int count_, turn_ = 0;
    Matrix<T> places_[2];
};

/// What is on its way to the disk and then into the journal while the next slab comes in and is computed.
class Behind {
public:
    /// At its end nothing is on its way, whatever became of it.
    class Scope {
    public:
        explicit Scope(Behind& behind) : behind_(behind) {}
        Scope(const Scope&) = delete;
        ~Scope() {
            if (behind_.work_.valid()) behind_.work_.wait();
        }

    private:
        Behind& behind_;
    };
    template <class Work>
    void start(Work work) {
        wait();
        work_ = std::async(std::launch::async, std::move(work));
    }
    /// Throws what the work threw.
    void wait() {
        if (work_.valid()) work_.get();
    }

private:
    std::future<void> work_;
};

/// A as `LeftLookingQR` sees it: columns [0, done) hold V and R, those behind them are the input's.
template <class T, class D>
class FileMatrix {
public:
    FileMatrix(const FileRun<T>& run, Places<T, D>& places, Behind& behind, Index done)
        : run_(run),
          places_(places),
          behind_(behind),
          done_(done),
          V_(run, run.journal.path("V"), 0, run.plan.rows, run.plan.cols),
          R_(npy_columns<T>(run, run.r_path(), std::min(rows(), cols()), cols())) {}

    Index rows() const { return run_.plan.rows; }
    Index cols() const { return run_.plan.cols; }

    void read(Context<D>& ctx, Range rows, Range cols, MatrixView<T, D> to) {
        const Index step = travels(run_.plan) ? places_.columns() : std::max<Index>(1, cols.size());
        for (Index j = cols.begin; j < cols.end; j += step) {
            const Piece piece{rows, {j, std::min(cols.end, j + step)}};
            const auto there = to.col_block({j - cols.begin, piece.cols.end - cols.begin});
            const MatrixView<T> place = places_.next(rows.size(), std::min(piece.cols.size(), places_.columns()));
            // the other place is left
            ctx.wait();
            const bool here = was_read_ahead(piece);
            if (here || !read_in_place(piece, there)) {
                if (!here) read(piece, place);
                start_copy_from_host<T>(ctx, place, there);
            }
            places_.turn();
            read_ahead(piece.cols.end < cols.end ? Piece{rows, {j + step, std::min(cols.end, j + 2 * step)}}
                                                 : asked_after(rows, cols));
        }
        run_.moved.in += bytes(to);
    }

    /// V and R of whole columns, and R by itself.
    void write(Context<D>& ctx, MatrixView<const T, D> from, Range, Range cols) {
        behind_.wait();
        places_.write_out(ctx, from, [&](Index j, MatrixView<const T> columns) {
            const BusyClock::Scope busy(run_.writing);
            V_.write(cols.begin + j, columns);
            write_r(cols.begin + j, columns);
        });
        done_ = cols.end;
        run_.moved.out += bytes(from);
    }
    /// All that was moved out is on the disk.
    void flush() {
        const BusyClock::Scope busy(run_.writing);
        V_.flush();
        R_.flush();
    }

    /// A slab will come, part by part, and then V of the columns before it, from the left to the right or the other way.
    void expect(Range slab, bool to_the_right) {
        slab_ = slab;
        to_the_right_ = to_the_right;
    }
    void drop_from(Index col) { V_.drop_from(col); }

private:
    struct Piece {
        Range rows, cols;
    };
    template <class S>
    static double bytes(MatrixView<S, D> A) {
        return static_cast<double>(A.rows) * static_cast<double>(A.cols) * sizeof(T);
    }
    void read(const Piece& piece, MatrixView<T> to) {
        const BusyClock::Scope busy(run_.reading);
        piece.cols.begin >= done_ ? run_.A.read(piece.rows, piece.cols, to) : V_.read(piece.rows, piece.cols, to);
    }
    /// Reads it to where it is computed with, if that can be.
    bool read_in_place(const Piece& piece, MatrixView<T, D> there) {
        if constexpr (std::is_same_v<D, Host>) {
            if (!travels(run_.plan)) return read(piece, there), true;
        }
        return false;
    }
    /// Whether the next place has it, once nothing is under way.
    bool was_read_ahead(const Piece& piece) {
        if (!next_read_.valid()) return false;
        next_read_.get();
        const auto same = [](Range a, Range b) { return a.begin == b.begin && a.end == b.end; };
        return same(piece.rows, next_.rows) && same(piece.cols, next_.cols);
    }
    void read_ahead(const Piece& piece) {
        if (piece.cols.size() <= 0) return;
        next_ = piece;
        const MatrixView<T> place = places_.next(piece.rows.size(), piece.cols.size());
        next_read_ = std::async(std::launch::async, [this, piece, place] { read(piece, place); });
    }
    /// Columns of R from those that hold V too, some at a time.
    void write_r(Index first, MatrixView<const T> columns) {
        constexpr Index most_bytes = Index{2} << 20;
        const Index k = R_.rows(), step = std::clamp<Index>(most_bytes / (k * Index{sizeof(T)}), 1, columns.cols);
        Matrix<T> some(k, step);
        for (Index c = 0; c < columns.cols; c += step) {
            const Index count = std::min(step, columns.cols - c);
            for (Index j = 0; j < count; ++j) {
                const Index above = std::min(k, first + c + j + 1);
                std::copy_n(columns.at(0, c + j), above, &some(0, j));
                std::fill(&some(0, j) + above, &some(0, j) + k, T(0));
            }
            R_.write(first + c, std::as_const(some).view().col_block({0, count}));
        }
    }
    /// The first piece of what will be asked for after A(rows, cols), or nothing.
    Piece asked_after(Range rows, Range cols) const {
        if (cols.begin >= slab_.begin && cols.end < slab_.end)
            return {rows, first_of({cols.end, std::min(slab_.end, cols.end + cols.size())})};
        const Index before = std::min(slab_.begin, R_.rows()), v_block = run_.plan.v_block;
        Index next = 0;  // the block's first column
        if (cols.begin >= slab_.begin) {
            next = to_the_right_ ? 0 : (before - 1) / v_block * v_block;
        } else {
            next = to_the_right_ ? cols.end : cols.begin - v_block;
        }
        if (before == 0 || next < 0 || next >= before) return {};
        return {{next, run_.plan.rows}, first_of({next, std::min(before, next + v_block)})};
    }
    Range first_of(Range cols) const { return {cols.begin, std::min(cols.end, cols.begin + places_.columns())}; }

    const FileRun<T>& run_;
    Places<T, D>& places_;
    Behind& behind_;
    Index done_;
    Range slab_{0, 0};
    bool to_the_right_ = true;
    FileColumns<T> V_, R_;
    Piece next_;
    std::future<void> next_read_;  // the last member: it ends before the others do
};

template <class T, class D>
class FileQ {
public:
    FileQ(const FileRun<T>& run, Places<T, D>& places, Behind& behind)
        : run_(run),
          places_(places),
          behind_(behind),
          Q_(npy_columns<T>(run, run.q_path(), run.plan.rows, std::min(run.plan.rows, run.plan.cols))) {}
    Index rows() const { return Q_.rows(); }
    Index cols() const { return Q_.cols(); }
    void read(Context<D>&, Range, Range, MatrixView<T, D>) {}  // of Q nothing is asked
    void write(Context<D>& ctx, MatrixView<const T, D> from, Range, Range cols) {
        behind_.wait();
        places_.write_out(ctx, from, [&](Index j, MatrixView<const T> columns) {
            const BusyClock::Scope busy(run_.writing);
            Q_.write(cols.begin + j, columns);
        });
        run_.moved.out += static_cast<double>(from.rows) * static_cast<double>(from.cols) * sizeof(T);
    }
    void flush() {
        const BusyClock::Scope busy(run_.writing);
        Q_.flush();
    }

private:
    const FileRun<T>& run_;
    Places<T, D>& places_;
    Behind& behind_;
    FileColumns<T> Q_;
};

/// The panels' T, on the device and in their file.
template <class T, class D>
class FileT {
public:
    FileT(Context<D>& ctx, const FileRun<T>& run)
        : ctx_(ctx),
          panel_(run.plan.panel),
          k_(std::min(run.plan.rows, run.plan.cols)),
          on_device_(ctx, panel_, k_),
          on_host_(panel_, travels(run.plan) ? std::min(run.plan.block, k_) : 0),
          file_(run, run.journal.path("T"), 0, panel_, k_) {}
    MatrixView<T, D> view() { return on_device_.view(); }
    void read(Range J) {
        if constexpr (std::is_same_v<D, Host>) {
            if (on_host_.cols() == 0) return file_.read({0, panel_}, J, on_device_.view().col_block(J));
        }
        Context<D>& in = copy_in_stream(ctx_);
        wait_for(in, ctx_);
        for (Index j = J.begin; j < J.end; j += on_host_.cols()) {
            const Range piece{j, std::min(J.end, j + on_host_.cols())};
            const MatrixView<T> place = on_host_.view().col_block({0, piece.size()});
            file_.read({0, panel_}, piece, place);
            start_copy_from_host<T>(in, place, on_device_.view().col_block(piece));
            in.wait();
        }
    }
    void write(Range J) {
        const Index first = J.begin;
        const MatrixView<const T, D> from = std::as_const(on_device_).view().col_block(J);
        if constexpr (std::is_same_v<D, Host>) {
            if (on_host_.cols() == 0) return file_.write(first, from);
        }
        Context<D>& out = copy_out_stream(ctx_);
        const MatrixView<T> place = on_host_.view().col_block({0, from.cols});
        wait_for(out, ctx_);
        start_copy_to_host<T>(out, from, place);
        finish_copies(out);
        out.wait();
        file_.write(first, place);
    }
    void flush() { file_.flush(); }

private:
    Context<D>& ctx_;
    Index panel_, k_;
    Matrix<T, D> on_device_;
    Matrix<T> on_host_;
    FileColumns<T> file_;
};

}  // namespace

template <class T, class D>
void run_slabs(Context<D>& ctx, const FileRun<T>& run) {
    const FilePlan& plan = run.plan;
    const Index n = plan.cols, k = std::min(plan.rows, n);
    const Index factored = run.done("R"), formed = run.done("Q");
    FileT<T, D> Tf(ctx, run);
    Tf.read({0, std::min(k, factored * plan.block)});
    Places<T, D> places(plan);
    Behind behind;
    FileMatrix<T, D> A(run, places, behind, std::min(n, factored * plan.block));
    LeftLookingQR<T, D, FileMatrix<T, D>> qr(ctx, A, Slabs{plan.block, plan.panel, plan.v_block, plan.arithmetic},
                                             Tf.view());
    const Behind::Scope of_r(behind);
    try {
        for (Index j = factored; j < qr.count(); ++j) {
            A.expect({j * plan.block, std::min(n, (j + 1) * plan.block)}, true);
            qr.factor(j);
            Tf.write({std::min(k, j * plan.block), std::min(k, (j + 1) * plan.block)});
            behind.start([&, j] {
                A.flush();
                Tf.flush();
                run.journal.append(fmt::format("R {}", j + 1));
            });
        }
        behind.wait();
    } catch (const NonFiniteEntry& e) {
        throw NonFiniteEntry(e.row, e.col, run.A.path());
    }
    if (plan.want_q) {
        FileQ<T, D> Q(run, places, behind);
        const Behind::Scope of_q(behind);
        for (Index left = qr.q_count() - formed; left-- > 0;) {
            A.expect({left * plan.block, std::min(k, (left + 1) * plan.block)}, false);
            qr.form_q(left, Q);
            behind.start([&, left] {
                Q.flush();
                run.journal.append(fmt::format("Q {}", qr.q_count() - left));
                A.drop_from(left * plan.block);
            });
        }
        behind.wait();
    }
    run.journal.append(journal_end);
}

#define QUOIN_INSTANTIATE(T, D) template void run_slabs<T, D>(Context<D>&, const FileRun<T>&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
