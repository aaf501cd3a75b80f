#pragma once

// Files as memory.

#include <cstddef>
#include <string>
#include <string_view>

namespace quoin::io {

/// A regular, non-empty file mapped for reading, with the kernel told that it is read front to back.
///
/// Throws UnreadableFile for what cannot be opened, is a directory or another special file, or is empty.
class MappedFile {
public:
    explicit MappedFile(const std::string& path);
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    std::string_view bytes() const { return {data_, size_}; }
    /// Takes bytes [begin, end) out of this process's resident memory; they stay readable.
    void release(std::size_t begin, std::size_t end) const noexcept;

private:
    const char* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace quoin::io
