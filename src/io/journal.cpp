// Writes and checks the lines of a journal, each with its checksum.

#include "io/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "io/checksum.hpp"
#include "quoin/error.hpp"

namespace quoin::io {

namespace fs = std::filesystem;

namespace {

/// Flushes a folder's names to the disk.
void flush_folder(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

constexpr std::size_t checksum_chars = 9;  // eight digits and a blank

}  // namespace

Journal::Journal(const std::string& folder) : folder_(folder), path_(folder + "/journal") {
    std::error_code error;
    fs::create_directory(folder_, error);
    if (error) throw UnwritableFile(folder_, error.message());
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (fd_ < 0) fail(errno);
    try {
        if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK) throw UnwritableFile(folder_, "another program works with it");
            fail(errno);
        }
        read();
    } catch (...) {
        close(fd_);
        throw;
    }
    flush_folder(folder_);
    flush_folder(fs::path(folder_).parent_path().string());
}

Journal::~Journal() { close(fd_); }

void Journal::fail(int error) const { throw UnwritableFile(path_, std::generic_category().message(error)); }

void Journal::read() {
    std::string text;
    std::array<char, 1 << 16> buffer;
    for (ssize_t n; (n = pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail(errno);
        text.append(buffer.data(), static_cast<std::size_t>(n));
    }
    std::size_t good = 0;
    for (std::size_t end; (end = text.find('\n', good)) != text.npos; good = end + 1) {
        const std::string line = text.substr(good, end - good);
        if (line.size() < checksum_chars) break;
        const std::string content = line.substr(checksum_chars);
        if (line.substr(0, checksum_chars) != fmt::format("{:08x} ", crc32(content))) break;
        lines_.push_back(content);
    }
    if (good < text.size() && ftruncate(fd_, static_cast<off_t>(good)) != 0) fail(errno);
}

void Journal::flush_names() const { flush_folder(folder_); }

void Journal::append(const std::string& content) {
    const std::string line = fmt::format("{:08x} {}\n", crc32(content), content);
    const off_t before = lseek(fd_, 0, SEEK_END);
    const ssize_t written = write(fd_, line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size()) || fdatasync(fd_) != 0) {
        const int error = written < 0 || written == static_cast<ssize_t>(line.size()) ? errno : ENOSPC;
        // a torn line would hide the lines after it
        if (ftruncate(fd_, before) != 0) fail(errno);
        fail(error);
    }
    lines_.push_back(content);
}

void Journal::clear() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
        if (entry.path().string() != path_) fs::remove_all(entry.path(), error);
    }
    if (ftruncate(fd_, 0) != 0 || fsync(fd_) != 0) fail(errno);
    lines_.clear();
}

void Journal::remove() {
    std::error_code error;
    fs::remove_all(folder_, error);
    if (error) throw UnwritableFile(folder_, error.message());
    flush_folder(fs::path(folder_).parent_path().string());
}

std::map<std::string, std::string> fields_of(const std::string& line) {
    std::map<std::string, std::string> fields;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
        const std::size_t equals = word.find('=');
        if (equals != word.npos) fields[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return fields;
}

namespace {

/// Describes the first difference between two identities: "q wanted instead of not-wanted".
std::string difference(const std::string& before, const std::string& now) {
    const auto old_fields = fields_of(before);
    for (const auto& [key, value] : fields_of(now)) {
        const auto it = old_fields.find(key);
        const std::string old = it == old_fields.end() ? "nothing" : it->second;
        if (old == value) continue;
        if (key == "time") return "an input that was written to since";
        return fmt::format("{} {} instead of {}", key, old, value);
    }
    return "other options";
}

}  // namespace

void Journal::require_run(const std::string& identity, const char* and_then) const {
    if (lines_.at(0) == identity) return;
    throw InvalidArgument(
        fmt::format("{}: this journal is of a run with {}; remove the folder, or restart (--restart) to delete it{} "
                    "from the start",
                    folder_, difference(lines_[0], identity), and_then));
}

}  // namespace quoin::io
