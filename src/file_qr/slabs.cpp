// Left-looking Householder of a file (algorithms/out_of_core/left_looking.hpp): A is read from its own file, the slabs that are
// done from a scratch file of V and R, and the next block of V is read while one is applied.

#include <fmt/format.h>

#include <future>

#include "algorithms/out_of_core/left_looking.hpp"
#include "file_qr/run.hpp"

namespace quoin {

namespace {

/// Columns of a matrix in Fortran order from a byte of a file on.
template <class T>
class FileColumns {
public:
    FileColumns(const std::string& path, Index first_byte, Index rows, Index cols, io::ByteCounters& counters)
        : first_byte_(first_byte), rows_(rows), cols_(cols), file_(path, io::BulkFile::Access::Write, counters) {}

    Index rows() const { return rows_; }
    Index cols() const { return cols_; }
    void move_in(Context<Host>&, Range rows, Range cols, MatrixView<T> to) const { read(rows, cols, to); }
    void move_out(Context<Host>&, MatrixView<const T> from, Range rows, Range cols) const {
        for (Index j = 0; j < cols.size(); ++j)
            file_.write(byte(rows.begin, cols.begin + j), from.at(0, j), rows.size() * Index{sizeof(T)});
    }
    void read(Range rows, Range cols, MatrixView<T> to) const {
        for (Index j = 0; j < cols.size(); ++j)
            file_.read(byte(rows.begin, cols.begin + j), to.at(0, j), rows.size() * Index{sizeof(T)});
    }
    void flush() const { file_.flush(); }
    /// Columns from this one on are gone.
    void drop_from(Index col) const { file_.truncate(byte(0, col)); }

private:
    Index byte(Index i, Index j) const { return first_byte_ + (i + j * rows_) * Index{sizeof(T)}; }
    Index first_byte_, rows_, cols_;
    io::BulkFile file_;
};

/// The same as an .npy file.
template <class T>
FileColumns<T> npy_columns(const std::string& path, Index rows, Index cols, io::ByteCounters& counters) {
    const std::string header = io::compose_npy_header<T>(true, fmt::format("({}, {})", rows, cols));
    const io::BulkFile file(path, io::BulkFile::Access::Write, counters);
    if (file.size() == 0) file.write(0, header.data(), static_cast<Index>(header.size()));
    return FileColumns<T>(path, static_cast<Index>(header.size()), rows, cols, counters);
}

/// A as `LeftLookingQR` sees it: columns [0, done) hold V and R, those behind them are the input's.
template <class T>
class FileMatrix {
public:
    FileMatrix(const FileRun<T>& run, Index done)
        : run_(run),
          done_(done),
          V_(run.journal.path("V"), 0, run.plan.rows, run.plan.cols, run.bytes),
          R_(npy_columns<T>(run.r_path(), std::min(rows(), cols()), cols(), run.bytes)),
          ahead_(rows(), std::min({run.plan.reach, rows(), cols()})) {}

    Index rows() const { return run_.plan.rows; }
    Index cols() const { return run_.plan.cols; }

    void move_in(Context<Host>& ctx, Range rows, Range cols, MatrixView<T> to) {
        const BusyClock::Scope busy(run_.reading);
        if (cols.begin >= done_) return run_.A.read(rows, cols, to);
        if (cols.begin == next_.begin && cols.end == next_.end && next_read_.valid()) {
            next_read_.get();
            copy<T>(ctx, ahead_.view().block({rows.begin, rows.end}, {0, cols.size()}), to);
        } else {
            V_.read(rows, cols, to);
        }
        read_ahead(cols);
    }

    /// V and R of whole columns, and R by itself.
    void move_out(Context<Host>& ctx, MatrixView<const T> from, Range rows, Range cols) {
        const BusyClock::Scope busy(run_.writing);
        V_.move_out(ctx, from, rows, cols);
        Matrix<T> column(R_.rows(), 1);
        for (Index j = 0; j < cols.size(); ++j) {
            const Index above = std::min(R_.rows(), cols.begin + j + 1);
            std::copy_n(from.at(0, j), above, column.data());
            std::fill(column.data() + above, column.data() + R_.rows(), T(0));
            R_.move_out(ctx, column.view(), {0, R_.rows()}, {cols.begin + j, cols.begin + j + 1});
        }
        V_.flush();
        R_.flush();
        done_ = cols.end;
    }

    /// V comes by from the left to the right, or the other way.
    void pass_by(bool to_the_right) { to_the_right_ = to_the_right; }
    void drop_from(Index col) { V_.drop_from(col); }

private:
    /// The block of V behind `cols`, if one is left to come by.
    void read_ahead(Range cols) {
        const Index reach = run_.plan.reach, end = std::min(done_, R_.rows());
        next_ =
            to_the_right_ ? Range{cols.end, std::min(end, cols.end + reach)} : Range{cols.begin - reach, cols.begin};
        if (next_.begin < 0 || next_.size() <= 0 || next_.begin % reach != 0) return;
        next_read_ = std::async(std::launch::async, [this] {
            V_.read({next_.begin, rows()}, next_, ahead_.view().block({next_.begin, rows()}, {0, next_.size()}));
        });
    }

    const FileRun<T>& run_;
    Index done_;
    bool to_the_right_ = true;
    FileColumns<T> V_, R_;
    Matrix<T> ahead_;
    Range next_;
    std::future<void> next_read_;  // the last member: it ends before the others do
};

template <class T>
class FileQ {
public:
    FileQ(const FileRun<T>& run)
        : run_(run),
          Q_(npy_columns<T>(run.q_path(), run.plan.rows, std::min(run.plan.rows, run.plan.cols), run.bytes)) {}
    Index rows() const { return Q_.rows(); }
    Index cols() const { return Q_.cols(); }
    void move_in(Context<Host>& ctx, Range rows, Range cols, MatrixView<T> to) { Q_.move_in(ctx, rows, cols, to); }
    void move_out(Context<Host>& ctx, MatrixView<const T> from, Range rows, Range cols) {
        const BusyClock::Scope busy(run_.writing);
        Q_.move_out(ctx, from, rows, cols);
        Q_.flush();
    }

private:
    const FileRun<T>& run_;
    FileColumns<T> Q_;
};

}  // namespace

template <class T>
void run_slabs(Context<Host>& ctx, const FileRun<T>& run) {
    const FilePlan& plan = run.plan;
    const Index m = plan.rows, n = plan.cols, k = std::min(m, n);
    const Index factored = run.done("R"), formed = run.done("Q");
    Matrix<T> Tf(plan.panel, k);
    const FileColumns<T> T_file(run.journal.path("T"), 0, plan.panel, k, run.bytes);
    const auto t_of = [&](Range J) { return Tf.view().col_block({std::min(J.begin, k), std::min(J.end, k)}); };
    const Range known{0, std::min(k, factored * plan.block)};
    T_file.read({0, plan.panel}, known, t_of(known));

    FileMatrix<T> A(run, std::min(n, factored * plan.block));
    LeftLookingQR<T, Host, FileMatrix<T>> qr(ctx, A, Slabs{plan.block, plan.panel, plan.reach}, Tf.view());
    try {
        for (Index j = factored; j < qr.count(); ++j) {
            qr.factor(j);
            const Range J{std::min(k, j * plan.block), std::min(k, (j + 1) * plan.block)};
            T_file.move_out(ctx, t_of(J), {0, plan.panel}, J);
            T_file.flush();
            run.journal.append(fmt::format("R {}", j + 1));
        }
    } catch (const NonFiniteEntry& e) {
        throw NonFiniteEntry(e.row, e.col, run.A.path());
    }
    if (plan.want_q) {
        FileQ<T> Q(run);
        A.pass_by(false);
        for (Index left = qr.q_count() - formed; left-- > 0;) {
            qr.form_q(left, Q);
            run.journal.append(fmt::format("Q {}", qr.q_count() - left));
            A.drop_from(left * plan.block);
        }
    }
    run.journal.append(journal_end);
}

template void run_slabs<float>(Context<Host>&, const FileRun<float>&);
template void run_slabs<double>(Context<Host>&, const FileRun<double>&);

}  // namespace quoin
