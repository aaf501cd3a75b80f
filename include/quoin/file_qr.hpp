#pragma once

#include <memory>
#include <string>

#include "quoin/context.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// How the matrix of a file is factored in less memory than it has.
enum class FileRoute {
    RowBlocks,  ///< tall: a flat tree over blocks of rows, R in one pass, Q in a second one backward
    Slabs,      ///< any shape: slabs of columns from left to right, the reflectors before each streamed past it
};

/// Where the second pass of RowBlocks has its reflectors from. With the same blocks the bits of the result are the same.
enum class SecondPass {
    Auto,        ///< by the number of columns, as measured
    Stored,      ///< V and T of every block lie on the disk in between: one more m×n written, 2mn² flops fewer
    Recomputed,  ///< every block of A is read and factored again
};

/// "auto", "stored", "recomputed".
const char* to_string(SecondPass second_pass);

struct FileOptions {
    double memory =
        0;  ///< bytes of matrices and workspace; 32 MiB beside them are for pieces of files and the program itself
    bool want_q = true;  ///< Q.npy beside R.npy
    SecondPass second_pass = SecondPass::Auto;
    bool restart = false;  ///< what an earlier run has left of the same output is discarded
    /// Steps shorter than this share lines of the journal while the disk is slower to flush than they are to compute.
    double journal_seconds = 1;
    /// On a GPU: bytes of its memory, libraries' included, and the products' arithmetic as OutOfCoreOptions has them.
    double device_memory = 0;
    Arithmetic arithmetic = Arithmetic::Auto;
};

/// The choices for one shape and cap, and what they cost: a pure value.
struct FilePlan {
    Index rows = 0, cols = 0;
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

/// Where nothing fits `options.memory`, the plan that takes least, its memory_bytes beyond that. m, n >= 1. Throws
/// OutOfMemory as plan_out_of_core where a GPU's memory is too little.
template <class T, class D>
FilePlan plan_file_qr(const Context<D>& ctx, Index m, Index n, const FileOptions& options);
/// The same by way of a GPU, D = Cuda, which is not asked.
template <class T, class D>
FilePlan plan_file_qr(Index m, Index n, const FileOptions& options);

/// A paragraph for a person.
std::string to_string(const FilePlan& plan);

/// What a run has done.
struct FileReport {
    Index first_step = 0;  ///< where it began: beyond 0 where an earlier run had come
    double seconds = 0;
    double bytes_read = 0, bytes_written = 0;    ///< counted
    double read_seconds = 0, write_seconds = 0;  ///< in which at least one transfer was under way
    double bytes_to_device = 0, bytes_from_device = 0;
    double device_memory_bytes = -1;  ///< of a GPU that the context holds at the end
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
/// A journal in the folder `quoin-journal` of the output says what is finished. A run that ended for any reason goes on from it
/// in the next object for the same input, shape and options, and ends with the same bits. kill -9 loses the step under way and
/// what is on its way to the disk: the step before it, or, of steps shorter than that, `journal_seconds` of computation.
/// Outputs appear under their names at `commit`.
///
///     FileQR<double> f(ctx, "A.npy", "factors", {.memory = 512e6});
///     f.run(ctx);
///     f.commit();
template <class T, class D = Host>
class FileQR {
public:
    /// Opens the input and the journal; `folder` exists. Throws UnreadableFile, UnwritableFile (also where the disk has not the
    /// space), OutOfMemory, and InvalidArgument for a journal of another input or with other options.
    FileQR(Context<D>& ctx, const std::string& input, const std::string& folder, const FileOptions& options);
    FileQR(FileQR&&) noexcept;
    ~FileQR();

    const FilePlan& plan() const;
    /// Steps that are on the disk.
    Index steps_done() const;
    /// Of this run's bytes, for any thread to ask.
    double fraction() const;
    double bytes_moved() const;
    const std::string& journal_folder() const;

    /// Does what is left. Throws NonFiniteEntry (its row that of the file), Interrupted, UnreadableFile, UnwritableFile; what was
    /// finished before is kept.
    void run(Context<D>& ctx);
    const FileReport& report() const;

    /// Where the complete R and Q lie before `commit`.
    std::string r_path() const;
    std::string q_path() const;
    /// Gives R.npy, and Q.npy if asked, their names and removes the journal.
    void commit(bool keep_q = true);
    /// Removes the journal and all that it keeps.
    void discard();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace quoin
