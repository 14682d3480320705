// What a test tells fake_blas.cc, and is told by it.
#pragma once

#include <cstddef>
#include <cstdint>

struct FakeBlas {
  int create_fails = 0, gemm_fails = 0;  ///< what the call returns
  long fail_at = 0;                      ///< the call of that number fails with error 14
  long calls = 0;                        ///< of functions that can fail
  std::size_t wanted_workspace = 0;      ///< of every algorithm
  int handles = 0, descriptors = 0;      ///< that are there
  int questions = 0, products = 0;       ///< algorithms asked for, products made
  void* stream = nullptr;                ///< of the last product, as what follows
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int type = -1, compute = -1;  ///< of the last question
  std::uint32_t alignment = 0;  ///< of its first matrix
};

/// "fakeBlas" of the library.
using FakeBlasEntry = FakeBlas* (*)();
