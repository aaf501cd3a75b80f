#pragma once

// Large transfers between files and memory, and their counts.

#include <atomic>
#include <string>

#include "quoin/matrix.hpp"

namespace quoin::io {

/// Bytes that went through the files of one computation.
struct ByteCounters {
    std::atomic<Index> read{0}, written{0};
};

/// A file for large transfers at any offset that leaves nothing in the page cache. A read bypasses the cache, except
/// for the ends of a transfer, if the file system has O_DIRECT and memory and offset differ by a multiple of 4 KiB.
/// Writes go through the cache and on to the disk at once.
///
/// Throws UnreadableFile or UnwritableFile, naming the file. Several threads may read and write at a time.
class BulkFile {
public:
    enum class Access { Read, Write };
    /// Opens the file. Read: an existing regular file. Write: to read and write; it is created if missing, and existing
    /// content is kept.
    BulkFile(const std::string& path, Access access, ByteCounters& counters);
    BulkFile(const BulkFile&) = delete;
    BulkFile& operator=(const BulkFile&) = delete;
    ~BulkFile();

    void read(Index offset, void* to, Index bytes) const;
    /// Reads into `pages`, which begin at a page boundary and have room for two pages more than `bytes`. If the cache
    /// can be bypassed, it is one transfer of whole pages. Returns the address of the bytes in `pages`.
    const char* read_pages(Index offset, char* pages, Index bytes) const;
    void write(Index offset, const void* from, Index bytes) const;
    /// Waits until all written data are on the disk.
    void flush() const;
    Index size() const;
    void truncate(Index bytes) const;
    const std::string& path() const { return path_; }

    static constexpr Index alignment = 4096;
    static constexpr Index aligned(Index bytes) { return (bytes + alignment - 1) / alignment * alignment; }

private:
    template <class Transfer>
    Index transfer(Index offset, Index bytes, const void* memory, Transfer&& one) const;
    [[noreturn]] void fail(int error) const;

    std::string path_;
    Access access_;
    ByteCounters& counters_;
    int cached_ = -1, direct_ = -1;  // −1: the file is written, or has no O_DIRECT
};

}  // namespace quoin::io
