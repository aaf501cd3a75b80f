// Maps regular files, and refuses empty ones.

#include "io/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "quoin/error.hpp"

namespace quoin::io {

MappedFile::MappedFile(const std::string& path) {
    const auto refuse = [&path](int error) { throw UnreadableFile(path, std::generic_category().message(error)); };
    // O_NONBLOCK: opening a pipe that nobody writes to must not wait; regular files ignore it.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) refuse(errno);
    struct stat status;
    if (fstat(fd, &status) != 0) {
        const int error = errno;
        close(fd);
        refuse(error);
    }
    if (!S_ISREG(status.st_mode) || status.st_size == 0) {
        close(fd);
        throw UnreadableFile(path, S_ISDIR(status.st_mode)   ? "is a directory"
                                   : S_ISREG(status.st_mode) ? "is empty"
                                                             : "is not a regular file");
    }
    size_ = static_cast<std::size_t>(status.st_size);
    void* p = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    close(fd);
    if (p == MAP_FAILED) refuse(error);
    data_ = static_cast<const char*>(p);
    madvise(p, size_, MADV_SEQUENTIAL);
}

MappedFile::~MappedFile() { munmap(const_cast<char*>(data_), size_); }

void MappedFile::release(std::size_t begin, std::size_t end) const noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    begin -= begin % page;
    madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace quoin::io
