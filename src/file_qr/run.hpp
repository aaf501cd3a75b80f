#pragma once

// Shared by both routes over files.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <utility>

#include "algorithms/out_of_core/pipeline.hpp"
#include "algorithms/out_of_core/slow.hpp"
#include "comm/joint_call.hpp"
#include "io/journal.hpp"
#include "io/npy_blocks.hpp"
#include "quoin/file_qr.hpp"

namespace quoin {

/// Counts the seconds in which at least one of several threads is busy.
class BusyClock {
public:
    class Scope {
    public:
        explicit Scope(BusyClock& clock) : clock_(clock), start_(std::chrono::steady_clock::now()) {}
        ~Scope() {
            const auto spent = std::chrono::steady_clock::now() - start_;
            clock_.nanoseconds_ += std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
        }

    private:
        BusyClock& clock_;
        std::chrono::steady_clock::time_point start_;
    };
    double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_); }

private:
    std::atomic<std::int64_t> nanoseconds_{0};
};

/// The device of files. Its context does one piece of work after the other, on a thread of its own.
struct Disk {};
template <>
class Context<Disk> {
public:
    /// Behind the work before. Throws what that threw.
    template <class Work>
    void start(Work work) {
        wait();
        work_ = std::async(std::launch::async, std::move(work));
    }
    /// Throws what the work threw.
    void wait() {
        if (work_.valid()) work_.get();
    }
    bool is_busy() const {
        return work_.valid() && work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    }

private:
    std::future<void> work_;  // ends before the context does
};
/// Traces have no row for it.
template <>
class Span<Disk> {
public:
    Span(Context<Disk>&, const char*, Index) {}
};
inline void wait_for(Context<Host>&, Context<Disk>& disk) { disk.wait(); }
inline void wait_for(Context<Disk>&, Context<Host>&) {}  // the host's work is done when it has been asked for

/// A run of several ranks, each with its own rows and journal: their passes are side by side, and what one rank throws
/// all throw.
class FileRanks {
public:
    FileRanks(Context<Host>& ctx, Communicator& comm) : call_(ctx, comm, RankOperation::FileQr) {}
    Communicator& comm() const { return call_.comm(); }
    bool is_root() const { return comm().rank() == 0; }

    /// Does a pass, and waits for the other ranks to do theirs.
    template <class Pass>
    void together(Pass&& pass) {
        all_done_ = false;
        call_.attempt(pass);
        while (!all_done_) meet(0);
        call_.agree();
    }
    /// A step of the pass is computed, and `left` are not. Throws where another rank has failed.
    void meet(Index left) { all_done_ = everywhere(left == 0); }
    /// Whether it is so on every rank.
    bool everywhere(bool here) {
        const auto there = call_.agree({}, here);
        return std::all_of(there.begin(), there.end(), [](Index is_so) { return is_so != 0; });
    }

private:
    JointCall call_;
    bool all_done_ = true;
};

/// One run: its input, its journal and unfinished files, and counts of the bytes that it moves.
template <class T>
struct FileRun {
    const FilePlan& plan;
    double journal_seconds;  // FileOptions'
    io::Journal& journal;
    io::NpyBlockReader<T>& A;
    io::PageMemory& staging;  // for reading
    io::ByteCounters& bytes;
    BusyClock& reading;
    BusyClock& writing;
    BytesMoved& moved;
    FileRanks* ranks = nullptr;              // none: one process has all rows
    std::string outputs = journal.folder();  // the folder of the unfinished R and Q, of all ranks

    /// Steps of a pass that are on the disk: k of the last line "R k" or "Q k" of the journal.
    Index done(const std::string& pass) const {
        Index k = 0;
        for (const std::string& line : journal.lines())
            if (line.starts_with(pass + " ")) k = std::stoll(line.substr(pass.size() + 1));
        return k;
    }
    /// How often the journal says so.
    Index records(const std::string& pass) const {
        Index count = 0;
        for (const std::string& line : journal.lines()) count += line.starts_with(pass + " ");
        return count;
    }
    std::string r_path() const { return outputs + "/R.npy"; }
    std::string q_path() const { return outputs + "/Q.npy"; }
};

/// Beside those lines: R.npy is complete, and of several ranks E of this one is on the disk; nothing is left to do but
/// `commit`.
inline constexpr const char* journal_r = "R.npy";
inline constexpr const char* journal_end = "done";

template <class T>
void run_row_blocks(Context<Host>& ctx, const FileRun<T>& run);
template <class T, class D>
void run_slabs(Context<D>& ctx, const FileRun<T>& run);

}  // namespace quoin
