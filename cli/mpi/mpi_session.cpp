#include "mpi_session.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "io/control_group.hpp"

namespace quoin::cli {

MpiSession::MpiSession() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine_);
    MPI_Comm_size(machine_, &neighbours_);
    MPI_Comm_rank(machine_, &place_);
}

MpiSession::~MpiSession() {
    MPI_Comm_free(&machine_);
    MPI_Finalize();
}

void MpiSession::wait_for_all() const { MPI_Barrier(MPI_COMM_WORLD); }

int MpiSession::cores() const {
    cpu_set_t own;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    std::vector<cpu_set_t> all(static_cast<std::size_t>(neighbours_));
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, machine_);
    const auto same =
        std::count_if(all.begin(), all.end(), [&](const cpu_set_t& other) { return CPU_EQUAL(&own, &other); });
    const double usable = std::min<double>(CPU_COUNT(&own), std::ceil(io::control_group_limits().cpus));
    return std::max(1, static_cast<int>(usable) / static_cast<int>(same));
}

}  // namespace quoin::cli
