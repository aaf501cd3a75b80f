# quoin::blas: LAPACKE, CBLAS, and the Fortran BLAS and LAPACK below them, from the implementation that QUOIN_BLAS names.
# The build includes this file, and so does the installed package if Quoin is a static library.

include_guard(GLOBAL)

find_path(QUOIN_LAPACKE_INCLUDE_DIR lapacke.h REQUIRED)
mark_as_advanced(QUOIN_LAPACKE_INCLUDE_DIR)

if(QUOIN_BLAS STREQUAL "OpenBLAS")
    # Debian's alternatives may point libblas.so.3 and libopenblas.so.0 at the pthread flavour, whose threads compete with
    # Quoin's own. The OpenMP flavour has BLAS, CBLAS and LAPACK; linked before LAPACKE it provides them all.
    set(arch ${CMAKE_LIBRARY_ARCHITECTURE})
    find_library(QUOIN_OPENBLAS_LIBRARY openblas HINTS /usr/lib/${arch}/openblas-openmp REQUIRED)
    find_path(QUOIN_CBLAS_INCLUDE_DIR cblas.h
        HINTS /usr/include/${arch}/openblas-openmp PATH_SUFFIXES openblas REQUIRED)
    find_library(QUOIN_LAPACKE_LIBRARY lapacke REQUIRED)
    set(libraries ${QUOIN_OPENBLAS_LIBRARY} ${QUOIN_LAPACKE_LIBRARY})
elseif(QUOIN_BLAS STREQUAL "MKL")
    set(MKL_INTERFACE lp64)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        set(MKL_THREADING gnu_thread)
    else()
        set(MKL_THREADING intel_thread)
    endif()
    find_package(MKL CONFIG REQUIRED)
    find_path(QUOIN_CBLAS_INCLUDE_DIR cblas.h REQUIRED)
    set(libraries MKL::MKL)
elseif(QUOIN_BLAS STREQUAL "BLIS")
    set(arch ${CMAKE_LIBRARY_ARCHITECTURE})
    find_library(QUOIN_BLIS_LIBRARY blis HINTS /usr/lib/${arch}/blis-openmp REQUIRED)
    find_path(QUOIN_CBLAS_INCLUDE_DIR cblas.h HINTS /usr/include/${arch}/blis-openmp PATH_SUFFIXES blis REQUIRED)
    find_library(QUOIN_LAPACKE_LIBRARY lapacke REQUIRED)
    find_library(QUOIN_LAPACK_LIBRARY lapack REQUIRED)
    set(libraries ${QUOIN_BLIS_LIBRARY} ${QUOIN_LAPACKE_LIBRARY} ${QUOIN_LAPACK_LIBRARY})
else()
    message(FATAL_ERROR "QUOIN_BLAS is '${QUOIN_BLAS}'; it must be OpenBLAS, MKL or BLIS")
endif()

add_library(quoin::blas INTERFACE IMPORTED)
target_link_libraries(quoin::blas INTERFACE ${libraries})
target_include_directories(quoin::blas SYSTEM INTERFACE ${QUOIN_CBLAS_INCLUDE_DIR} ${QUOIN_LAPACKE_INCLUDE_DIR})
