# Installs BUILD_DIR under one prefix, moves the tree to another, and builds and runs this example project against it: the
# package must not depend on where it was built or first installed.

set(work ${BUILD_DIR}/installed_package)
set(first ${work}/first)
set(moved ${work}/moved)
file(REMOVE_RECURSE ${work})

function(run)
    execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${first})
file(RENAME ${first} ${moved})

file(GLOB_RECURSE descriptions ${moved}/*.cmake ${moved}/*.pc)
foreach(description IN LISTS descriptions)
    file(STRINGS ${description} strays REGEX "${BUILD_DIR}|${first}")
    if(strays)
        message(FATAL_ERROR "${description} names a directory of the build: ${strays}")
    endif()
endforeach()

file(GLOB_RECURSE pc ${moved}/*/quoin.pc)
cmake_path(GET pc PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -G ${GENERATOR}
    -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_PREFIX_PATH=${moved})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/by_cmake)
run(${work}/build/by_pkg_config)
run(${work}/build/c_by_cmake)
run(${work}/build/c_by_pkg_config)
if(EXISTS ${work}/build/ranks)
    set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
    set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
    run(${work}/build/ranks)
endif()
if(BUILD_APPS)
    run(${work}/build/applications)
    run(${work}/build/applications_by_pkg_config)
endif()
if(EXISTS ${moved}/bin/quoin)
    run(${moved}/bin/quoin --version)
    run(${moved}/bin/quoin bench --version)
endif()
if(EXISTS ${moved}/bin/quoin-rpca)
    run(${moved}/bin/quoin rpca --version)
    run(${moved}/bin/quoin lyapunov --version)
endif()

set(expected doc/quoin/LICENSE)
if(EXISTS ${BUILD_DIR}/share/made)  # cmake/QuoinManuals.cmake says where it is left out
    list(APPEND expected man/man1/quoin.1 man/man1/quoin-factor.1 bash-completion/completions/quoin zsh/site-functions/_quoin
        fish/vendor_completions.d/quoin.fish)
endif()
if(EXISTS ${BUILD_DIR}/docs/index.html)
    list(APPEND expected doc/quoin/html/index.html)
endif()
foreach(file IN LISTS expected)
    if(NOT EXISTS ${moved}/share/${file})
        message(FATAL_ERROR "share/${file} is not installed")
    endif()
endforeach()

# expect_completion(ANSWER WORD...): what bash answers to the words and TAB
find_program(BASH bash)
function(expect_completion answer)
    list(LENGTH ARGN current)
    list(JOIN ARGN " " words)
    execute_process(OUTPUT_VARIABLE completed COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE
        COMMAND ${BASH} -c "source '${moved}/share/bash-completion/completions/quoin'
            COMP_WORDS=(quoin ${words}) COMP_CWORD=${current}; _quoin; echo \"\${COMPREPLY[*]}\"")
    if(NOT completed STREQUAL answer)
        message(FATAL_ERROR "bash completes 'quoin ${words}' to '${completed}', not to '${answer}'")
    endif()
endfunction()
if(BASH AND EXISTS ${BUILD_DIR}/share/made)
    expect_completion("factor" fac)
    expect_completion("--restart --reorthogonalize" factor A.npy --re)
    expect_completion("tsqr" factor --method t)
    expect_completion("selective" plan --reorthogonalize = s)  # --reorthogonalize=s, as bash splits it
    expect_completion("lorenz63 lorenz96" lyapunov lor)
endif()
