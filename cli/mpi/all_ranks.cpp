#include "all_ranks.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <new>
#include <vector>

#include "quoin/error.hpp"

namespace quoin::cli {

MpiSession::MpiSession() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiSession::~MpiSession() { MPI_Finalize(); }

void MpiSession::wait_for_all() const { MPI_Barrier(MPI_COMM_WORLD); }

int MpiSession::cores() const {
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int neighbours = 1;
    MPI_Comm_size(machine, &neighbours);
    cpu_set_t own;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    std::vector<cpu_set_t> all(static_cast<std::size_t>(neighbours));
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, machine);
    MPI_Comm_free(&machine);
    const auto same =
        std::count_if(all.begin(), all.end(), [&](const cpu_set_t& other) { return CPU_EQUAL(&own, &other); });
    return std::max(1, CPU_COUNT(&own) / static_cast<int>(same));
}

std::string MpiSession::text_of(int rank, std::string text) const {
    int length = static_cast<int>(text.size());
    MPI_Bcast(&length, 1, MPI_INT, rank, MPI_COMM_WORLD);
    text.resize(static_cast<std::size_t>(length));
    MPI_Bcast(text.data(), length, MPI_CHAR, rank, MPI_COMM_WORLD);
    return text;
}

void MpiSession::together(const std::function<void()>& work) const {
    constexpr int none = -1;
    int code = none;
    std::string text;
    try {
        work();
    } catch (const Error& e) {
        code = static_cast<int>(e.code());
        text = e.what();
    } catch (const std::bad_alloc&) {
        code = static_cast<int>(ErrorCode::OutOfMemory);
        text = "out of memory";
    } catch (const std::exception& e) {
        code = static_cast<int>(ErrorCode::CommunicationFailure);
        text = e.what();
    }
    int first = code == none ? size_ : rank_, failed = code != none;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == size_) return;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
    text = text_of(first, text);
    if (static_cast<ErrorCode>(code) == ErrorCode::Interrupted) throw Interrupted();
    throw Error(static_cast<ErrorCode>(code), failed == size_ ? text : fmt::format("rank {}: {}", first, text));
}

}  // namespace quoin::cli
