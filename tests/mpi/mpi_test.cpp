// Tests of MPI's engine alone: messages in parts, and errors that are returned.

#include <gtest/gtest.h>

#include "quoin/error.hpp"
#include "quoin/mpi.hpp"

namespace quoin::test {
namespace {

TEST(Mpi, LongMessagesGoInParts) {
    Context<Host> ctx(1);
    for (const Index largest : {Index{1}, Index{7}, Index{8 * 1001}, Index{1} << 30}) {
        MpiCommunicator comm(MPI_COMM_WORLD, largest);
        Matrix<double> A(1001, 1);
        for (Index i = 0; i < A.rows(); ++i) A(i, 0) = comm.rank() == 0 ? 1.0 / (1 + static_cast<double>(i)) : -1;
        EXPECT_EQ(comm.broadcast<double>(ctx, A.view()), 0);
        for (Index i = 0; i < A.rows(); ++i) ASSERT_EQ(A(i, 0), 1.0 / (1 + static_cast<double>(i)));
    }
    EXPECT_THROW(MpiCommunicator(MPI_COMM_WORLD, 0), InvalidArgument);
    EXPECT_THROW(MpiCommunicator(MPI_COMM_WORLD, Index{1} << 31), InvalidArgument);
}

TEST(Mpi, AnIntercommunicatorIsRefused) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 1) return;
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0, 0, &both);
    EXPECT_THROW(MpiCommunicator{both}, InvalidArgument);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

TEST(Mpi, ErrorsAreReturnedAndTheCallersHandlerStays) {
    MPI_Errhandler before, after;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    {
        MpiCommunicator comm(MPI_COMM_WORLD);
        Context<Host> ctx(1);
        Matrix<double> A(4, 1);
        std::fill_n(A.data(), 4, 1.0);
        if (comm.rank() == 1) comm.send<double>(ctx, A.view(), 0);
        if (comm.rank() == 0 && comm.size() > 1) {
            try {
                comm.receive<double>(ctx, A.view().row_block({0, 2}), 1);
                FAIL() << "a message of 4 words where 2 are expected";
            } catch (const Error& e) {
                EXPECT_EQ(e.code(), ErrorCode::CommunicationFailure);
                EXPECT_NE(std::string(e.what()).find("rank 0"), std::string::npos) << e.what();
            }
        }
    }
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
    EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace quoin::test
