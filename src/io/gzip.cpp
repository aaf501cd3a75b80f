// Inflates gzip's members and ZIP's streams by zlib.

#include "io/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "quoin/error.hpp"

namespace quoin::io {
namespace {

/// zlib's counters have 32 bits.
constexpr std::size_t max_a_call = std::size_t{1} << 30;
constexpr std::size_t first_room = 1 << 16;

/// A stream that is inflated into a string that grows.
class Inflater {
public:
    /// `window_bits`: zlib's parameter, which selects the format.
    Inflater(std::string_view from, int window_bits, const std::string& path) : from_(from), path_(path) {
        if (inflateInit2(&stream_, window_bits) != Z_OK) throw OutOfMemory(path + ": zlib has no memory");
    }
    Inflater(const Inflater&) = delete;
    ~Inflater() { inflateEnd(&stream_); }

    /// Appends to `to` until the stream ends or `to` has more than `most` bytes; false in the latter case.
    bool inflate_into(std::string& to, std::size_t most) {
        while (to.size() <= most && inflate_some(to, std::min(std::max(to.size(), first_room), most + 1 - to.size()))) {
        }
        return to.size() <= most;
    }
    /// Returns the bytes after the streams so far.
    std::string_view rest() const { return from_; }
    void begin_again() { inflateReset(&stream_); }

private:
    /// Appends at most `room` bytes; false once the stream has ended.
    bool inflate_some(std::string& to, std::size_t room) {
        room = std::min(room, max_a_call);
        const std::size_t before = to.size(), given = std::min(from_.size(), max_a_call);
        to.resize(before + room);
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from_.data()));
        stream_.avail_in = static_cast<uInt>(given);
        stream_.next_out = reinterpret_cast<Bytef*>(to.data() + before);
        stream_.avail_out = static_cast<uInt>(room);
        const int result = ::inflate(&stream_, Z_NO_FLUSH);
        from_.remove_prefix(given - stream_.avail_in);
        to.resize(before + room - stream_.avail_out);
        if (result == Z_STREAM_END) return false;
        if (result == Z_MEM_ERROR) throw OutOfMemory(path_ + ": zlib has no memory");
        if (result != Z_OK && result != Z_BUF_ERROR) throw UnreadableFile(path_, "its compressed data are damaged");
        if (from_.empty() && stream_.avail_out > 0) throw UnreadableFile(path_, "its compressed data are cut off");
        return true;
    }
    std::string_view from_;
    const std::string& path_;
    z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view bytes, std::size_t most, const std::string& path) {
    constexpr int gzip_format = 16 + MAX_WBITS;
    Inflater inflater(bytes, gzip_format, path);
    std::string content;
    do {
        inflater.begin_again();
        if (!inflater.inflate_into(content, most)) {
            throw OutOfMemory(fmt::format("{}: unpacks to more than the limit of {} bytes", path, most));
        }
    } while (is_gzip(inflater.rest()));
    return content;
}

std::string inflate(std::string_view bytes, std::size_t size, const std::string& path) {
    constexpr int raw_format = -MAX_WBITS;
    std::string content;
    if (!Inflater(bytes, raw_format, path).inflate_into(content, size) || content.size() != size) {
        throw UnreadableFile(
            path, fmt::format("is damaged: a part of it does not unpack to the {} bytes that it announces", size));
    }
    return content;
}

unsigned long crc32_of(std::string_view bytes) {
    return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

}  // namespace quoin::io
