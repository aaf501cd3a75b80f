#include <utility>

#include "lapack_abi/fortran.hpp"

namespace quoin::test::fortran {

namespace {
thread_local Complaint last;

void complain(const char* routine, std::size_t length, long long argument) {
    last.routine.assign(routine, length);
    last.routine.erase(last.routine.find_last_not_of(' ') + 1);
    last.argument = argument;
}
}  // namespace

Complaint take_complaint() { return std::exchange(last, {}); }

extern "C" void xerbla_(const char* routine, const std::int32_t* argument, std::size_t length) {
    complain(routine, length, *argument);
}
extern "C" void xerbla_64_(const char* routine, const std::int64_t* argument, std::size_t length) {
    complain(routine, length, *argument);
}

}  // namespace quoin::test::fortran
