// What a test tells fake_blas.cc, and is told by it.
#pragma once

#include <cstddef>

struct FakeBlas {
  int create_fails = 0, gemm_fails = 0;  ///< what the call returns
  int handles = 0, products = 0;
  void* stream = nullptr;
  std::size_t workspace_bytes = 0;
  int type = -1, compute = -1;  ///< of the last product
};

/// "fakeBlas" of the library.
using FakeBlasEntry = FakeBlas* (*)();
