// The reader of .npz archives, from memory: whatever the bytes, it gives their members, no larger than they may be, and
// of those that are .npy a matrix, or throws UnreadableFile or OutOfMemory.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/npy_reader.hpp"
#include "io/zip.hpp"
#include "quoin/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t most = 1 << 16;
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    try {
        for (const quoin::io::ZipMember& member : quoin::io::zip_members(file, "fuzz")) {
            std::string storage;
            const std::string_view content = quoin::io::zip_content(member, storage, most, "fuzz");
            if (content.size() != member.size || storage.size() > most) __builtin_trap();
            const quoin::io::NpyHeader header = quoin::io::parse_npy_header(content, "fuzz");
            quoin::Matrix<double> A(header.rows, header.cols);
            quoin::io::read_npy_block(content, header, {0, header.rows}, {0, header.cols}, A.view());
        }
    } catch (const quoin::UnreadableFile&) {
    } catch (const quoin::OutOfMemory&) {
    }
    return 0;
}
