// Inflating gzip, from memory: whatever the bytes, it gives no more bytes than it may, or throws UnreadableFile or
// OutOfMemory.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/gzip.hpp"
#include "quoin/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t most = 1 << 16;
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    try {
        if (quoin::io::gunzip(file, most, "fuzz").size() > most) __builtin_trap();
    } catch (const quoin::UnreadableFile&) {
    } catch (const quoin::OutOfMemory&) {
    }
    return 0;
}
