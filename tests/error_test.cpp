// The table of errors, and what each exception carries.

#include "quoin/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>

namespace quoin::test {
namespace {

constexpr ErrorCode codes[] = {ErrorCode::InvalidArgument,     ErrorCode::NonFiniteEntry, ErrorCode::NumericalBreakdown,
                               ErrorCode::RankDeficient,       ErrorCode::OutOfMemory,    ErrorCode::UnreadableFile,
                               ErrorCode::UnwritableFile,      ErrorCode::DeviceFailure,  ErrorCode::Interrupted,
                               ErrorCode::CommunicationFailure};

TEST(ErrorTable, HasOneRowForEachCode) {
    std::set<std::string> names;
    std::set<int> exit_codes;
    for (ErrorCode code : codes) {
        const ErrorInfo& info = error_info(code);
        SCOPED_TRACE(info.name);
        EXPECT_EQ(info.code, code);
        EXPECT_TRUE(names.insert(info.name).second) << "a name twice";
        EXPECT_TRUE(std::all_of(info.name, info.name + std::strlen(info.name),
                                [](unsigned char c) { return std::islower(c) || c == '-'; }));
        EXPECT_TRUE(exit_codes.insert(info.exit_code).second) << "an exit code twice";
        EXPECT_GT(info.exit_code, 0);
        EXPECT_LT(info.exit_code, 256);
        EXPECT_GE(info.lapack_info_sign, -1);
        EXPECT_LE(info.lapack_info_sign, 1);
        EXPECT_GT(std::strlen(info.exception), 0u);
    }
    EXPECT_STREQ(error_info(ErrorCode::InvalidArgument).name, "invalid-argument");
    // LAPACK names an argument by −i and a column by i; it knows nothing of files, devices and signals
    for (ErrorCode code : codes) {
        const bool argument = code == ErrorCode::InvalidArgument || code == ErrorCode::NonFiniteEntry,
                   column = code == ErrorCode::NumericalBreakdown || code == ErrorCode::RankDeficient;
        EXPECT_EQ(error_info(code).lapack_info_sign, argument ? -1 : column ? 1 : 0) << error_info(code).name;
    }
}

TEST(Exceptions, CarryTheirCodeAndTheirMessage) {
    EXPECT_EQ(InvalidArgument("fan_in must be at least 2").code(), ErrorCode::InvalidArgument);
    EXPECT_STREQ(InvalidArgument("fan_in must be at least 2").what(), "fan_in must be at least 2");

    const NonFiniteEntry non_finite(12, 345);
    EXPECT_EQ(non_finite.code(), ErrorCode::NonFiniteEntry);
    EXPECT_EQ(non_finite.row, 12);
    EXPECT_EQ(non_finite.col, 345);
    EXPECT_NE(std::string(non_finite.what()).find("12"), std::string::npos);
    EXPECT_NE(std::string(non_finite.what()).find("345"), std::string::npos);

    const NumericalBreakdown breakdown("no pivot", 7);
    EXPECT_EQ(breakdown.code(), ErrorCode::NumericalBreakdown);
    EXPECT_EQ(breakdown.column, 7);

    const RankDeficient deficient("rank", 1e-17);
    EXPECT_EQ(deficient.code(), ErrorCode::RankDeficient);
    EXPECT_EQ(deficient.rcond, 1e-17);

    EXPECT_EQ(OutOfMemory("4 GiB").code(), ErrorCode::OutOfMemory);
    EXPECT_EQ(UnreadableFile("A.npy", "truncated").code(), ErrorCode::UnreadableFile);
    EXPECT_EQ(std::string(UnreadableFile("A.npy", "truncated").what()).rfind("A.npy", 0), 0u);
    EXPECT_EQ(UnwritableFile("R.npy", "no such directory").code(), ErrorCode::UnwritableFile);
    EXPECT_EQ(std::string(UnwritableFile("R.npy", "no such directory").what()).rfind("R.npy", 0), 0u);
    EXPECT_EQ(Interrupted().code(), ErrorCode::Interrupted);
}

TEST(Exceptions, AreAllCaughtAsError) {
    EXPECT_THROW(throw NonFiniteEntry(0, 0), Error);
    EXPECT_THROW(throw Interrupted(), Error);
    EXPECT_THROW(throw InvalidArgument(""), std::runtime_error);
}

}  // namespace
}  // namespace quoin::test
