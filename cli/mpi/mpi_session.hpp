#pragma once

#include <mpi.h>

namespace quoin::cli {

/// MPI, from construction to destruction, of a program that is one of several processes.
class MpiSession {
public:
    MpiSession();
    ~MpiSession();
    MpiSession(const MpiSession&) = delete;
    MpiSession& operator=(const MpiSession&) = delete;

    int rank() const { return rank_; }
    /// The processes of this machine, and this one's place among them.
    int neighbours() const { return neighbours_; }
    int place() const { return place_; }

    void wait_for_all() const;
    /// The cores that this process may use, at most its CPU quota rounded up, divided by the processes of this machine
    /// that may use the same; at least 1.
    int cores() const;

private:
    MPI_Comm machine_ = MPI_COMM_NULL;
    int rank_ = 0, neighbours_ = 1, place_ = 0;
};

}  // namespace quoin::cli
