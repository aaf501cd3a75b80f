// Reads pipes and standard input to their end.

#include "io/pipe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "quoin/error.hpp"

namespace quoin::io {

std::optional<std::string> read_pipe(const std::string& path, std::size_t most) {
    const bool standard_input = path == "-";
    struct stat status;
    if (!standard_input && (stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode))) return std::nullopt;
    const std::string name = standard_input ? "standard input" : path;
    const int fd = standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::string content;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && content.size() <= most) {
        constexpr std::size_t piece = 1 << 16;
        const std::size_t before = content.size();
        content.resize(before + piece);
        do {
            got = read(fd, content.data() + before, piece);
        } while (got < 0 && errno == EINTR);
        content.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    const int error = errno;
    if (!standard_input && fd >= 0) close(fd);
    if (got < 0) throw UnreadableFile(name, std::generic_category().message(error));
    if (content.size() > most) throw OutOfMemory(fmt::format("{}: is larger than the limit of {} bytes", name, most));
    if (content.empty()) throw UnreadableFile(name, "is empty");
    return content;
}

}  // namespace quoin::io
