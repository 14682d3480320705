// How a test steers fake_cudnn.cc, and what that has counted.
#pragma once

#include <cstddef>
#include <cstdint>

struct FakeCudnn {
  long calls = 0;
  long fail_at = 0;            ///< the number of the call that fails, from 1; 0: none does
  long live = 0;               ///< descriptors and handles that are not destroyed
  long handles = 0;            ///< handles that were created
  long executed = 0;           ///< convolutions and other graphs that were executed
  long asked = 0;              ///< questions to the heuristics
  int engines_fail = 0;        ///< 1: no engine can be made by its index
  std::int64_t workspace = 0;  ///< that every engine needs
  std::int64_t last_engine = -1;
  std::int64_t knobs = 0;  ///< of the last engine that was made by its index
  void* stream = nullptr;
  void* last_workspace = nullptr;
};

/// The type of the library's function "fakeCudnn".
using FakeCudnnEntry = FakeCudnn* (*)();
