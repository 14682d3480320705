// The bound on every amount of memory that a user can cause.
#pragma once

#include "estimator/base/bytes.hpp"

namespace stowage {

/// The largest amount that is read from a text, or that the storages of a step may add up to:
/// 32 PiB. A simulation adds a few such amounts, doubles them, and has up to 64 devices: all of
/// that stays within 64 bits.
inline constexpr Bytes largest_memory{std::int64_t{1} << 55};

}  // namespace stowage
