// The basics by which one source compiles for the host and, by NVRTC, for a device.
//
// The headers of this folder are all of our code that a device runs. The program embeds them
// (device_source.hpp), so they include each other, and nothing else that NVRTC does not have. A
// body is a struct with a call's addresses and numbers. It is called once for each index of its
// index space: as `body(i)`, where one thread runs an index, or as `body(i, group)`, where a group
// of threads shares one (group.hpp). Indices do not depend on each other.
//
// A body cannot report errors. A mistake that only the data shows, such as an index out of range,
// makes NaN.
#pragma once

#ifdef __CUDACC_RTC__
#define STOWAGE_BODY __device__ __forceinline__
#else
#define STOWAGE_BODY inline
#include <cmath>
#include <cstring>
#include <limits>
#endif

namespace stowage::body {

// NVRTC does not have the names of <cstdint>; these are the same types on our platforms.
using Index = long;
using Byte = unsigned char;
using Int32 = int;
using Word16 = unsigned short;
using Word32 = unsigned;
using Word64 = unsigned long;
static_assert(sizeof(Index) == 8 && sizeof(Int32) == 4 && sizeof(Word64) == 8);

/// The value's bits as another type of the same size.
template <class To, class From>
STOWAGE_BODY To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
STOWAGE_BODY T least(T a, T b) {
  return b < a ? b : a;
}
template <class T>
STOWAGE_BODY T most(T a, T b) {
  return a < b ? b : a;
}

}  // namespace stowage::body
