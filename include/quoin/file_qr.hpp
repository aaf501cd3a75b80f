#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "quoin/communicator.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// How a matrix in a file is factored in less memory than it needs.
enum class FileRoute {
    RowBlocks,  ///< tall: a flat tree over blocks of rows, R in one pass, Q in a second one backward
    Slabs,      ///< any shape: slabs of columns from left to right; the earlier reflectors stream past each
};

/// How the second pass of RowBlocks gets its reflectors. With the same blocks the bits of the result are the same.
enum class SecondPass {
    Auto,        ///< by the number of columns, as measured
    Stored,      ///< V and T of every block wait on the disk: one more m×n written, 2mn² flops fewer
    Recomputed,  ///< every block of A is read and factored again
};

/// "auto", "stored", "recomputed".
const char* to_string(SecondPass second_pass);

/// Choices of a factorization from file to file.
struct FileOptions {
    double memory = 0;   ///< bytes of matrices and workspace; pieces of files and the program itself take 32 MiB more
    bool want_q = true;  ///< Q.npy beside R.npy
    SecondPass second_pass = SecondPass::Auto;
    bool restart = false;  ///< discard what an earlier run left of the same output
    /// Steps shorter than this share a line of the journal while flushing the disk takes longer than computing them.
    double journal_seconds = 1;
    /// On a GPU: bytes of its memory, libraries' included, and the products' arithmetic as OutOfCoreOptions has them.
    double device_memory = 0;
    Arithmetic arithmetic = Arithmetic::Auto;
};

/// The choices for one shape and cap, and what they cost: a pure value.
struct FilePlan {
    Index rows = 0, cols = 0;  ///< rows of this rank
    int ranks = 1;             ///< that share the rows of the file
    Index first_row = 0;       ///< of this rank
    Index all_rows = 0;        ///< of the file
    int element_bytes = 0;
    FileRoute route = FileRoute::RowBlocks;
    bool want_q = true;
    bool stored = false;                         ///< of RowBlocks: SecondPass::Stored
    Index block = 0;                             ///< rows a block (the first one has cols more), or columns a slab
    Index panel = 0;                             ///< of Slabs: columns of a panel
    Index v_block = 0;                           ///< of Slabs: columns of V that come by at a time
    Arithmetic arithmetic = Arithmetic::Native;  ///< of Slabs
    Index blocks = 0;                            ///< of A, or slabs
    Index chunk = 0;                             ///< of Slabs on a GPU: columns at a time in the host's memory, twice
    double memory_bytes = 0;                     ///< of the host, at most
    double device_memory_bytes = 0;              ///< of a GPU, at most
    double device_workspace_bytes = 0;           ///< of it: for products, panels and libraries
    double disk_bytes = 0;                       ///< most that lies beside the input at a time, the outputs among it
    double bytes_read = 0;                       ///< from files, exact but for headers
    double bytes_written = 0;
    double flops = 0;

    Index steps() const;  ///< of the computation, as the journal counts them
};

/// If no plan fits `options.memory`, the plan that takes least; its memory_bytes then exceed the cap. m, n >= 1. Throws
/// OutOfMemory, as plan_out_of_core does, if a GPU's memory is too small.
template <class T, class D>
FilePlan plan_file_qr(const Context<D>& ctx, Index m, Index n, const FileOptions& options);
/// That of a rank, where several share the rows of the file evenly: RowBlocks. `options.memory` is that of one rank. Throws
/// InvalidArgument where a rank would not have more than n rows.
template <class T>
FilePlan plan_file_qr(const Context<Host>& ctx, Index m, Index n, const FileOptions& options, int ranks, int rank);
/// The same by way of a GPU, D = Cuda. Needs no GPU.
template <class T, class D>
FilePlan plan_file_qr(Index m, Index n, const FileOptions& options);

/// A paragraph for a person.
std::string to_string(const FilePlan& plan);

/// What a run has done.
struct FileReport {
    Index first_step = 0;  ///< where it began: above 0 if it continued an earlier run
    double seconds = 0;
    double bytes_read = 0, bytes_written = 0;    ///< counted
    double read_seconds = 0, write_seconds = 0;  ///< during which at least one transfer was active
    double bytes_to_device = 0, bytes_from_device = 0;
    double device_memory_bytes = -1;  ///< of a GPU, held by the context at the end
};

/// A = QR of a matrix in an .npy file, out of core: R.npy and Q.npy (thin Q) in a folder.
///
/// Tall matrices by a flat tree over blocks of rows (Demmel, Grigori, Hoemmen, Langou 2012), with [R_{i−1}; A_i] = H_i [R_i; 0]
/// one after the other and backward H_i [E_i; 0] = [E_{i−1}; Q_i]; others by left-looking Householder (Toledo and Rabani 2002).
/// On a GPU always by the latter: slabs as wide as its memory allows, and between the files and it two chunks of columns in the
/// host's memory and 512 MiB of pinned buffers.
/// Reflectors alone: ‖I − QᵀQ‖ and ‖A − QR‖/‖A‖ of order n·u for every finite A; √N times that over N blocks.
/// Flops: 2mn² for R and as many for Q, times 1 + 2n/(3h) for blocks of h rows; 2mn² more where they are recomputed.
/// Files are read ahead and written behind the computation, past the page cache.
///
/// Several ranks share the rows of a file evenly: each has its own blocks, and
///
///     [R_0; …; R_{P−1}] = [E_0; …; E_{P−1}] R
///
/// of their triangles is TSQR, as `qr` over ranks; the backward pass of rank i begins with E_i. All ranks write rows of one Q.npy.
/// Every rank makes the object and calls `run`, `commit` and `discard` together. An error of one rank is thrown on all of them by
/// the end of the block that they are at.
///
/// A journal in the folder `quoin-journal` of the output says what is finished. After a run that ended for any reason,
/// the next object for the same input, shape and options continues it, with the same bits. kill -9 loses the current step and
/// what is being written to the disk: the previous step, or, if steps are shorter, `journal_seconds` of computation.
/// Outputs appear under their names at `commit`.
///
///     FileQR<double> f(ctx, "A.npy", "factors", {.memory = 512e6});
///     f.run(ctx);
///     f.commit();
template <class T, class D = Host>
class FileQR {
public:
    /// Opens the input and the journal; `folder` exists. Throws UnreadableFile, UnwritableFile (also if the disk has too little
    /// space), OutOfMemory, and InvalidArgument for a journal of another input or with other options.
    FileQR(Context<D>& ctx, const std::string& input, const std::string& folder, const FileOptions& options);
    /// The same by the ranks of `comm`, which outlives it. Each has a journal of its own, which another number of ranks refuses.
    FileQR(Context<D>& ctx, Communicator& comm, const std::string& input, const std::string& folder,
           const FileOptions& options) requires std::is_same_v<D, Host>;
    FileQR(FileQR&&) noexcept;
    ~FileQR();

    const FilePlan& plan() const;
    /// Steps of this rank that are on the disk.
    Index steps_done() const;
    /// Of this run's bytes, for any thread to ask.
    double fraction() const;
    double bytes_moved() const;
    const std::string& journal_folder() const;

    /// Runs the remaining steps. Throws NonFiniteEntry (with the row in the file), Interrupted, UnreadableFile, UnwritableFile;
    /// finished steps are kept.
    void run(Context<D>& ctx);
    const FileReport& report() const;

    /// Paths of the complete R and Q before `commit`.
    std::string r_path() const;
    std::string q_path() const;
    /// Renames the outputs to R.npy and, if wanted, Q.npy, and removes the journal.
    void commit(bool keep_q = true);
    /// Removes the journal and all that it keeps.
    void discard();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace quoin
