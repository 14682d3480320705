// What the two pretended NVMLs share: the structures of its interface, and how it returns a text.
#pragma once

#include <cstdio>

struct FakeMemory {
  unsigned long long total, free, used;
};
struct FakePci {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

/// Writes `value` to the caller's `text` of `length` bytes; the status of success.
inline int put(char* text, unsigned length, const char* value) {
  std::snprintf(text, length, "%s", value);
  return 0;
}
