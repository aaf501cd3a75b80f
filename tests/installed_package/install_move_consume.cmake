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
