// Large transfers past the page cache.

#include "io/bulk_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "quoin/error.hpp"

namespace quoin::io {

BulkFile::BulkFile(const std::string& path, Access access, ByteCounters& counters)
    : path_(path), access_(access), counters_(counters) {
    const int flags = (access == Access::Read ? O_RDONLY | O_NONBLOCK : O_RDWR | O_CREAT) | O_CLOEXEC;
    cached_ = open(path.c_str(), flags, 0666);
    if (cached_ < 0) fail(errno);
    if (access == Access::Read) direct_ = open(path.c_str(), flags | O_DIRECT);
    // with O_DIRECT only the ends of transfers go through the cache
    posix_fadvise(cached_, 0, 0, direct_ >= 0 ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
}

BulkFile::~BulkFile() {
    if (direct_ >= 0) close(direct_);
    if (cached_ >= 0) close(cached_);
}

void BulkFile::fail(int error) const {
    const std::string why = std::generic_category().message(error);
    if (access_ == Access::Read) throw UnreadableFile(path_, why);
    throw UnwritableFile(path_, why);
}

/// Calls `one(fd, done, bytes)`, which returns the bytes that it moved, until all `bytes` are moved or it returns 0.
/// Returns the bytes moved.
template <class Transfer>
Index BulkFile::transfer(Index offset, Index bytes, const void* memory, Transfer&& one) const {
    constexpr Index most = Index{1} << 30;  // below what one call can move
    // memory and offset are equal modulo the alignment
    bool direct = direct_ >= 0 && (reinterpret_cast<std::intptr_t>(memory) - offset) % alignment == 0;
    Index done = 0;
    while (done < bytes) {
        Index left = std::min(bytes - done, most);
        const Index beyond = (offset + done) % alignment;
        const bool here = direct && beyond == 0 && left >= alignment;
        if (here) left = left / alignment * alignment;
        if (direct && beyond > 0) left = std::min(left, alignment - beyond);
        const ssize_t moved = one(here ? direct_ : cached_, done, left);
        if (moved < 0 && errno == EINTR) continue;
        if (moved < 0 && here && errno == EINVAL) {
            direct = false;
            continue;
        }
        if (moved < 0) fail(errno);
        if (moved == 0) break;
        done += moved;
    }
    return done;
}

void BulkFile::read(Index offset, void* to, Index bytes) const {
    const Index done = transfer(offset, bytes, to, [&](int fd, Index at, Index n) {
        return pread(fd, static_cast<char*>(to) + at, static_cast<std::size_t>(n), offset + at);
    });
    if (done < bytes) throw UnreadableFile(path_, "ends before its data do");
    counters_.read += bytes;
    posix_fadvise(cached_, offset, bytes, POSIX_FADV_DONTNEED);
}

const char* BulkFile::read_pages(Index offset, char* pages, Index bytes) const {
    const Index before = offset % alignment, wanted = aligned(before + bytes);
    if (direct_ >= 0) {
        ssize_t moved;
        do {
            moved = pread(direct_, pages, static_cast<std::size_t>(wanted), offset - before);
        } while (moved < 0 && errno == EINTR);
        // less at the end of the file, or if a call moves no more
        if (moved >= before + bytes) {
            counters_.read += bytes;
            return pages + before;
        }
    }
    read(offset, pages + before, bytes);
    return pages + before;
}

void BulkFile::write(Index offset, const void* from, Index bytes) const {
    // the disk has the first of them while the others go to the cache
    constexpr Index at_once = Index{8} << 20;
    for (Index first = 0; first < bytes; first += at_once) {
        const char* const piece = static_cast<const char*>(from) + first;
        const Index count = std::min(at_once, bytes - first);
        const Index done = transfer(offset + first, count, piece, [&](int fd, Index at, Index n) {
            return pwrite(fd, piece + at, static_cast<std::size_t>(n), offset + first + at);
        });
        if (done < count) fail(ENOSPC);
        counters_.written += count;
        sync_file_range(cached_, offset + first, count, SYNC_FILE_RANGE_WRITE);
    }
}

void BulkFile::flush() const {
    if (fdatasync(cached_) != 0) fail(errno);
    posix_fadvise(cached_, 0, 0, POSIX_FADV_DONTNEED);
}

Index BulkFile::size() const {
    struct stat status;
    if (fstat(cached_, &status) != 0) fail(errno);
    return status.st_size;
}

void BulkFile::truncate(Index bytes) const {
    if (ftruncate(cached_, bytes) != 0) fail(errno);
}

}  // namespace quoin::io
