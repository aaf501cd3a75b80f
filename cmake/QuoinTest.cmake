# quoin_add_test(NAME COMMAND ARGS...): a test in the environment that its build needs. A GoogleTest program writes its
# counts to reports/NAME.xml.

# Waiting threads sleep: on a shared machine small matrices would otherwise spend their time spinning. LLVM's OpenMP,
# which the sanitizers use, ignores the policy and spins for 200 ms unless KMP_BLOCKTIME is 0.
# Tests expect the built-in times, whatever table the developer's machine has.
set(QUOIN_TEST_ENVIRONMENT OMP_NUM_THREADS=unset: OMP_WAIT_POLICY=set:passive KMP_BLOCKTIME=set:0 QUOIN_TUNING=set:off)
if(QUOIN_SANITIZE)
    list(APPEND QUOIN_TEST_ENVIRONMENT QUOIN_TEST_QUICK=set:1)
elseif(CMAKE_CROSSCOMPILING)
    # Under the emulator threads that spin for each other take most of the time; tests of threads ask for their number.
    list(APPEND QUOIN_TEST_ENVIRONMENT QUOIN_TEST_QUICK=set:1 OMP_NUM_THREADS=set:1)
endif()
if(QUOIN_SANITIZE MATCHES "address")
    # An allocation that fails must return null, as without the sanitizer: the library turns it into an error. New memory
    # is filled with NaN, so that a test fails whose result depends on what malloc left there.
    list(APPEND QUOIN_TEST_ENVIRONMENT
        ASAN_OPTIONS=set:allocator_may_return_null=1:detect_stack_use_after_return=1
        ASAN_OPTIONS=string_append::malloc_fill_byte=255:max_malloc_fill_size=1048576
        UBSAN_OPTIONS=set:print_stacktrace=1)
elseif(QUOIN_SANITIZE MATCHES "thread")
    # libarcher tells the sanitizer what OpenMP synchronises; OpenBLAS is not instrumented and is ignored.
    # Four threads, so that races are possible on any machine.
    cmake_path(GET OpenMP_omp_LIBRARY PARENT_PATH libomp_dir)
    find_library(QUOIN_ARCHER_LIBRARY archer HINTS ${libomp_dir} REQUIRED)
    mark_as_advanced(QUOIN_ARCHER_LIBRARY)
    list(APPEND QUOIN_TEST_ENVIRONMENT
        TSAN_OPTIONS=set:ignore_noninstrumented_modules=1:allocator_may_return_null=1
        OMP_TOOL_LIBRARIES=set:${QUOIN_ARCHER_LIBRARY} OMP_NUM_THREADS=set:4)
endif()

function(quoin_add_test name)
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 ENVIRONMENT_MODIFICATION
        "${QUOIN_TEST_ENVIRONMENT};GTEST_OUTPUT=set:xml:${PROJECT_BINARY_DIR}/reports/${name}.xml")
endfunction()
