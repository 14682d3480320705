// GuardedMemory: memory between two inaccessible pages.
#pragma once

#include <cstddef>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

class GuardedMemory {
 public:
  GuardedMemory() = default;
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;
  ~GuardedMemory();

  /// At least `bytes`, rounded up to 64 bytes, whose end is the beginning of an inaccessible page.
  /// Errors: the system's words, with the size.
  [[nodiscard]] static Result<GuardedMemory> of(Bytes bytes);
  [[nodiscard]] std::byte* base() const { return base_; }

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace stowage
