#pragma once

// Outputs that appear under their name only when they are complete.

#include <cstddef>
#include <string>

#include "quoin/matrix.hpp"

namespace quoin::io {

/// A file that appears under its name complete or not at all. It is a temporary file in the same folder, renamed at
/// `commit`.
///
/// Every member throws UnwritableFile on failure, after removing the temporary file. The temporary file is registered
/// for `remove_unfinished_files` from before its creation until after its rename or removal. For one thread at a time.
class AtomicFile {
public:
    /// Refuses a path that names a directory or anything else that a rename must not replace.
    explicit AtomicFile(const std::string& path);
    AtomicFile(AtomicFile&& other) noexcept;
    AtomicFile& operator=(AtomicFile&&) = delete;
    ~AtomicFile() { discard(); }

    /// Allocates bytes [0, bytes), reading as zeros, so that a full disk shows at once (where the file system can).
    void reserve(Index bytes);
    void write_at(Index offset, const void* data, std::size_t bytes);
    /// Flushes to the disk and renames.
    void commit();
    /// Returns the path of the temporary file, where the bytes written so far can be read until `commit`.
    const std::string& temporary_path() const { return temporary_; }
    /// Whether the file can still be written: false after `commit` and after a failure.
    bool is_open() const { return fd_ >= 0; }

private:
    [[noreturn]] void fail(int error);
    void discard() noexcept;

    std::string path_;    // as the caller gave it, for messages
    std::string target_;  // path_, absolute: the caller may change directory meanwhile
    std::string temporary_;
    int slot_ = -1;  // in the registry of unfinished files
    int fd_ = -1;
};

/// Writes a file that has this text.
void write_text(const std::string& path, const std::string& text);

}  // namespace quoin::io
