#pragma once

#include <string>
#include <type_traits>

#include "quoin/communicator.hpp"
#include "quoin/options.hpp"
#include "quoin/owned.hpp"

namespace quoin {

/// How a matrix in a file is factored in less memory than it needs.
enum class FileRoute {
    RowBlocks,  ///< tall: a flat tree over blocks of rows, R in one pass, Q in a second one backward
    Slabs,      ///< any shape: slabs of columns from left to right; the earlier reflectors stream past each
};

/// How the second pass of RowBlocks gets its reflectors. The choice does not change the bits of the result if the
/// blocks are equal.
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
    bool want_q = true;  ///< write Q.npy, too
    SecondPass second_pass = SecondPass::Auto;
    bool restart = false;  ///< discard what an earlier run left of the same output
    /// Steps shorter than this share a line of the journal if flushing the disk takes longer than computing them.
    double journal_seconds = 1;
    /// On a GPU: bytes of its memory, including the libraries', and the arithmetic of the products, as in
    /// OutOfCoreOptions.
    double device_memory = 0;
    Arithmetic arithmetic = Arithmetic::Auto;
};

/// The choices for one shape and cap, and their costs. A pure value.
struct FilePlan {
    Index rows = 0, cols = 0;  ///< rows of this rank
    int ranks = 1;             ///< that share the rows of the file
    Index first_row = 0;       ///< of this rank
    Index all_rows = 0;        ///< of the file
    ScalarKind scalar = ScalarKind::F64;
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
    double device_workspace_bytes = 0;           ///< the part for products, panels and libraries
    double disk_bytes = 0;                       ///< largest total of all files but the input, outputs included
    double bytes_read = 0;                       ///< from files, exact but for headers
    double bytes_written = 0;
    double flops = 0;

    /// Returns the number of steps of the computation, as the journal counts them.
    Index steps() const;
};

/// Plans an m×n factorization, m, n >= 1. If no plan fits `options.memory`, returns the plan that takes least. Its
/// memory_bytes then exceed the cap. Throws OutOfMemory, as plan_out_of_core does, if a GPU's memory is too small.
template <class T, class D>
FilePlan plan_file_qr(const Context<D>& ctx, Index m, Index n, const FileOptions& options);
/// Plans the part of `rank` if `ranks` ranks share the rows of the file evenly: RowBlocks. `options.memory` is the
/// memory of one rank. Throws InvalidArgument unless every rank has more than n rows.
template <class T>
FilePlan plan_file_qr(const Context<Host>& ctx, Index m, Index n, const FileOptions& options, int ranks, int rank);
/// Plans a factorization on a GPU, D = Cuda. Needs no GPU.
template <class T, class D>
FilePlan plan_file_qr(Index m, Index n, const FileOptions& options);

/// Returns a description in one paragraph.
std::string to_string(const FilePlan& plan);

/// Results of a run.
struct FileReport {
    Index first_step = 0;  ///< where it began: above 0 if it continued an earlier run
    double seconds = 0;
    double bytes_read = 0, bytes_written = 0;    ///< counted
    double read_seconds = 0, write_seconds = 0;  ///< during which at least one transfer was active
    double bytes_to_device = 0, bytes_from_device = 0;
    double device_memory_bytes = -1;  ///< of a GPU, held by the context at the end
};

/// Factors A = QR for a matrix in an .npy file, out of core, and writes R.npy and Q.npy (thin Q) to a folder.
///
/// Tall matrices are factored by a flat tree over blocks of rows (Demmel, Grigori, Hoemmen, Langou 2012): forward
/// [R_{i−1}; A_i] = H_i [R_i; 0], and backward H_i [E_i; 0] = [E_{i−1}; Q_i]. Other matrices are factored by
/// left-looking Householder (Toledo and Rabani 2002), and so are all on a GPU. There the slabs are as wide as the GPU's
/// memory allows, and data pass through two chunks of columns in the host's memory and 512 MiB of pinned buffers. Only
/// reflectors are used: ‖I − QᵀQ‖ and ‖A − QR‖/‖A‖ are of order n·u for every finite A, and √N times larger over N
/// blocks. Flops: 2mn² for R and 2mn² for Q, times 1 + 2n/(3h) for blocks of h rows; 2mn² more if reflectors are
/// recomputed. Files are read ahead of the computation and written after it, past the page cache.
///
/// Several ranks share the rows of a file evenly. Each has its own blocks, and their triangles are combined by TSQR, as
/// in `qr` over ranks:
///
///     [R_0; …; R_{P−1}] = [E_0; …; E_{P−1}] R
///
/// The backward pass of rank i begins with E_i. All ranks write rows of one Q.npy. Every rank makes the object, and all
/// call `run`, `commit` and `discard` together. An error of one rank is thrown on all of them by the end of the current
/// block.
///
/// A journal in the folder `quoin-journal` of the output lists the finished steps. After a run that ended for any
/// reason, the next object for the same input, shape and options continues it, with the same bits. kill -9 loses the
/// current step and the data that are being written to the disk: the previous step, or `journal_seconds` of computation
/// if steps are shorter. Outputs appear under their names at `commit`.
///
///     FileQR<double> f(ctx, "A.npy", "factors", {.memory = 512e6});
///     f.run(ctx);
///     f.commit();
template <class T, class D = Host>
class FileQR {
public:
    /// Opens the input and the journal. `folder` must exist. Throws UnreadableFile, UnwritableFile (also if the disk
    /// has too little space), OutOfMemory, and InvalidArgument for a journal of another input or with other options.
    FileQR(Context<D>& ctx, const std::string& input, const std::string& folder, const FileOptions& options);
    /// Opens them on every rank of `comm`, which must outlive this object. Each rank has a journal of its own. A
    /// journal of a run with another number of ranks is refused.
    FileQR(Context<D>& ctx, Communicator& comm, const std::string& input, const std::string& folder,
           const FileOptions& options) requires std::is_same_v<D, Host>;

    /// Returns the plan of this run.
    const FilePlan& plan() const;
    /// Returns the number of this rank's steps that are on the disk.
    Index steps_done() const;
    /// Return the share of this run's bytes that have moved, and their number. Any thread may call them.
    double fraction() const;
    double bytes_moved() const;
    /// Returns the folder of the journal and of the unfinished outputs.
    const std::string& journal_folder() const;

    /// Runs the remaining steps. Throws NonFiniteEntry (with the row in the file), Interrupted, UnreadableFile,
    /// UnwritableFile. Finished steps are kept.
    void run(Context<D>& ctx);
    /// Returns what `run` has measured.
    const FileReport& report() const;

    /// Return the paths of the complete R and Q before `commit`.
    std::string r_path() const;
    std::string q_path() const;
    /// Renames the outputs to R.npy and, if wanted, Q.npy, and removes the journal.
    void commit(bool keep_q = true);
    /// Removes the journal and all files in its folder.
    void discard();

private:
    struct Impl;
    detail::Owned<Impl> impl_;
};

}  // namespace quoin
