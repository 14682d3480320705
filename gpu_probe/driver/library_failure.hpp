// LibraryFailure: the exception for a failed call of one of NVIDIA's libraries. It is thrown within
// gpu_probe/ and caught where a Result is made.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

namespace stowage {

class LibraryFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void must_succeed(int status, std::string_view call) {
  if (status != 0) throw LibraryFailure(fmt::format("{} fails with error {}", call, status));
}

}  // namespace stowage
