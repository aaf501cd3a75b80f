// APPNOTE.TXT 6.3, PKWARE: the archive ends with a record that says where the central directory is; each of its entries
// says where a member begins.

#include "io/zip.hpp"

#include <fmt/format.h>

#include "io/gzip.hpp"
#include "quoin/error.hpp"

namespace quoin::io {
namespace {

constexpr std::string_view local_signature = "PK\3\4", entry_signature = "PK\1\2", end_signature = "PK\5\6",
                           end64_signature = "PK\6\6", locator64_signature = "PK\6\7";

[[noreturn]] void refuse(const std::string& path) { throw UnreadableFile(path, "is a damaged ZIP archive"); }

/// Returns `bytes`[begin, begin + size), or throws.
std::string_view part(std::string_view bytes, std::uint64_t begin, std::uint64_t size, const std::string& path) {
    if (begin > bytes.size() || size > bytes.size() - begin) refuse(path);
    return bytes.substr(begin, size);
}

/// A record of fixed size, whose little-endian fields are read by their offset.
class Record {
public:
    Record(std::string_view bytes, std::uint64_t begin, std::string_view signature, std::size_t size,
           const std::string& path)
        : fields_(part(bytes, begin, size, path)) {
        if (!fields_.starts_with(signature)) refuse(path);
    }
    std::uint64_t u16(std::size_t at) const { return number(at, 2); }
    std::uint64_t u32(std::size_t at) const { return number(at, 4); }
    std::uint64_t u64(std::size_t at) const { return number(at, 8); }

private:
    std::uint64_t number(std::size_t at, std::size_t bytes) const {
        std::uint64_t value = 0;
        for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(fields_[at + i]);
        return value;
    }
    std::string_view fields_;
};

constexpr std::uint64_t in_zip64 = 0xffffffff;  // a 32-bit field whose value is in the ZIP64 extra field

/// Reads the values of the ZIP64 extra field into `fields`. They are in the order of the entry's fields that refer to
/// it.
void read_zip64(std::string_view extra, std::initializer_list<std::uint64_t*> fields, const std::string& path) {
    constexpr std::uint64_t zip64 = 1;
    while (!extra.empty()) {
        const Record head(extra, 0, "", 4, path);
        const std::string_view data = part(extra, 4, head.u16(2), path);
        extra.remove_prefix(4 + data.size());
        if (head.u16(0) != zip64) continue;
        std::size_t at = 0;
        for (std::uint64_t* const field : fields) {
            if (*field != in_zip64) continue;
            *field = Record(data, at, "", 8, path).u64(0);
            at += 8;
        }
    }
}

}  // namespace

bool is_zip(std::string_view bytes) { return bytes.starts_with(local_signature) || bytes.starts_with(end_signature); }

std::vector<ZipMember> zip_members(std::string_view bytes, const std::string& path) {
    constexpr std::size_t end_size = 22, end64_size = 56, locator64_size = 20, entry_size = 46, local_size = 30;
    const std::size_t at = bytes.rfind(end_signature);
    if (at == bytes.npos) throw UnreadableFile(path, "is a ZIP archive that is cut off");
    const Record end(bytes, at, end_signature, end_size, path);
    std::uint64_t count = end.u16(10), next = end.u32(16);
    if ((count == 0xffff || next == in_zip64) && at >= locator64_size) {
        const Record locator(bytes, at - locator64_size, locator64_signature, locator64_size, path);
        const Record end64(bytes, locator.u64(8), end64_signature, end64_size, path);
        count = end64.u64(32);
        next = end64.u64(48);
    }
    std::vector<ZipMember> members;
    for (; count > 0; --count) {
        const Record entry(bytes, next, entry_signature, entry_size, path);
        const std::uint64_t name_size = entry.u16(28), extra_size = entry.u16(30);
        std::uint64_t packed_size = entry.u32(20), size = entry.u32(24), begin = entry.u32(42);
        const std::string_view name = part(bytes, next + entry_size, name_size, path);
        read_zip64(part(bytes, next + entry_size + name_size, extra_size, path), {&size, &packed_size, &begin}, path);
        next += entry_size + name_size + extra_size + entry.u16(32);

        constexpr std::uint64_t encrypted = 1, stored = 0, deflated = 8;
        const std::uint64_t method = entry.u16(10);
        if ((entry.u16(8) & encrypted) != 0 || (method != stored && method != deflated)) {
            throw UnreadableFile(path, fmt::format("its member {} is encrypted, or compressed by a method other than "
                                                   "deflate",
                                                   name));
        }
        const Record local(bytes, begin, local_signature, local_size, path);
        ZipMember member{std::string(name),
                         part(bytes, begin + local_size + local.u16(26) + local.u16(28), packed_size, path),
                         method == deflated, size, static_cast<std::uint32_t>(entry.u32(16))};
        if (method == stored && size != packed_size) refuse(path);
        members.push_back(std::move(member));
    }
    return members;
}

std::string_view zip_content(const ZipMember& member, std::string& storage, std::size_t most, const std::string& path) {
    std::string_view content = member.packed;
    if (member.deflated) {
        if (member.size > most) {
            throw OutOfMemory(
                fmt::format("{}: unpacks to {} bytes, and may take no more than {}", path, member.size, most));
        }
        storage = inflate(member.packed, member.size, path);
        content = storage;
    }
    if (crc32_of(content) != member.crc) throw UnreadableFile(path, "is damaged: a checksum in it is wrong");
    return content;
}

}  // namespace quoin::io
