# quoin_add_program(TARGET NAME LIBRARIES...): the program NAME, from the sources of the current folder. It finds Quoin's installed
# libraries from its own location.
file(RELATIVE_PATH QUOIN_BIN_TO_LIB ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})

function(quoin_add_program target name)
    file(GLOB sources CONFIGURE_DEPENDS *.cpp)
    add_executable(${target} ${sources})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} INSTALL_RPATH $ORIGIN/${QUOIN_BIN_TO_LIB})
    target_compile_options(${target} PRIVATE ${QUOIN_LIGHT_OPTIMISATION})
    target_precompile_headers(${target} REUSE_FROM quoin_common)
    target_link_libraries(${target} PRIVATE quoin_common ${ARGN})
    install(TARGETS ${target})
    set_property(GLOBAL APPEND PROPERTY QUOIN_PROGRAMS ${target})
endfunction()
