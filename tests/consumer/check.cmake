# Installs typegrad from its build folder BUILD to a folder under WORK, then builds and runs the project in SOURCE with
# COMPILER: on the installed package, on typegrad as a subdirectory, and by an include path alone.
cmake_path(GET SOURCE PARENT_PATH tests)
cmake_path(GET tests PARENT_PATH project)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    # An error message would be wrapped in the middle of the compiler's lines.
    message(NOTICE "${output}")
    message(FATAL_ERROR "failed with ${status}: ${command}")
  endif()
endfunction()

function(build_and_run name)
  message(STATUS "${name}")
  run(${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/${name}" -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Debug ${ARGN})
  run(${CMAKE_COMMAND} --build "${WORK}/${name}" --target two_files macros)
  run("${WORK}/${name}/two_files")
  run("${WORK}/${name}/macros")
endfunction()

run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/prefix")
build_and_run(installed "-DCMAKE_PREFIX_PATH=${WORK}/prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
build_and_run(subdirectory "-DTYPEGRAD_SOURCE=${project}")

# By hand, without OpenMP, and with no flags but the limits that tracing needs.
message(STATUS "by hand")
if(EIGEN)
  set(eigen -isystem ${EIGEN})
endif()
execute_process(COMMAND ${COMPILER} --version OUTPUT_VARIABLE version)
if(version MATCHES "clang")
  set(limits -fconstexpr-steps=2000000000)
else()
  set(limits -fconstexpr-ops-limit=2000000000 -fconstexpr-loop-limit=100000000)
endif()
run(${COMPILER} -std=c++20 -I "${project}/include" ${eigen} ${limits} "${SOURCE}/main.cpp" "${SOURCE}/second.cpp" -lz -pthread -o "${WORK}/by_hand")
run("${WORK}/by_hand")

# Silent as users include it, optimised for this processor: warnings of the optimiser arise where kernels are inlined.
file(WRITE "${WORK}/intrinsics_first.cpp" "#if defined(__AVX__)\n#include <immintrin.h>\n#endif\n#include \"${SOURCE}/main.cpp\"\n")
foreach(level 2 3)
  message(STATUS "by hand, -O${level}")
  run(${COMPILER} -std=c++20 -O${level} -march=native -fopenmp -Wall -Wextra -Wconversion -Wshadow -Werror -I "${project}/include" ${eigen} ${limits}
    -I "${SOURCE}" "${WORK}/intrinsics_first.cpp" "${SOURCE}/second.cpp" -lz -pthread -o "${WORK}/optimised")
  run("${WORK}/optimised")
endforeach()
