// What lets one source compile for the host and, by NVRTC, for a device.
//
// The headers of this folder are the whole of what a device runs of ours: the program embeds them
// (device_source.hpp), so they include each other and nothing else that NVRTC lacks. A body is a
// struct that holds a call's addresses and numbers, and is called once for each index of its index
// space: `body(i)`, where indices are independent of each other, or `body(i, group)`, where a group
// of threads shares one (group.hpp).
//
// Errors: none can be raised here. What only the data can show, an index out of range, makes NaN.
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

// Not <cstdint>'s names, which NVRTC lacks; the same types where we build.
using Index = long;
using Byte = unsigned char;
using Int32 = int;
using Word16 = unsigned short;
using Word32 = unsigned;
using Word64 = unsigned long;
static_assert(sizeof(Index) == 8 && sizeof(Int32) == 4 && sizeof(Word64) == 8);

/// Its bits as another type of the same size.
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
