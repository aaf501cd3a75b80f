#pragma once

#include <mpi.h>

#include <vector>

#include "quoin/communicator.hpp"

namespace quoin {

/// The ranks of an MPI communicator: the library quoin_mpi, for CMake quoin::mpi of find_package(quoin COMPONENTS mpi).
///
/// Its messages are MPI_Send, MPI_Isend and MPI_Recv on a duplicate of `comm`, which returns errors instead of
/// aborting. An Error with ErrorCode::CommunicationFailure then has MPI's own text. Messages of more than
/// `largest_message` bytes (at most 2^31 − 1) are sent in parts.
///
/// Construction and destruction are collective: all ranks of `comm` take part, after MPI_Init and before MPI_Finalize.
/// One thread at a time uses it; MPI_THREAD_FUNNELED is enough if it is the main thread. Throws InvalidArgument if MPI
/// is not initialised, `comm` is an intercommunicator or largest_message is out of range, and CommunicationFailure.
///
///     MPI_Init(&argc, &argv);
///     {
///         MpiCommunicator comm(MPI_COMM_WORLD);
///         Context<Host> ctx;
///         auto f = qr(ctx, comm, A.view());  // this rank's rows
///     }
///     MPI_Finalize();
class MpiCommunicator final : public Communicator {
public:
    explicit MpiCommunicator(MPI_Comm comm, Index largest_message = Index{1} << 30);
    ~MpiCommunicator() override;

private:
    void send_bytes(const void* data, Index bytes, int to, int note) override;
    void start_bytes(const void* data, Index bytes, int to, int note) override;
    void finish_started() override;
    int receive_bytes(void* data, Index bytes, int from) override;
    void check(int status, const char* operation) const;

    MPI_Comm comm_ = MPI_COMM_NULL;
    Index largest_message_;
    std::vector<MPI_Request> started_;
};

}  // namespace quoin
