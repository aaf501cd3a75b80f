// Sizes of memory on the command line of `quoin`.

#include "byte_size.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace quoin::cli {
namespace {

TEST(ByteSize, IsThatOfItsUnit) {
    const std::pair<const char*, Index> sizes[] = {
        {"7", 7},         {"7B", 7},          {"7 b", 7},
        {"3KB", 3000},    {"3MB", 3'000'000}, {"3GB", 3'000'000'000},
        {"3KiB", 3072},   {"3MiB", 3145728},  {"3GiB", 3221225472},
        {"1.5kb", 1500},  {"1.5MB", 1500000}, {"2TB", 2'000'000'000'000},
        {"1.5kib", 1536}, {"0.5MiB", 524288}, {"2TiB", 2199023255552},
    };
    for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_byte_size("--memory", text), bytes) << text;
    for (const char* text : {"", "MB", "-1MB", "0", "1 2", "1e3", "1MiBs", "nan", "8388608TiB"})
        EXPECT_THROW(parse_byte_size("--memory", text), CLI::ValidationError) << text;
}

/// In words, and as an argument that holds no less.
TEST(ByteSize, IsPrintedInBinaryUnits) {
    EXPECT_EQ(format_byte_size(1023), "1023 B");
    EXPECT_EQ(format_byte_size(1e6), "976.6 KiB");
    EXPECT_EQ(format_byte_size(1 << 20), "1 MiB");
    EXPECT_EQ(format_byte_size(0x1p54), "1.638e+04 TiB") << "there is no larger unit";
    EXPECT_EQ(byte_size_argument(1025), "2KiB");
    EXPECT_EQ(byte_size_argument(16 * 1048576.0 + 1), "17MiB");
}

TEST(ByteSize, OfAUserKeepsItsUnits) {
    for (const char* text : {"500 MB", "2 GB", "1.5 GB", "3 KB", "2 GiB", "1.5 GiB", "64 KiB"}) {
        const auto bytes = static_cast<double>(parse_byte_size("--memory", text));
        EXPECT_EQ(format_given_size(bytes), text);
    }
    EXPECT_EQ(format_byte_rate(3.2e6), "3.2 MB/s");
    EXPECT_EQ(format_byte_rate(12), "12 B/s");
    EXPECT_EQ(format_byte_rate(2.5e9), "2.5 GB/s");
}

}  // namespace
}  // namespace quoin::cli
