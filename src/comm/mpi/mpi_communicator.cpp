// Messages by MPI.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "quoin/mpi.hpp"

namespace quoin {
namespace {

int rank_in(MPI_Comm comm) {
    int initialised = 0, rank = 0;
    MPI_Initialized(&initialised);
    if (!initialised) throw InvalidArgument("MpiCommunicator: MPI is not initialised");
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm, Index largest_message)
    : Communicator(rank_in(comm), size_of(comm)), largest_message_(largest_message) {
    if (largest_message < 1 || largest_message > std::numeric_limits<int>::max()) {
        throw InvalidArgument(
            fmt::format("MpiCommunicator: largest_message must be from 1 to 2^31 - 1, and is {}", largest_message));
    }
    int is_inter = 0;
    check(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
    if (is_inter) {
        throw InvalidArgument(
            "MpiCommunicator: comm is an intercommunicator, of two groups; MPI_Intercomm_merge gives a communicator of "
            "both");
    }
    check(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiCommunicator::~MpiCommunicator() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Comm_free(&comm_);
}

void MpiCommunicator::check(int status, const char* operation) const {
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(status, text, &length);
    throw Error(ErrorCode::CommunicationFailure,
                fmt::format("{} on rank {} of {}: {}", operation, rank(), size(), std::string_view(text, length)));
}

// A note is a message's tag; a message without a note has tag 0.

void MpiCommunicator::send_bytes(const void* data, Index bytes, int to, int note) {
    const char* part = static_cast<const char*>(data);
    do {
        const Index count = std::min(bytes, largest_message_);
        check(MPI_Send(part, static_cast<int>(count), MPI_BYTE, to, note, comm_), "MPI_Send");
        part += count;
        bytes -= count;
    } while (bytes > 0);
}

void MpiCommunicator::start_bytes(const void* data, Index bytes, int to, int note) {
    const char* part = static_cast<const char*>(data);
    do {
        const Index count = std::min(bytes, largest_message_);
        started_.push_back(MPI_REQUEST_NULL);
        check(MPI_Isend(part, static_cast<int>(count), MPI_BYTE, to, note, comm_, &started_.back()), "MPI_Isend");
        part += count;
        bytes -= count;
    } while (bytes > 0);
}

void MpiCommunicator::finish_started() {
    const int status = MPI_Waitall(static_cast<int>(started_.size()), started_.data(), MPI_STATUSES_IGNORE);
    started_.clear();
    check(status, "MPI_Waitall");
}

int MpiCommunicator::receive_bytes(void* data, Index bytes, int from) {
    char* part = static_cast<char*>(data);
    do {
        const int count = static_cast<int>(std::min(bytes, largest_message_));
        MPI_Status status;
        int received = 0;
        check(MPI_Recv(part, count, MPI_BYTE, from, MPI_ANY_TAG, comm_, &status), "MPI_Recv");
        if (status.MPI_TAG != 0) return status.MPI_TAG;
        check(MPI_Get_count(&status, MPI_BYTE, &received), "MPI_Get_count");
        if (received != count) {
            throw Error(
                ErrorCode::CommunicationFailure,
                fmt::format("rank {} expects {} bytes from rank {}, which sends {}", rank(), count, from, received));
        }
        part += count;
        bytes -= count;
    } while (bytes > 0);
    return 0;
}

}  // namespace quoin
