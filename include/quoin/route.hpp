#pragma once

#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "quoin/file_qr.hpp"
#include "quoin/out_of_core.hpp"
#include "quoin/rows.hpp"

namespace quoin {

/// The work on a matrix. It decides which matrices are in memory at one time.
enum class Work {
    Factor,          ///< `qr`: R and, unless QForm::None, Q
    LeastSquares,    ///< `least_squares`
    SVD,             ///< `svd` with vectors
    SingularValues,  ///< `svd` without vectors
};

/// The work on a matrix, and the memory for it.
struct RouteOptions {
    Options options{};  ///< method, form of Q, arithmetic, and check of NaN and Inf
    Work work = Work::Factor;
    Index right_hand_sides = 0;  ///< of Work::LeastSquares
    bool verify = false;         ///< of Work::Factor: A is in memory once more, to measure the accuracy
    /// Bytes that matrices and workspace may take on the device.
    double memory = std::numeric_limits<double>::infinity();
    double reader_bytes = 0;  ///< bytes of the host's memory that the reader of A takes; on the host a part of `memory`
    /// On a GPU: bytes that blocks of a larger A may take there, including the libraries'; 0: `memory`.
    double block_memory = 0;
    /// On a GPU: bytes that a larger A may take in the host's memory.
    double host_memory = std::numeric_limits<double>::infinity();
    /// If A is in an .npy file and its factors go to files: choices for a matrix that fits no memory. The memories and
    /// the arithmetic of these choices are ignored.
    std::optional<FileOptions> files{};
};

/// By blocks of rows (StreamingR, or StreamingQR with Q), and its costs. A pure value.
struct StreamPlan {
    Index cols = 0, right_hand_sides = 0;
    ScalarKind scalar = ScalarKind::F64;
    bool with_q = false;
    RowBlocks blocks;
    double memory_bytes = 0;             ///< the cap
    double bytes_in = 0, bytes_out = 0;  ///< to the device and from it
    double flops = 0;
    double seconds = 0;  ///< prediction of the copies to a GPU, by OutOfCoreRates::link
};
/// In the host's memory, block by block through a GPU: `qr_out_of_core` with these options.
struct OutOfCoreRoute {
    OutOfCoreOptions options;
    OutOfCorePlan plan;
};
/// From file to file: FileQR with these options.
struct FilesRoute {
    FileOptions options;
    FilePlan plan;
};

/// How a matrix passes through memory. A pure value.
struct RoutePlan {
    /// Plan: in the memory of the device.
    std::variant<Plan, StreamPlan, OutOfCoreRoute, FilesRoute> by;
    /// Bytes that the route takes: in the host's memory for OutOfCoreRoute and FilesRoute, else in the device's.
    double memory_bytes = 0;
    double cap = 0;        ///< on this memory
    double min_bytes = 0;  ///< smallest cap that works; a route after one that fits may need less

    /// Whether the route works within `cap`.
    bool fits() const { return memory_bytes <= cap; }
    /// Returns "memory", "row-blocks", "out-of-core" or "files".
    const char* name() const;
};

/// Chooses how an m×n matrix of T passes through the memory of a device D and of the host: the first of these routes
/// that fits.
///
/// 1. In memory. It is the only route of column pivoting.
/// 2. By blocks of rows: R and Q of a tall matrix on a GPU by Auto or TSQR, least squares by these methods, and
///    singular values on the host.
/// 3. Factorizations on a GPU by Auto, BlockedHouseholder or ClassicalGramSchmidt, without a full T: A in the host's
///    memory, block by block through the GPU.
/// 4. From file to file, if `files` are given, m, n >= 1 and there is no full T: on the host by Auto, TSQR or
///    BlockedHouseholder, on a GPU by Auto or BlockedHouseholder.
///
/// If none fits, returns one of them, whose memory_bytes exceed its cap; `min_bytes` would do. Pure: touches no
/// matrix. Costs less than a millisecond for a matrix in memory, and at most some hundred plans of blocks.
///
/// Throws InvalidArgument as `plan_qr` and for negative right_hand_sides, and OutOfMemory as `plan_out_of_core` if a
/// GPU's memory is too small for one block of the third or fourth route.
///
///     RoutePlan route = plan_route<double>(ctx, 200000000, 40, {.memory = 2e9, .files = FileOptions{}});
///     if (auto* by = std::get_if<FilesRoute>(&route.by)) FileQR<double>(ctx, path, folder, by->options).run(ctx);
template <class T, class D>
RoutePlan plan_route(const Context<D>& ctx, Index m, Index n, const RouteOptions& options);
/// Returns the second of these routes with the largest blocks of rows that fit, or nothing. Blocks have at least max(n,
/// 64) rows; on a GPU more than 256 MiB and 8n rows gain nothing. Needs no GPU.
template <class T, class D>
std::optional<RoutePlan> plan_stream(Index m, Index n, const RouteOptions& options);

/// Returns the bytes of the host's memory for an m×n A, which Q replaces, and R, if a GPU computes with blocks of them.
/// To verify, A once more.
double bytes_beside_gpu(Index m, Index n, int element_bytes, bool verify);

/// "factor", "least-squares", "svd", "singular-values".
const char* to_string(Work work);
/// "R in one pass over A, Q in a second one, streaming-tsqr, 12 blocks of 4096 rows".
std::string to_string(const StreamPlan& plan);
/// Describes the plan of the route.
std::string to_string(const RoutePlan& route);

}  // namespace quoin
