// C programs, ctypes, SciPy and FlexiBLAS call LAPACK without Fortran's hidden lengths of letters: every name that the
// library exports leaves the stack after its last argument as it is. The list of names comes from the library itself.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

extern int next_calls;  // of next.cpp

namespace quoin::test {
namespace {

#ifdef QUOIN_TEST_MPI
/// The arguments of each routine, a letter each: m n k l and r (columns), b and B (block sizes), d (a leading
/// dimension), w (a size of workspace), o (one), s and c (side and transposition), A (an array), D (a descriptor), i
/// (info).
const std::map<std::string, std::string> routines = {
    {"geqrf", "mnAooDAAwi"}, {"geqpf", "mnAooDAAAwi"}, {"orgqr", "mnkAooDAAwi"}, {"ormqr", "scmnkAooDAAooDAwi"}, {"gels", "cmnrAooDAooDAwi"}};
#else
/// The arguments of each routine, a letter each: m n k l and r (columns), b and B (block sizes), d (a leading
/// dimension), w (a size of workspace or T), o (one), t (a tolerance that is not used), s and c (side and
/// transposition), A (an array), i (info).
const std::map<std::string, std::string> routines = {{"copy", "nAoAo"},           {"geqrf", "mnAdAAwi"},
                                                     {"geqr2", "mnAdAAi"},        {"orgqr", "mnkAdAAwi"},
                                                     {"ormqr", "scmnkAdAAdAwi"},  {"geqrt", "mnbAdAdAi"},
                                                     {"geqrt3", "mnAdAdi"},       {"gemqrt", "scmnkbAdAdAdAi"},
                                                     {"tpqrt", "mnlbAdAdAdAi"},   {"tpmqrt", "scmnklbAdAdAdAdAi"},
                                                     {"latsqr", "mnBbAdAdAwi"},   {"lamtsqr", "scmnkBbAdAdAdAwi"},
                                                     {"orgtsqr", "mnBbAdAdAwi"},  {"orgtsqr_row", "mnBbAdAdAwi"},
                                                     {"orhr_col", "mnbAdAdAi"},   {"geqr", "mnAdAwAwi"},
                                                     {"gemqr", "scmnkAdAwAdAwi"}, {"gels", "cmnrAdAdAwi"},
                                                     {"gelst", "cmnrAdAdAwi"},    {"getsls", "cmnrAdAdAwi"},
                                                     {"geqp3", "mnAdAAAwi"},      {"gelqf", "mnAdAAwi"},
                                                     {"gelq2", "mnAdAAi"},        {"orglq", "nmkAdAAwi"},
                                                     {"ormlq", "scmnkAdAAdAwi"},
                                                     {"geqp3rk", "mnrkttAdAAAAAAwAi"},
                                                     {"gelsy", "mnrAdAdAAAAwi"},
                                                     {"tzrzf", "nmAdAAwi"},
                                                     {"ormrz", "scmnkkAdAAdAwi"}};
#endif

/// Letters of a name before the routine's.
#ifdef QUOIN_TEST_MPI
constexpr std::size_t prefix = 2;
#else
constexpr std::size_t prefix = 1;
#endif

/// Names of the functions that the library exports. What it has of the C++ library is weak.
std::vector<std::string> exported() {
    std::vector<std::string> names;
    FILE* const nm = popen(QUOIN_NM " -D --defined-only " QUOIN_LIBRARY_FILE, "r");
    char type, name[256];
    while (nm && std::fscanf(nm, "%*s %c %255s", &type, name) == 2) {
        if (type == 'T') names.emplace_back(name);
    }
    EXPECT_TRUE(nm && pclose(nm) == 0);
    return names;
}

/// "ormqr" of "scipy_dormqr_64_" and of "pdormqr_".
std::string routine_of(std::string name) {
    if (name.starts_with("scipy_")) name.erase(0, 6);
    for (const char* end : {"_64_", "_"}) {
        if (name.ends_with(end)) {
            name.erase(name.size() - std::string(end).size());
            break;
        }
    }
    return name.substr(prefix);
}

constexpr std::uintptr_t canary = 0x5ca1ab1e0ddba115;

/// Calls `routine` as C does, with canaries on the stack after the arguments, and returns those words of the stack as
/// they are then.
std::array<std::uintptr_t, 8> call(void* routine, const std::vector<const void*>& arguments) {
    constexpr std::size_t in_registers = 6;
    std::array<std::uintptr_t, in_registers> registers{};
    std::vector<std::uintptr_t> stack;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto value = reinterpret_cast<std::uintptr_t>(arguments[i]);
        if (i < in_registers) {
            registers[i] = value;
        } else {
            stack.push_back(value);
        }
    }
    const std::size_t passed = stack.size();
    stack.resize((passed + 8 + 1) / 2 * 2, canary);  // an even count: the stack is aligned to 16 bytes
    register void* function asm("r15") = routine;
    register std::uintptr_t* words asm("r13") = stack.data();
    register std::size_t count asm("r12") = stack.size();
    register std::uintptr_t* first asm("r14") = registers.data();
    asm volatile(
        "mov %%rsp, %%rbx\n"
        "sub $256, %%rsp\n"  // past the red zone
        "and $-16, %%rsp\n"
        "mov %%r12, %%rax\n"
        "1: dec %%rax\n"
        "push (%%r13, %%rax, 8)\n"
        "test %%rax, %%rax\n"
        "jnz 1b\n"
        "mov (%%r14), %%rdi\n"
        "mov 8(%%r14), %%rsi\n"
        "mov 16(%%r14), %%rdx\n"
        "mov 24(%%r14), %%rcx\n"
        "mov 32(%%r14), %%r8\n"
        "mov 40(%%r14), %%r9\n"
        "call *%%r15\n"
        "xor %%eax, %%eax\n"
        "2: pop (%%r13, %%rax, 8)\n"
        "inc %%rax\n"
        "cmp %%r12, %%rax\n"
        "jne 2b\n"
        "mov %%rbx, %%rsp\n"
        : "+r"(function), "+r"(words), "+r"(count), "+r"(first)
        :
        : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
          "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
    std::array<std::uintptr_t, 8> after{};
    std::copy_n(stack.begin() + static_cast<std::ptrdiff_t>(passed), after.size(), after.begin());
    return after;
}

/// Sizes of a call. Integers are read with 32 bits or 64: their low half comes first.
struct Sizes {
    std::int64_t m, n, b, B, work;
    std::int32_t block;  ///< in a descriptor; 0 is illegal
};

/// Calls the export `name` of `routine`. Returns info.
int call_with(const std::string& name, const std::string& routine, const Sizes& s) {
    const std::int64_t one = 1, ld = std::max<std::int64_t>(1, s.m), l = 0;
    const bool single = name[name.find(routine) - 1] == 's';
    const std::array<std::int32_t, 9> descriptor = {
        1, 0, static_cast<int>(s.m), static_cast<int>(s.n), s.block, s.block, 0, 0, static_cast<int>(ld)};
    const float unused = -1;
    const double unused_double = -1;
    static std::array<std::vector<double>, 8> memory;
    std::int64_t info = 0;
    std::vector<const void*> arguments;
    std::size_t arrays = 0;
    for (const char letter : routines.at(routine)) {
        const void* argument = nullptr;
        switch (letter) {
            case 'm': argument = &s.m; break;
            case 'n':
            case 'k':
            case 'r': argument = &s.n; break;
            case 'l': argument = &l; break;
            case 'b': argument = &s.b; break;
            case 'B': argument = &s.B; break;
            case 'd': argument = &ld; break;
            case 'w': argument = &s.work; break;
            case 'o': argument = &one; break;
            case 't': argument = single ? static_cast<const void*>(&unused) : &unused_double; break;
            case 's': argument = "L"; break;
            case 'c': argument = "N"; break;
            case 'D': argument = descriptor.data(); break;
            case 'i': argument = &info; break;
            case 'A': {
                auto& array = memory.at(arrays++);
                array.assign(400000, 0);
                // the header of a T of ?geqr, and a matrix's first numbers
                for (const int i : {1, 2}) {
                    const auto value = i == 1 ? s.m : s.b;
                    if (single) {
                        reinterpret_cast<float*>(array.data())[i] = static_cast<float>(value);
                    } else {
                        array[static_cast<std::size_t>(i)] = static_cast<double>(value);
                    }
                }
                argument = array.data();
            }
        }
        EXPECT_NE(argument, nullptr) << letter;
        arguments.push_back(argument);
    }
    for (const std::uintptr_t word : call(dlsym(RTLD_DEFAULT, name.c_str()), arguments))
        EXPECT_EQ(word, canary) << "the stack after the arguments was written to";
    return static_cast<std::int32_t>(info);
}

TEST(HiddenLengths, AreNobodysWhereCallersDoNotPassThem) {
    const std::vector<std::string> names = exported();
    ASSERT_FALSE(names.empty());
    for (const std::string& name : names) {
        SCOPED_TRACE(name);
        const std::string routine = routine_of(name);
        ASSERT_TRUE(routines.contains(routine)) << "no call of this export is described here";
        const bool passes_on = routine != "copy";
        int before = next_calls;
        EXPECT_GE(call_with(name, routine, {6, 4, 4, 5, 1 << 18, 0}), 0);
        EXPECT_EQ(next_calls > before, passes_on) << "next.cpp has no such name";
        before = next_calls;
        EXPECT_GE(call_with(name, routine, {960, 120, 20, 500, 1 << 18, 32}), 0);
#ifndef QUOIN_TEST_MPI
        EXPECT_EQ(next_calls, before) << "a large one was passed on";
#endif
        call_with(name, routine, {960, 120, 20, 500, -1, 32});  // a query
        if (passes_on) call_with(name, routine, {-1, 4, 4, 5, 1 << 18, 32});
    }
}

}  // namespace
}  // namespace quoin::test
