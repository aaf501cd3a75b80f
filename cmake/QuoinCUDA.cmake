# QUOIN_HAVE_CUDA: whether the CUDA backend is built; then the language CUDA is enabled. AUTO builds it if the machine has a GPU
# (the driver's /dev/nvidiactl) and the toolkit. CMAKE_CUDA_ARCHITECTURES has the architectures: by default that of the machine's GPUs,
# and Hopper's without a GPU.

set(QUOIN_HAVE_CUDA OFF)
if(QUOIN_CUDA STREQUAL "OFF" OR (QUOIN_CUDA STREQUAL "AUTO" AND (QUOIN_SANITIZE OR NOT EXISTS /dev/nvidiactl)))
    return()
endif()
find_package(CUDAToolkit 12.8 QUIET)
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
    if(QUOIN_CUDA STREQUAL "ON")
        message(FATAL_ERROR "QUOIN_CUDA=ON, and no CUDA toolkit (12.8 or later) was found")
    endif()
    return()
endif()

option(QUOIN_PTX "Compile the kernels to PTX alone, and of C++ nothing but quoin_cuda_host: to find errors; nothing can be linked" OFF)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE capabilities ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${capabilities}")
    string(REPLACE "." "" capabilities "${capabilities}")
    list(REMOVE_DUPLICATES capabilities)
endif()
set(CMAKE_CUDA_ARCHITECTURES ${capabilities} CACHE STRING "GPU architectures to compile for: 80 (it also serves 86 and 89), 90a, 100, 120")
if(CMAKE_CUDA_ARCHITECTURES STREQUAL "")
    set_property(CACHE CMAKE_CUDA_ARCHITECTURES PROPERTY VALUE 90a)
endif()
# The instructions of four warps are those of 90a (src/cuda/arch/sm90_wgmma.cuh).
list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "^90(-real|-virtual|)$" "90a\\1")
if(NOT DEFINED CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
enable_language(CUDA)
# CMake before 3.26 does not know that nvcc speaks C++20.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(QUOIN_HAVE_CUDA ON)
message(STATUS "CUDA backend: toolkit ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")

# quoin_launch_kernels(NAME): kernels of the target NAME are launched by src/cuda/runtime/launch.cpp. Each library has a CUDA runtime of
# its own, which knows its own kernels alone: it has a hidden copy of this file.
function(quoin_launch_kernels name)
    set(launch ${PROJECT_SOURCE_DIR}/src/cuda/runtime/launch.cpp)
    set_source_files_properties(${launch} PROPERTIES COMPILE_OPTIONS -fvisibility=hidden)
    target_sources(${name} PRIVATE ${launch})
    target_include_directories(${name} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
endfunction()

# quoin_add_kernels(NAME FOLDER): the target NAME compiles the kernels of the folder and its subfolders and their launches. A machine with nvcc and no GPU
# can build it.
function(quoin_add_kernels name folder)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${folder}/*.cu)
    add_library(${name} OBJECT ${kernels})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_PTX_COMPILATION ${QUOIN_PTX})
    target_compile_options(${name} PRIVATE --extended-lambda --expt-relaxed-constexpr)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/apps ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${name} PRIVATE CUDA::cudart_static)
endfunction()

# quoin_link_cuda(NAME LIBRARIES...): links CUDA's runtime and these libraries. With QUOIN_CUDA_AT_RUN_TIME the symbols of the latter
# become weak instead: undefined ones are null when they are loaded.
function(quoin_link_cuda name)
    target_link_libraries(${name} PRIVATE CUDA::cudart_static)
    if(QUOIN_CUDA_AT_RUN_TIME)
        add_custom_command(TARGET ${name} POST_BUILD VERBATIM
            COMMAND ${CMAKE_OBJCOPY} --wildcard --weaken-symbol=cublas* --weaken-symbol=cusolver* --weaken-symbol=cufft*
                $<TARGET_FILE:${name}>)
    else()
        target_link_libraries(${name} PRIVATE ${ARGN})
    endif()
endfunction()

# quoin_check_cuda_host(): the target quoin_cuda_host finds the errors in C++ code that only a build with CUDA has, each folder as one
# unit, and makes no object; quoin_bench_kernels has the benchmark's kernels.
function(quoin_check_cuda_host)
    quoin_add_kernels(quoin_bench_kernels bench)
    set_target_properties(quoin_bench_kernels PROPERTIES EXCLUDE_FROM_ALL ON)
    target_compile_definitions(quoin_bench_kernels PRIVATE QUOIN_HAVE_CUDA)
    target_include_directories(quoin_bench_kernels PRIVATE ${PROJECT_SOURCE_DIR}/bench)
    foreach(folder cli cli/common bench bench/measure bench/measure/cuda bench/rivals bench/papers apps/robust_pca/program apps/lyapunov/program
            src/c src/algorithms/one_matrix src/algorithms/batches src/algorithms/ranks src/algorithms/streams src/algorithms/out_of_core
            src/cuda src/cuda/plain src/cuda/runtime src/cuda/small src/file_qr src/routes)
        file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
        set_source_files_properties(${sources} PROPERTIES UNITY_GROUP ${folder})
        list(APPEND all ${sources})
    endforeach()
    add_library(quoin_cuda_host OBJECT EXCLUDE_FROM_ALL ${all})
    set_target_properties(quoin_cuda_host PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    target_compile_options(quoin_cuda_host PRIVATE -fsyntax-only $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    target_compile_definitions(quoin_cuda_host PRIVATE
        QUOIN_VERSION="${PROJECT_VERSION}" QUOIN_BLAS_NAME="${QUOIN_BLAS}" QUOIN_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
    target_include_directories(quoin_cuda_host PRIVATE ${PROJECT_BINARY_DIR}/bench SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(quoin_cuda_host PRIVATE quoin_common quoin_bench_host quoin_bench_cuda quoin_plot quoin_video)
endfunction()
