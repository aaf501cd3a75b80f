// Temporary files: created, renamed when complete, removed at exit and after signals.

#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "quoin/error.hpp"
#include "quoin/io.hpp"

namespace quoin::io {
namespace {

// The registry of unfinished files holds no lock and allocates nothing, so that a signal handler may walk it. A slot's
// path belongs to whoever moved its state to Busy.
enum class SlotState { Free, Busy, Listed };

struct Slot {
    std::atomic<SlotState> state;
    pid_t owner;
    char path[PATH_MAX];
};

constexpr int slot_count = 64;
Slot slots[slot_count];
static_assert(std::atomic<SlotState>::is_always_lock_free);

bool move_state(Slot& slot, SlotState from, SlotState to) {
    return slot.state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

/// Lists `path` in a free slot and returns the slot, or -1 if all are taken. The path must be shorter than PATH_MAX.
int list_unfinished(const std::string& path) {
    for (int i = 0; i < slot_count; ++i) {
        if (!move_state(slots[i], SlotState::Free, SlotState::Busy)) continue;
        slots[i].owner = getpid();
        std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
        slots[i].state.store(SlotState::Listed, std::memory_order_release);
        return i;
    }
    return -1;
}

void unlist_unfinished(int slot) {
    // Busy here: a handler on another thread is at this very file.
    while (!move_state(slots[slot], SlotState::Listed, SlotState::Free)) {
    }
}

std::string temporary_name(const std::filesystem::path& target) {
    static std::atomic<unsigned> count{0};
    constexpr std::size_t name_kept = 200;  // of NAME_MAX = 255; the rest is for the suffix
    const std::string name =
        fmt::format(".{}.tmp-{}-{}", target.filename().string().substr(0, name_kept), getpid(), count.fetch_add(1));
    return (target.parent_path() / name).string();
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::absolute(path, error);
    if (error) throw UnwritableFile(path_, error.message());
    target_ = target.string();
    struct stat status;
    const bool exists = stat(target_.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) throw UnwritableFile(path_, std::generic_category().message(errno));
    if (target.filename().empty() || (exists && S_ISDIR(status.st_mode))) {
        throw UnwritableFile(path_, "names a directory");
    }
    if (exists && !S_ISREG(status.st_mode)) throw UnwritableFile(path_, "is not a regular file");
    do {
        if (slot_ >= 0) unlist_unfinished(slot_);
        temporary_ = temporary_name(target);
        if (temporary_.size() >= PATH_MAX) throw UnwritableFile(path_, std::generic_category().message(ENAMETOOLONG));
        slot_ = list_unfinished(temporary_);
        if (slot_ < 0) throw UnwritableFile(path_, fmt::format("{} other files are being written already", slot_count));
        fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EEXIST);
    if (fd_ < 0) {
        const int reason = errno;
        unlist_unfinished(slot_);
        throw UnwritableFile(path_, std::generic_category().message(reason));
    }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      slot_(other.slot_),
      fd_(std::exchange(other.fd_, -1)) {}

void AtomicFile::reserve(Index bytes) {
    if (bytes == 0) return;
    int result;
    do {
        result = fallocate(fd_, 0, 0, bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EOPNOTSUPP) result = ftruncate(fd_, bytes);
    if (result != 0) fail(errno);
}

void AtomicFile::write_at(Index offset, const void* data, std::size_t bytes) {
    const char* p = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t written = pwrite(fd_, p, bytes, offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(errno);
        p += written;
        offset += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

void AtomicFile::commit() {
    if (fsync(fd_) != 0) fail(errno);
    if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
    unlist_unfinished(slot_);
    close(std::exchange(fd_, -1));
}

void AtomicFile::fail(int error) {
    discard();
    throw UnwritableFile(path_, std::generic_category().message(error));
}

void AtomicFile::discard() noexcept {
    if (fd_ < 0) return;
    unlink(temporary_.c_str());
    unlist_unfinished(slot_);
    close(std::exchange(fd_, -1));
}

void write_text(const std::string& path, const std::string& text) {
    AtomicFile file(path);
    file.write_at(0, text.data(), text.size());
    file.commit();
}

}  // namespace quoin::io

namespace quoin {

void remove_unfinished_files() noexcept {
    const int saved_errno = errno;
    for (io::Slot& slot : io::slots) {
        if (!io::move_state(slot, io::SlotState::Listed, io::SlotState::Busy)) continue;
        // A forked child inherits the list, not the files.
        if (slot.owner == getpid()) unlink(slot.path);
        slot.state.store(io::SlotState::Listed, std::memory_order_release);
    }
    errno = saved_errno;
}

}  // namespace quoin
