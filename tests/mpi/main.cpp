// The tests of ranks under mpiexec: every process runs all of them, each as one rank. Rank 0 reports.

#include <gtest/gtest.h>

#include "quoin/mpi.hpp"
#include "ranks.hpp"

namespace quoin::test {

std::vector<int> rank_counts() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return {size};
}

void on_ranks(int, const std::function<void(Communicator&)>& f) {
    MpiCommunicator comm(MPI_COMM_WORLD);
    f(comm);
}

}  // namespace quoin::test

int main(int argc, char** argv) {
    int threads = 0, rank = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    testing::InitGoogleTest(&argc, argv);
    if (rank != 0) testing::GTEST_FLAG(output) = "";
    const int status = RUN_ALL_TESTS();
    MPI_Finalize();
    return status;
}
