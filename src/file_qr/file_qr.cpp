#include "quoin/file_qr.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "file_qr/plan.hpp"
#include "file_qr/run.hpp"
#include "quoin/version.hpp"

namespace quoin {

namespace fs = std::filesystem;

namespace {

/// "key=value key=value".
std::map<std::string, std::string> fields_of(const std::string& line) {
    std::map<std::string, std::string> fields;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
        const std::size_t equals = word.find('=');
        if (equals != word.npos) fields[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return fields;
}

/// All that the bits of the result depend on, and when the input was last written.
template <class T>
std::string identity_of(const io::NpyBlockReader<T>& A, const FileOptions& options) {
    struct stat status;
    if (stat(A.path().c_str(), &status) != 0) throw UnreadableFile(A.path(), "cannot be looked at");
    const io::NpyHeader& header = A.header();
    return fmt::format("quoin={} kernels={} size={} time={}.{:09} rows={} columns={} type={}{} order={} q={}",
                       version(), build_info().kernels, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                       header.rows, header.cols, static_cast<int>(header.type), header.swapped ? "s" : "",
                       header.fortran_order ? "F" : "C", options.want_q ? "wanted" : "not-wanted");
}

std::string choices_of(const FilePlan& plan) {
    return fmt::format("route={} stored={} block={} panel={} reach={}", static_cast<int>(plan.route), int{plan.stored},
                       plan.block, plan.panel, plan.reach);
}

/// What differs between two identities, for a person.
std::string difference(const std::string& of_journal, const std::string& here) {
    const auto before = fields_of(of_journal), now = fields_of(here);
    for (const auto& [key, value] : now) {
        const auto it = before.find(key);
        const std::string old = it == before.end() ? "nothing" : it->second;
        if (old == value) continue;
        if (key == "time") return "an input that was written to since";
        return fmt::format("{} {} instead of {}", key, old, value);
    }
    return "other options";
}

double bytes_in(const std::string& folder) {
    double bytes = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        struct stat status;
        if (stat(entry.path().c_str(), &status) == 0) bytes += 512.0 * static_cast<double>(status.st_blocks);
    }
    return bytes;
}

}  // namespace

template <class T>
struct FileQR<T>::Impl {
    Impl(Context<Host>& ctx, const std::string& input, const std::string& folder_, const FileOptions& options)
        : folder(folder_),
          journal_seconds(options.journal_seconds),
          A(input, bytes),
          journal((fs::path(folder_) / "quoin-journal").string()) {
        try {
            open(ctx, options);
        } catch (...) {
            leave();
            throw;
        }
    }
    ~Impl() { leave(); }

    void open(Context<Host>& ctx, const FileOptions& options) {
        const io::NpyHeader& header = A.header();
        const std::string identity = identity_of(A, options);
        if (options.restart) journal.clear();
        const std::vector<std::string> lines = journal.lines();
        // a run that ended before its plan was there had nothing
        if (lines.size() < 2) {
            plan = plan_file_qr<T>(ctx, header.rows, header.cols, options);
            require_memory(options, fmt::format("{}: a {} x {} matrix needs", A.path(), header.rows, header.cols));
            journal.clear();
            require_space();
            journal.append(identity);
            journal.append(choices_of(plan));
            return;
        }
        if (lines[0] != identity) {
            throw InvalidArgument(fmt::format("{}: this journal was begun for {}; restart discards it",
                                              journal.folder(), difference(lines[0], identity)));
        }
        adopt(ctx, lines[1], options);
        report.first_step = steps_done();
        if (!complete()) require_space();
    }

    /// The choices of the run that the journal is of.
    void adopt(Context<Host>& ctx, const std::string& choices, const FileOptions& options) {
        auto fields = fields_of(choices);
        const auto value = [&](const char* key) { return std::stoll(fields.at(key)); };
        plan.rows = A.header().rows;
        plan.cols = A.header().cols;
        plan.element_bytes = sizeof(T);
        plan.want_q = options.want_q;
        plan.route = static_cast<FileRoute>(value("route"));
        plan.stored = value("stored") != 0;
        plan.block = value("block");
        plan.panel = value("panel");
        plan.reach = value("reach");
        count_file_plan<T>(ctx, plan);
        require_memory(options, fmt::format("{}: this journal was begun with blocks that need", journal.folder()));
    }

    void require_memory(const FileOptions& options, const std::string& who) const {
        if (plan.memory_bytes <= options.memory) return;
        throw OutOfMemory(fmt::format("{} {:.0f} bytes of memory, and the cap is {:.0f}", who,
                                      std::ceil(plan.memory_bytes), options.memory));
    }

    void require_space() const {
        struct statvfs disk;
        if (statvfs(journal.folder().c_str(), &disk) != 0) return;
        const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
        const double needed = plan.disk_bytes - bytes_in(journal.folder());
        if (needed > free) {
            throw UnwritableFile(folder, fmt::format("{:.3g} GB are needed on its disk and {:.3g} GB are free",
                                                     needed / 1e9, free / 1e9));
        }
    }

    FileRun<T> files() { return {plan, journal_seconds, journal, A, bytes, reading, writing}; }
    Index steps_done() { return files().done("R") + files().done("Q"); }
    bool complete() const { return !journal.lines().empty() && journal.lines().back() == journal_end; }

    /// A journal without a step has nothing to go on from.
    void leave() noexcept {
        try {
            if (!removed && steps_done() == 0) remove();
        } catch (...) {
        }
    }
    void remove() {
        journal.remove();
        removed = true;
    }

    std::string folder;
    double journal_seconds;
    io::ByteCounters bytes;
    BusyClock reading, writing;
    io::NpyBlockReader<T> A;
    Journal journal;
    FilePlan plan;
    FileReport report;
    bool removed = false;
};

template <class T>
FileQR<T>::FileQR(Context<Host>& ctx, const std::string& input, const std::string& folder, const FileOptions& options)
    : impl_(std::make_unique<Impl>(ctx, input, folder, options)) {}
template <class T>
FileQR<T>::FileQR(FileQR&&) noexcept = default;
template <class T>
FileQR<T>::~FileQR() = default;

template <class T>
const FilePlan& FileQR<T>::plan() const {
    return impl_->plan;
}
template <class T>
Index FileQR<T>::steps_done() const {
    return impl_->steps_done();
}
template <class T>
const std::string& FileQR<T>::journal_folder() const {
    return impl_->journal.folder();
}
template <class T>
const FileReport& FileQR<T>::report() const {
    return impl_->report;
}
template <class T>
std::string FileQR<T>::r_path() const {
    return impl_->files().r_path();
}
template <class T>
std::string FileQR<T>::q_path() const {
    return impl_->files().q_path();
}

template <class T>
double FileQR<T>::bytes_moved() const {
    return static_cast<double>(impl_->bytes.read) + static_cast<double>(impl_->bytes.written);
}

template <class T>
double FileQR<T>::fraction() const {
    const FilePlan& plan = impl_->plan;
    const double left = 1 - static_cast<double>(impl_->report.first_step) / static_cast<double>(plan.steps());
    return left > 0 ? std::min(1.0, bytes_moved() / (left * (plan.bytes_read + plan.bytes_written))) : 1;
}

template <class T>
void FileQR<T>::run(Context<Host>& ctx) {
    Impl& f = *impl_;
    const auto start = std::chrono::steady_clock::now();
    const auto measure = [&] {
        f.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        f.report.bytes_read = static_cast<double>(f.bytes.read);
        f.report.bytes_written = static_cast<double>(f.bytes.written);
        f.report.read_seconds = f.reading.seconds();
        f.report.write_seconds = f.writing.seconds();
    };
    try {
        const bool by_rows = f.plan.route == FileRoute::RowBlocks;
        if (!f.complete()) (by_rows ? run_row_blocks<T> : run_slabs<T>)(ctx, f.files());
    } catch (const NonFiniteEntry&) {
        discard();  // the input has to change
        throw;
    } catch (...) {
        measure();
        throw;
    }
    measure();
}

template <class T>
void FileQR<T>::commit(bool keep_q) {
    Impl& f = *impl_;
    if (!f.complete()) throw InvalidArgument("FileQR::commit: the factorization is not complete");
    const auto name = [&](const std::string& from, const char* to) {
        std::error_code error;
        // a commit that was cut off has taken it already
        if (!fs::exists(from, error)) return;
        fs::rename(from, fs::path(f.folder) / to, error);
        if (error) throw UnwritableFile((fs::path(f.folder) / to).string(), error.message());
    };
    if (keep_q && f.plan.want_q) name(q_path(), "Q.npy");
    name(r_path(), "R.npy");
    f.remove();
}

template <class T>
void FileQR<T>::discard() {
    impl_->remove();
}

template class FileQR<float>;
template class FileQR<double>;

}  // namespace quoin
