// How a test steers fake_blas.cc, and what that has counted.
#pragma once

#include <cstddef>
#include <cstdint>

struct FakeBlas {
  int create_fails = 0, gemm_fails = 0;  ///< the status that the call returns
  long fail_at = 0;                      ///< the number of the call that fails with error 14
  long calls = 0;                        ///< of functions that can be made to fail
  std::size_t wanted_workspace = 0;      ///< that every algorithm needs
  int handles = 0, descriptors = 0;      ///< that exist
  int questions = 0, products = 0;       ///< algorithms asked for, products computed
  void* stream = nullptr;                ///< of the last product, like the next two
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int type = -1, compute = -1;  ///< of the last question
  std::uint32_t alignment = 0;  ///< of its first matrix
};

/// The type of the library's function "fakeBlas".
using FakeBlasEntry = FakeBlas* (*)();
