#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quoin/communicator.hpp"

/// The engine under a test of ranks: threads, or in tests/mpi/main.cpp MPI.
namespace quoin::test {

#ifdef QUOIN_TEST_MPI
/// The number of ranks that mpiexec has started.
std::vector<int> rank_counts();
void on_ranks(int ranks, const std::function<void(Communicator&)>& f);
#else
inline std::vector<int> rank_counts() { return {1, 2, 3, 4, 7}; }
inline void on_ranks(int ranks, const std::function<void(Communicator&)>& f) { run_ranks(ranks, f); }
#endif

/// Consecutive rows of an m×n matrix for each rank.
struct Spread {
    const char* name;
    std::vector<Range> (*rows)(Index m, Index n, int ranks);
};

/// Rows [0, m) cut where rank r ends at `end(r)`, r = 1, …, ranks − 1.
template <class F>
std::vector<Range> cut_at(Index m, int ranks, F end) {
    std::vector<Range> rows;
    Index begin = 0;
    for (int r = 1; r <= ranks; ++r) {
        const Index e = r == ranks ? m : std::min(m, std::max(begin, end(r)));
        rows.push_back({begin, e});
        begin = e;
    }
    return rows;
}

/// Even shares; nearly all rows on the first or on the last rank; every other rank without rows; n − 1 rows a rank as
/// far as they go, and none after that; n rows a rank, and the rest on the last.
inline constexpr Spread spreads[] = {
    {"even", [](Index m, Index, int p) { return cut_at(m, p, [=](int r) { return m * r / p; }); }},
    {"first", [](Index m, Index, int p) { return cut_at(m, p, [=](int r) { return m - (p - r); }); }},
    {"last", [](Index m, Index, int p) { return cut_at(m, p, [](int r) { return Index(r); }); }},
    {"every_other", [](Index m, Index, int p) { return cut_at(m, p, [=](int r) { return m * (r / 2 * 2) / p; }); }},
    {"short", [](Index m, Index n, int p) { return cut_at(m, p, [=](int r) { return m - (n - 1) * (p - r); }); }},
    {"least", [](Index m, Index n, int p) { return cut_at(m, p, [=](int r) { return n * r; }); }},
};

/// All ranks' rows, one below the other, on rank 0; on other ranks a matrix without entries.
template <class T>
Matrix<T> gather(Context<Host>& ctx, Communicator& comm, const std::vector<Range>& rows, MatrixView<const T> mine) {
    if (comm.rank() != 0) {
        comm.send<T>(ctx, mine, 0);
        return {};
    }
    Matrix<T> all(rows.back().end, mine.cols);
    for (int r = 0; r < comm.size(); ++r) {
        const auto there = all.view().row_block(rows[r]);
        if (r > 0) {
            comm.receive<T>(ctx, there, r);
        } else {
            copy<T>(ctx, mine, there);
        }
    }
    return all;
}

/// Whether the bytes equal rank 0's; every rank calls it.
inline bool same_as_on_root(Context<Host>& ctx, Communicator& comm, const std::string& bytes) {
    std::vector<Index> words(bytes.begin(), bytes.end());
    Index size = static_cast<Index>(words.size());
    comm.broadcast<Index>(ctx, {&size, 1, 1});
    std::vector<Index> of_root(words);
    of_root.resize(size);
    comm.broadcast<Index>(ctx, {of_root.data(), size, 1});
    return of_root == words;
}
template <class T>
bool same_as_on_root(Context<Host>& ctx, Communicator& comm, MatrixView<const T> A) {
    std::string bytes;
    for (Index j = 0; j < A.cols; ++j) bytes.append(reinterpret_cast<const char*>(A.at(0, j)), A.rows * sizeof(T));
    return same_as_on_root(ctx, comm, bytes);
}

}  // namespace quoin::test
