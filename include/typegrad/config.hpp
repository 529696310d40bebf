// Compiler and platform facts that every other header may rely on.
#pragma once

#if __cplusplus < 202002L
#error "typegrad needs C++20: compile with -std=c++20"
#endif

#define TYPEGRAD_VERSION "0.1.0"

#if defined(__CUDACC__)
#define TYPEGRAD_HOST_DEVICE __host__ __device__
#else
#define TYPEGRAD_HOST_DEVICE
#endif

#define TYPEGRAD_ALWAYS_INLINE inline __attribute__((always_inline))
