// How a test steers fake_lanes.cc, and what that has counted.
#pragma once

#include <cstddef>

struct FakeLanes {
  long calls = 0;
  long fail_at = 0;      ///< the number of the call that fails, from 1; 0: none does
  bool sticks = false;   ///< all later calls fail too
  long wrong_calls = 0;  ///< calls that named an object that does not exist
  std::size_t live = 0;  ///< objects that were made and not destroyed
  void* context = nullptr;
  std::size_t on_device = 0;  ///< bytes in use of the device, which has 1 GiB
  std::size_t pinned = 0;     ///< bytes of the block pinned last
  // Of the last kernel.
  const char* function = nullptr;
  long launches = 0;
  unsigned grid = 0, block = 0;
  /// Runs a kernel by its function's name; null: nothing is run. Its return value is the launch's.
  int (*run)(const char* function, unsigned grid, unsigned block, void** arguments) = nullptr;
};

/// The type of the library's function "fakeLanes".
using FakeLanesEntry = FakeLanes* (*)();
