# Compiles SOURCE, which must fail, and compares the first line of the errors with the "// expect:" line at its top.
file(STRINGS ${SOURCE} expected REGEX "^// expect: " LIMIT_COUNT 1)
string(REGEX REPLACE "^// expect: " "" expected "${expected}")
execute_process(
  COMMAND ${COMPILER} -std=c++20 -fsyntax-only -fconstexpr-ops-limit=2000000000 -I ${INCLUDE} -isystem ${EIGEN} ${SOURCE}
  RESULT_VARIABLE failed ERROR_VARIABLE errors)
if(NOT failed)
  message(FATAL_ERROR "it compiled; expected an error with: ${expected}")
endif()
string(REGEX MATCH "[^\n]*error[^\n]*" first "${errors}")
if(NOT first MATCHES "${expected}")
  message(FATAL_ERROR "expected in the first error: ${expected}\nfound: ${first}")
endif()
message(STATUS "${first}")
