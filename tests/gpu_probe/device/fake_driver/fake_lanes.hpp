// What a test asks of fake_lanes.cc, and is told by it.
#pragma once

#include <cstddef>

struct FakeLanes {
  long calls = 0;
  long fail_at = 0;      ///< the number of the call that fails, from 1; 0: none does
  bool sticks = false;   ///< so do all behind it
  long wrong_calls = 0;  ///< that named what is not there
  std::size_t live = 0;  ///< what has been made and not destroyed
  void* context = nullptr;
  std::size_t on_device = 0;  ///< bytes, of a gigabyte
  std::size_t pinned = 0;     ///< bytes of the block pinned last
  // The last kernel.
  const char* function = nullptr;
  long launches = 0;
  unsigned grid = 0, block = 0;
  /// Runs a kernel by its function's name; null: nothing is run. What it returns is the launch's.
  int (*run)(const char* function, unsigned grid, unsigned block, void** arguments) = nullptr;
};

/// "fakeLanes" of the library.
using FakeLanesEntry = FakeLanes* (*)();
