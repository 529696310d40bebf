# Defines typegrad::cuda, the target of programs that nvcc compiles and that include typegrad/cuda.hpp.
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "typegrad: no nvcc found, building without CUDA")
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
add_library(typegrad_cuda INTERFACE)
add_library(typegrad::cuda ALIAS typegrad_cuda)
target_link_libraries(typegrad_cuda INTERFACE typegrad::typegrad CUDA::cudart CUDA::cublasLt)
# nvcc's front end has limits of its own; 20011, 20012 and 20014 complain about Eigen and about functions for host and
# device whose host instances call host functions, 128 and 186 about loops that are empty for some types.
target_compile_options(typegrad_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:
  -std=c++20
  --expt-relaxed-constexpr
  -Xcudafe=--max_cost_constexpr_call=2000000000
  -diag-suppress=20011,20012,20014,128,186,1675
  -Xcompiler=-fconstexpr-ops-limit=2000000000,-fconstexpr-loop-limit=100000000>)

# Runs on a GPU; where there is none, under the library of TYPEGRAD_CUDA_TEST_LIBRARY_PATH in two orders of threads; with
# neither it is skipped by name.
add_custom_target(typegrad_cuda_tests COMMENT "the programs that the CUDA tests run")
function(typegrad_add_cuda_test name program)
  add_dependencies(typegrad_cuda_tests ${program})
  if(TYPEGRAD_CUDA_TEST_LIBRARY_PATH)
    # PTX that can be read back, for the library that executes it.
    target_compile_options(${program} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=none>)
    set_target_properties(${program} PROPERTIES CUDA_ARCHITECTURES "80-virtual")
    foreach(order IN ITEMS forward reverse)
      add_test(NAME ${name}_${order} COMMAND ${program} ${ARGN})
      set_tests_properties(${name}_${order} PROPERTIES
        ENVIRONMENT "LD_LIBRARY_PATH=${TYPEGRAD_CUDA_TEST_LIBRARY_PATH};CUDA_ON_CPU_ORDER=${order}")
    endforeach()
  else()
    execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
    add_test(NAME ${name} COMMAND ${program} ${ARGN})
    if(no_gpu)
      set_tests_properties(${name} PROPERTIES DISABLED TRUE)
    endif()
  endif()
endfunction()
