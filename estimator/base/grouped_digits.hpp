// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace stowage {

/// "25,557,032"
[[nodiscard]] std::string grouped_digits(std::int64_t value);

}  // namespace stowage
