#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "quoin/matrix.hpp"

namespace quoin::io {

/// Bytes that went through the files of one computation.
struct ByteCounters {
    std::atomic<Index> read{0}, written{0};
};

/// A file for large transfers at any offset, of which nothing stays in the page cache. What is only read passes it where the
/// file system has O_DIRECT and memory and offset differ by a multiple of 4 KiB: all but the ends of a transfer. What is
/// written goes through it, on its way to the disk at once.
///
/// Throws UnreadableFile or UnwritableFile, naming the file. Several threads may read and write at a time.
class BulkFile {
public:
    enum class Access { Read, Write };
    /// Read: an existing regular file. Write: to read and write, created if missing, what is there kept.
    BulkFile(const std::string& path, Access access, ByteCounters& counters);
    BulkFile(const BulkFile&) = delete;
    BulkFile& operator=(const BulkFile&) = delete;
    ~BulkFile();

    void read(Index offset, void* to, Index bytes) const;
    /// The same into `pages`, which begin at a page and hold two more than `bytes`, in one transfer of whole pages where the
    /// cache can be passed. Returns where in them the bytes are.
    const char* read_pages(Index offset, char* pages, Index bytes) const;
    void write(Index offset, const void* from, Index bytes) const;
    /// What was written is on the disk.
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
