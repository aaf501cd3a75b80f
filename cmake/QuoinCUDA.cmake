# QUOIN_HAVE_CUDA: whether the CUDA backend is built; then the language CUDA is enabled. AUTO builds it if the machine has a GPU
# (the driver's /dev/nvidiactl) and the toolkit. CMAKE_CUDA_ARCHITECTURES has the architectures, by default Hopper's.

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

option(QUOIN_PTX "Compile the kernels to PTX alone, to find their errors; nothing can be linked with them" OFF)
set(CMAKE_CUDA_ARCHITECTURES 90a CACHE STRING "GPU architectures to compile for")
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

# quoin_add_kernels(NAME FOLDER): the target NAME compiles the folder's kernels and their launches. A machine with nvcc and no GPU
# can build it.
function(quoin_add_kernels name folder)
    file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cu)
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
