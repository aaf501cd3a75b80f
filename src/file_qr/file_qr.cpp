// The front of FileQR: checks, the journal, the choice of a route, and outputs that appear whole.

#include "quoin/file_qr.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <optional>

#include "devices.hpp"
#include "file_qr/plan.hpp"
#include "file_qr/run.hpp"
#include "quoin/version.hpp"

namespace quoin {

namespace fs = std::filesystem;

namespace {

/// All that the bits of the result depend on, and when the input was last written.
template <class T, class D>
std::string identity_of(const io::NpyBlockReader<T>& A, const FileOptions& options, int ranks) {
    struct stat status;
    if (stat(A.path().c_str(), &status) != 0) throw UnreadableFile(A.path(), "cannot be inspected");
    const io::NpyHeader& header = A.header();
    return fmt::format(
        "quoin={} kernels={} size={} time={}.{:09} rows={} columns={} type={}{} order={} device={} q={} ranks={}",
        version(), build_info().kernels, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, header.rows,
        header.cols, static_cast<int>(header.type), header.swapped ? "s" : "", header.fortran_order ? "F" : "C",
        std::is_same_v<D, Host> ? "host" : "gpu", options.want_q ? "wanted" : "not-wanted", ranks);
}

std::string choices_of(const FilePlan& plan) {
    return fmt::format("route={} stored={} block={} panel={} v_block={} arithmetic={}", static_cast<int>(plan.route),
                       int{plan.stored}, plan.block, plan.panel, plan.v_block, static_cast<int>(plan.arithmetic));
}

/// Products on a device keep to the plan's workspace while this is there; the rest of it is for small matrices.
template <class D>
class LimitedWorkspace {
public:
    LimitedWorkspace(Context<D>& ctx, double bytes) : ctx_(ctx) {
        limit_workspace(ctx, 0.8 * (bytes - Tuning<D>::library_bytes));
    }
    LimitedWorkspace(const LimitedWorkspace&) = delete;
    ~LimitedWorkspace() { limit_workspace(ctx_, 0); }

private:
    Context<D>& ctx_;
};

/// Whether `folder` has journals of other ranks.
bool has_folders(const std::string& folder) {
    return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(),
                       [](const fs::directory_entry& entry) { return entry.is_directory(); });
}

/// Returns the bytes of the files in `folder`, without subfolders.
double bytes_in(const std::string& folder) {
    double bytes = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        struct stat status;
        if (stat(entry.path().c_str(), &status) == 0) bytes += 512.0 * static_cast<double>(status.st_blocks);
    }
    return bytes;
}

}  // namespace

template <class T, class D>
struct FileQR<T, D>::Impl {
    /// `comm` is null where one process has all rows.
    Impl(Context<D>& ctx, Communicator* comm_, const std::string& input, const std::string& folder_,
         const FileOptions& options)
        : folder(folder_),
          journal_seconds(options.journal_seconds),
          comm(comm_),
          A(input, bytes, staging),
          journal(journal_of(rank())) {
        try {
            open(ctx, options);
        } catch (...) {
            leave();
            throw;
        }
    }
    ~Impl() { leave(); }

    int rank() const { return comm ? comm->rank() : 0; }
    int ranks() const { return comm ? comm->size() : 1; }
    /// Returns the folder of a rank's journal. Rank 0's folder also has the outputs, and the folders of the other
    /// ranks.
    std::string journal_of(int rank) const {
        const fs::path of_root = fs::path(folder) / "quoin-journal";
        return (rank == 0 ? of_root : of_root / fmt::format("rank-{}", rank)).string();
    }

    FilePlan planned(Context<D>& ctx, const FileOptions& options) const {
        const io::NpyHeader& header = A.header();
        if constexpr (std::is_same_v<D, Host>)
            return plan_file_qr<T>(ctx, header.rows, header.cols, options, ranks(), rank());
        else
            return plan_file_qr<T>(ctx, header.rows, header.cols, options);
    }

    void open(Context<D>& ctx, const FileOptions& options) {
        const std::string identity = identity_of<T, D>(A, options, ranks());
        others_may_have_steps = has_folders(journal.folder());
        if (options.restart) journal.clear();
        const std::vector<std::string> lines = journal.lines();
        // a run that ended before its plan was there had nothing
        if (lines.size() < 2) {
            plan = planned(ctx, options);
            require_memory(options, fmt::format("{}: a {} x {} matrix needs", A.path(), plan.all_rows, plan.cols));
            journal.clear();
            others_may_have_steps = false;
            journal.append(identity);
            journal.append(choices_of(plan));
            return;
        }
        journal.require_run(identity, " and factor");
        adopt(ctx, lines[1], options);
        report.first_step = steps_done();
        complete = lines.back() == journal_end;
    }

    /// The choices of the run that the journal is of.
    void adopt(Context<D>& ctx, const std::string& choices, const FileOptions& options) {
        auto fields = io::fields_of(choices);
        const auto value = [&](const char* key) { return std::stoll(fields.at(key)); };
        plan.ranks = ranks();
        const Range rows = rows_of_rank(A.header().rows, plan.ranks, rank());
        plan.rows = rows.size();
        plan.first_row = rows.begin;
        plan.all_rows = A.header().rows;
        plan.cols = A.header().cols;
        plan.scalar = scalar_kind<T>;
        plan.want_q = options.want_q;
        plan.route = static_cast<FileRoute>(value("route"));
        plan.stored = value("stored") != 0;
        plan.block = value("block");
        plan.panel = value("panel");
        plan.v_block = value("v_block");
        plan.arithmetic = static_cast<Arithmetic>(value("arithmetic"));
        count_file_plan<T>(ctx, plan, options);
        require_memory(options, fmt::format("{}: this journal was begun with blocks that need", journal.folder()));
    }

    void require_memory(const FileOptions& options, const std::string& who) const {
        if (plan.memory_bytes <= options.memory) return;
        throw OutOfMemory(fmt::format("{} {:.0f} bytes of memory, and the cap is {:.0f}", who,
                                      std::ceil(plan.memory_bytes), options.memory));
    }

    /// Returns the bytes that this rank still needs on the disk.
    double bytes_needed() const { return plan.disk_bytes - bytes_in(journal.folder()); }
    void require_space(double needed) const {
        struct statvfs disk;
        if (complete || statvfs(journal.folder().c_str(), &disk) != 0) return;
        const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
        if (needed > free) {
            throw UnwritableFile(folder, fmt::format("{:.3g} GB are needed on its disk and {:.3g} GB are free",
                                                     needed / 1e9, free / 1e9));
        }
    }

    FileRun<T> files(FileRanks* by = nullptr) {
        return {plan, journal_seconds, journal, A, staging, bytes, reading, writing, moved, by, journal_of(0)};
    }
    Index steps_done() { return files().done("R") + files().done("Q"); }

    /// A journal without a step has nothing to go on from.
    void leave() noexcept {
        try {
            if (steps_done() == 0 && !others_may_have_steps) remove();
        } catch (...) {
        }
    }
    /// By rank 0, with the folders of all.
    void remove() {
        if (rank() == 0 && !std::exchange(removed, true)) journal.remove();
    }

    std::string folder;
    double journal_seconds;
    Communicator* comm;
    io::ByteCounters bytes;
    BusyClock reading, writing;
    BytesMoved moved;
    io::PageMemory staging;
    io::NpyBlockReader<T> A;
    io::Journal journal;
    FilePlan plan;
    FileReport report;
    bool removed = false;
    bool complete = false;  // on all ranks
    bool others_may_have_steps = false;
};

template <class T, class D>
FileQR<T, D>::FileQR(Context<D>& ctx, const std::string& input, const std::string& folder, const FileOptions& options)
    : impl_(detail::own<Impl>(ctx, nullptr, input, folder, options)) {
    impl_->require_space(impl_->bytes_needed());
}
template <class T, class D>
FileQR<T, D>::FileQR(Context<D>& ctx, Communicator& comm, const std::string& input, const std::string& folder,
                     const FileOptions& options) requires std::is_same_v<D, Host> {
    JointCall call(ctx, comm, RankOperation::FileQr);
    const auto open = [&] { impl_ = detail::own<Impl>(ctx, &comm, input, folder, options); };
    // where rank 0 begins anew, all do: it clears the folder first
    call.attempt([&] {
        if (comm.rank() == 0) open();
    });
    const auto of_root = call.agree({{"the size of an element", sizeof(T)},
                                     {"FileOptions::want_q", options.want_q},
                                     {"FileOptions::restart", options.restart}},
                                    impl_ && impl_->complete);
    call.attempt([&] {
        if (comm.rank() > 0) open();
    });
    const auto needed = call.agree({}, impl_ ? static_cast<Index>(impl_->bytes_needed()) : 0);
    impl_->complete = of_root[0] != 0;
    call.attempt([&] {
        if (comm.rank() == 0)
            impl_->require_space(static_cast<double>(std::accumulate(needed.begin(), needed.end(), Index{0})));
    });
    call.agree();
}
template <class T, class D>
const FilePlan& FileQR<T, D>::plan() const {
    return impl_->plan;
}
template <class T, class D>
Index FileQR<T, D>::steps_done() const {
    return impl_->steps_done();
}
template <class T, class D>
const std::string& FileQR<T, D>::journal_folder() const {
    return impl_->journal.folder();
}
template <class T, class D>
const FileReport& FileQR<T, D>::report() const {
    return impl_->report;
}
template <class T, class D>
std::string FileQR<T, D>::r_path() const {
    return impl_->files().r_path();
}
template <class T, class D>
std::string FileQR<T, D>::q_path() const {
    return impl_->files().q_path();
}

template <class T, class D>
double FileQR<T, D>::bytes_moved() const {
    return static_cast<double>(impl_->bytes.read) + static_cast<double>(impl_->bytes.written);
}

template <class T, class D>
double FileQR<T, D>::fraction() const {
    const FilePlan& plan = impl_->plan;
    const double left = 1 - static_cast<double>(impl_->report.first_step) / static_cast<double>(plan.steps());
    return left > 0 ? std::min(1.0, bytes_moved() / (left * (plan.bytes_read + plan.bytes_written))) : 1;
}

template <class T, class D>
void FileQR<T, D>::run(Context<D>& ctx) {
    Impl& f = *impl_;
    const auto start = std::chrono::steady_clock::now();
    const auto measure = [&] {
        f.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        f.report.bytes_read = static_cast<double>(f.bytes.read);
        f.report.bytes_written = static_cast<double>(f.bytes.written);
        f.report.read_seconds = f.reading.seconds();
        f.report.write_seconds = f.writing.seconds();
        f.report.bytes_to_device = f.moved.in;
        f.report.bytes_from_device = f.moved.out;
    };
    try {
        if (!f.complete) {
            if constexpr (std::is_same_v<D, Host>) {
                std::optional<FileRanks> ranks;
                if (f.ranks() > 1) ranks.emplace(ctx, *f.comm);
                f.others_may_have_steps = f.ranks() > 1;
                f.plan.route == FileRoute::RowBlocks ? run_row_blocks<T>(ctx, f.files(ranks ? &*ranks : nullptr))
                                                     : run_slabs<T, D>(ctx, f.files());
            } else {
                const LimitedWorkspace<D> limit(ctx, f.plan.device_workspace_bytes);
                run_slabs<T, D>(ctx, f.files());
                f.report.device_memory_bytes = memory_in_use(ctx).own;
            }
            f.complete = true;
        }
    } catch (const NonFiniteEntry&) {
        discard();  // the input has to change
        throw;
    } catch (const Error& e) {
        measure();
        // the ranks are together again, unless one of them is gone
        if (f.ranks() > 1 && e.code() != ErrorCode::CommunicationFailure) {
            Context<Host> host(1);
            const auto steps = JointCall(host, *f.comm, RankOperation::FileQr).agree({}, f.steps_done());
            f.others_may_have_steps = std::any_of(steps.begin(), steps.end(), [](Index done) { return done > 0; });
        }
        throw;
    } catch (...) {
        measure();
        throw;
    }
    measure();
}

template <class T, class D>
void FileQR<T, D>::commit(bool keep_q) {
    Impl& f = *impl_;
    if (!f.complete) throw InvalidArgument("FileQR::commit: the factorization is not complete");
    const auto name = [&](const std::string& from, const char* to) {
        std::error_code error;
        // a commit that was cut off has taken it already
        if (!fs::exists(from, error)) return;
        fs::rename(from, fs::path(f.folder) / to, error);
        if (error) throw UnwritableFile((fs::path(f.folder) / to).string(), error.message());
    };
    const auto commit_files = [&] {
        if (f.rank() > 0) return;
        if (keep_q && f.plan.want_q) name(q_path(), "Q.npy");
        name(r_path(), "R.npy");
        f.remove();
    };
    if (f.ranks() == 1) return commit_files();
    Context<Host> host(1);
    JointCall call(host, *f.comm, RankOperation::FileQr);
    call.agree();  // no rank reads them any more
    call.attempt(commit_files);
    call.agree();
}

template <class T, class D>
void FileQR<T, D>::discard() {
    impl_->remove();
}

#define QUOIN_INSTANTIATE(T, D) template class FileQR<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
