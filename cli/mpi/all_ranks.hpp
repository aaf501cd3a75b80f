#pragma once

#include <mpi.h>

#include <functional>
#include <string>

namespace quoin::cli {

/// MPI, from construction to destruction, of a program that is one of several processes.
class MpiSession {
public:
    MpiSession();
    ~MpiSession();
    MpiSession(const MpiSession&) = delete;
    MpiSession& operator=(const MpiSession&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }

    void wait_for_all() const;
    /// The cores that this process may use, divided by the processes of this machine that may use the same; at least 1.
    int cores() const;
    /// Every process calls it and does its work; if one throws, the first by rank, all throw an Error with its code and message, which
    /// names the rank unless all say the same.
    void together(const std::function<void()>& work) const;
    /// The text of process `rank` on every process.
    std::string text_of(int rank, std::string text) const;

private:
    int rank_ = 0, size_ = 1;
};

}  // namespace quoin::cli
