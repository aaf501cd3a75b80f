// A communicator for each row and each column of a grid of processes.

#include <fmt/format.h>

#include "quoin/block_cyclic.hpp"

namespace quoin {

namespace {

std::unique_ptr<Communicator> line_of(Communicator& comm, int first, int step, int count) {
    std::vector<int> members(count);
    for (int i = 0; i < count; ++i) members[i] = first + i * step;
    return std::make_unique<SubCommunicator>(comm, std::move(members));
}

}  // namespace

ProcessGrid::ProcessGrid(Communicator& comm, int rows, int cols) : comm_(comm), rows_(rows), cols_(cols) {
    if (rows < 1 || cols < 1 || Index{rows} * cols != comm.size()) {
        throw InvalidArgument(fmt::format("ProcessGrid: {} x {} processes are not the {} ranks of the communicator",
                                          rows, cols, comm.size()));
    }
    row_comm_ = line_of(comm, rank_at(row(), 0), 1, cols);
    col_comm_ = line_of(comm, col(), cols, rows);
}

Traffic ProcessGrid::traffic() const {
    Traffic sum;
    for (const Communicator* part : {&comm_, row_comm_.get(), col_comm_.get()}) {
        const Traffic& t = part->traffic();
        sum.messages_sent += t.messages_sent;
        sum.words_sent += t.words_sent;
        sum.messages_received += t.messages_received;
        sum.words_received += t.words_received;
    }
    return sum;
}

}  // namespace quoin
