// A routine's answer to an exception: `serve` of src/lapack/abi.hpp.

#include <new>

#include "lapack/abi.hpp"
#include "lapack_abi/fortran.hpp"

namespace quoin::test {
namespace {

using fortran::Complaint;

constexpr lapack::PassOn<> no_next{nullptr, {}};

/// info of a routine whose work throws `failure`, with what it says on stderr.
template <class Int, class Failure>
std::pair<Int, std::string> fail_with(const Failure& failure) {
    Int info = 99;
    fortran::take_complaint();
    testing::internal::CaptureStderr();
    lapack::serve(
        lapack::Call("DTEST", 3, 2), true, [] { return 64.0; }, [&](Context<Host>&) -> const char* { throw failure; },
        no_next, &info);
    return {info, testing::internal::GetCapturedStderr()};
}

template <class Int>
class LapackFailure : public testing::Test {};
using Integers = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(LapackFailure, Integers);

TYPED_TEST(LapackFailure, SaysWhatItWas) {
    const auto [info, text] = fail_with<TypeParam>(InvalidArgument("the panel is wider than the matrix"));
    EXPECT_EQ(info, -1000);
    EXPECT_EQ(text, "quoin: DTEST: the panel is wider than the matrix\n");
    EXPECT_EQ(fortran::take_complaint(), (Complaint{"DTEST", 1000}));
}

TYPED_TEST(LapackFailure, KnowsLackOfMemory) {
    const auto [info, text] = fail_with<TypeParam>(OutOfMemory("out of memory: 77 bytes asked for"));
    EXPECT_EQ(info, -1010);
    EXPECT_EQ(text, "quoin: DTEST: out of memory: 77 bytes asked for\n");
    EXPECT_EQ(fortran::take_complaint(), (Complaint{"DTEST", 1010}));
    EXPECT_EQ((fail_with<TypeParam>(std::bad_alloc()).first), -1010);
}

TYPED_TEST(LapackFailure, WantsNoMoreThanThereIsToAddress) {
    TypeParam info = 99;
    testing::internal::CaptureStderr();
    lapack::serve(
        lapack::Call("DTEST", 3, 2), true, [] { return 1e30; }, [](Context<Host>&) { return "never"; }, no_next, &info);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("out of memory"), std::string::npos);
    EXPECT_EQ(info, -1010);
}

TEST(LapackPassOn, NotWhereTheReferenceFails) {
    const bool left = true, right = false;
    EXPECT_TRUE(lapack::reference_fails(left, 100, 50, 51)) << "several blocks of more rows than Q has";
    EXPECT_FALSE(lapack::reference_fails(left, 100, 50, 50));
    EXPECT_TRUE(lapack::reference_fails(right, 100, 50, 50)) << "m numbers written into mb of them";
    EXPECT_FALSE(lapack::reference_fails(right, 50, 50, 50));
}

}  // namespace
}  // namespace quoin::test
