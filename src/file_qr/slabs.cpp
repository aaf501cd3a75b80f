// Left-looking Householder of a file (algorithms/out_of_core/left_looking.hpp). A thread reads A from its own file, and
// finished slabs from a scratch file of V and R, while the host computes. Columns for a device with memory of its own
// pass through two buffers in the host's memory: one is read or written while the other travels. The tests send the
// host's own computation that way, too.

#include <fmt/format.h>

#include <optional>

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

/// Creates a rows×cols matrix as an .npy file at `path`.
template <class T>
FileColumns<T> npy_columns(const FileRun<T>& run, const std::string& path, Index rows, Index cols) {
    const std::string header = io::compose_npy_header<T>(true, fmt::format("({}, {})", rows, cols));
    const io::BulkFile file(path, io::BulkFile::Access::Write, run.bytes);
    if (file.size() == 0) file.write(0, header.data(), static_cast<Index>(header.size()));
    return FileColumns<T>(run, path, static_cast<Index>(header.size()), rows, cols);
}

/// Two host buffers for columns on their way between file and device, used alternately, and the queue of writes.
template <class T, class D>
class Places {
public:
    explicit Places(const FilePlan& plan) {
        const Index elements = std::max(plan.rows, plan.panel) * std::min(plan.chunk, plan.cols);
        for (auto& place : places_) place = Matrix<T>(elements, 1);
    }
    /// Returns the queue of writes to the disk and the journal. They run while the next slab is read and computed.
    Context<Disk>& behind() { return behind_; }
    /// Calls `read(j, columns)` for the columns of `to` from j on, in place or in a buffer that travels. The caller's
    /// thread reads.
    template <class Read>
    void read_in(Context<D>& ctx, MatrixView<T, D> to, Read read) {
        if constexpr (std::is_same_v<D, Host>) {
            if (places_[0].rows() == 0) return read(Index(0), to);
        }
        by_pieces(to, [&](Range piece, MatrixView<T> place, Event<D>& left) {
            read(piece.begin, place);
            start_copy_from_host<T>(ctx, place, to.col_block(piece));
            left.record(ctx);
        });
    }
    /// Calls `write(j, columns)` for the columns of `from`, in place or in a buffer. Waits for the queue of writes.
    template <class Write>
    void write_out(Context<D>& ctx, MatrixView<const T, D> from, Write write) {
        behind_.wait();
        if constexpr (std::is_same_v<D, Host>) {
            if (places_[0].rows() == 0) return write(Index(0), from);
        }
        Context<Disk> disk;
        by_pieces(from, [&](Range piece, MatrixView<T> place, Event<D>&) {
            start_copy_to_host<T>(ctx, from.col_block(piece), place);
            finish_copies(ctx);
            ctx.wait();
            disk.start([&write, j = piece.begin, place] { write(j, MatrixView<const T>(place)); });
        });
        disk.wait();
    }

private:
    /// Waits until the place of a piece has been left.
    template <class S, class F>
    void by_pieces(MatrixView<S, D> A, F f) {
        const Index step = places_[0].rows() / std::max<Index>(1, A.rows);
        for (Index j = 0; j < A.cols; j += step, turn_ = 1 - turn_) {
            const Range piece{j, std::min(A.cols, j + step)};
            left_[turn_].wait();
            f(piece, MatrixView<T>(places_[turn_].data(), A.rows, piece.size()), left_[turn_]);
        }
    }

    int turn_ = 0;
    Matrix<T> places_[2];
    Event<D> left_[2];
    Context<Disk> behind_;
};

/// A as `LeftLookingQR` sees it: columns [0, done) hold V and R, the others are the input's.
template <class T, class D>
class FileMatrix {
public:
    FileMatrix(const FileRun<T>& run, Places<T, D>& places, Index done)
        : run_(run),
          places_(places),
          done_(done),
          V_(run, run.journal.path("V"), 0, run.plan.rows, run.plan.cols),
          R_(npy_columns<T>(run, run.r_path(), std::min(rows(), cols()), cols())) {}

    Index rows() const { return run_.plan.rows; }
    Index cols() const { return run_.plan.cols; }

    /// To where the host computes.
    void read(Context<Disk>& disk, Range rows, Range cols, MatrixView<T> to) {
        disk.start([=, this] { read(rows, cols, to); });
        run_.moved.in += bytes(to);
    }
    void read(Context<D>& ctx, Range rows, Range cols, MatrixView<T, D> to) {
        places_.read_in(ctx, to, [&](Index j, MatrixView<T> columns) {
            read(rows, {cols.begin + j, cols.begin + j + columns.cols}, columns);
        });
        run_.moved.in += bytes(to);
    }

    /// V and R of whole columns, and R by itself.
    void write(Context<D>& ctx, MatrixView<const T, D> from, Range, Range cols) {
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

    void drop_from(Index col) { V_.drop_from(col); }

private:
    template <class S>
    static double bytes(MatrixView<S, D> A) {
        return static_cast<double>(A.rows) * static_cast<double>(A.cols) * sizeof(T);
    }
    void read(Range rows, Range cols, MatrixView<T> to) {
        const BusyClock::Scope busy(run_.reading);
        cols.begin >= done_ ? run_.A.read(rows, cols, to) : V_.read(rows, cols, to);
    }
    /// Columns of R from those that hold V too, some at a time.
    void write_r(Index first, MatrixView<const T> columns) {
        const Index k = R_.rows(), fit = CommonTuning::written_bytes / (k * Index{sizeof(T)});
        const Index step = std::clamp<Index>(fit, 1, columns.cols);
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

    const FileRun<T>& run_;
    Places<T, D>& places_;
    Index done_;
    FileColumns<T> V_, R_;
};

template <class T, class D>
class FileQ {
public:
    FileQ(const FileRun<T>& run, Places<T, D>& places)
        : run_(run),
          places_(places),
          Q_(npy_columns<T>(run, run.q_path(), run.plan.rows, std::min(run.plan.rows, run.plan.cols))) {}
    Index rows() const { return Q_.rows(); }
    Index cols() const { return Q_.cols(); }
    void read(Context<D>&, Range, Range, MatrixView<T, D>) {}  // Q is never read
    void write(Context<D>& ctx, MatrixView<const T, D> from, Range, Range cols) {
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
          file_(run, run.journal.path("T"), 0, panel_, k_) {}
    MatrixView<T, D> view() { return on_device_.view(); }
    void read(Places<T, D>& places, Range J) {
        Context<D>& in = copy_in_stream(ctx_);
        wait_for(in, ctx_);
        places.read_in(in, on_device_.view().col_block(J), [&](Index j, MatrixView<T> columns) {
            file_.read({0, panel_}, {J.begin + j, J.begin + j + columns.cols}, columns);
        });
        wait_for(ctx_, in);
    }
    void write(Places<T, D>& places, Range J) {
        Context<D>& out = copy_out_stream(ctx_);
        wait_for(out, ctx_);
        places.write_out(out, std::as_const(on_device_).view().col_block(J),
                         [&](Index j, MatrixView<const T> columns) { file_.write(J.begin + j, columns); });
    }
    void flush() { file_.flush(); }

private:
    Context<D>& ctx_;
    Index panel_, k_;
    Matrix<T, D> on_device_;
    FileColumns<T> file_;
};

/// A is read on `in`.
template <class T, class D, class In>
void slab_by_slab(Context<D>& ctx, Context<In>& in, const FileRun<T>& run) {
    const FilePlan& plan = run.plan;
    const Index n = plan.cols, k = std::min(plan.rows, n);
    const Index factored = run.done("R"), formed = run.done("Q");
    FileT<T, D> Tf(ctx, run);
    std::optional<FileMatrix<T, D>> A;
    std::optional<FileQ<T, D>> Q;
    Places<T, D> places(plan);  // destroyed after A, Q and T, when no writes are queued
    A.emplace(run, places, std::min(n, factored * plan.block));
    LeftLookingQR<T, D, FileMatrix<T, D>, In> qr(ctx, *A, {plan.block, plan.panel, plan.v_block, plan.arithmetic},
                                                 Tf.view(), in,
                                                 std::is_same_v<In, Disk> ? First::Come : First::Compute);
    Tf.read(places, {0, std::min(k, factored * plan.block)});
    try {
        for (Index j = factored; j < qr.count(); ++j) {
            qr.factor(j);
            Tf.write(places, {std::min(k, j * plan.block), std::min(k, (j + 1) * plan.block)});
            places.behind().start([&, j] {
                A->flush();
                Tf.flush();
                run.journal.append(fmt::format("R {}", j + 1));
            });
        }
        places.behind().wait();
    } catch (const NonFiniteEntry& e) {
        throw NonFiniteEntry(e.row, e.col, run.A.path());
    }
    if (plan.want_q) {
        Q.emplace(run, places);
        for (Index left = qr.q_count() - formed; left-- > 0;) {
            qr.form_q(left, *Q);
            places.behind().start([&, left, done = qr.q_count() - left] {
                Q->flush();
                run.journal.append(fmt::format("Q {}", done));
                A->drop_from(left * plan.block);
            });
        }
        places.behind().wait();
    }
    run.journal.append(journal_end);
}

}  // namespace

template <class T, class D>
void run_slabs(Context<D>& ctx, const FileRun<T>& run) {
    if constexpr (std::is_same_v<D, Host>) {
        Context<Disk> disk;
        if (!travels(run.plan)) return slab_by_slab<T, Host, Disk>(ctx, disk, run);
    }
    slab_by_slab<T, D, D>(ctx, copy_in_stream(ctx), run);
}

#define QUOIN_INSTANTIATE(T, D) template void run_slabs<T, D>(Context<D>&, const FileRun<T>&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
