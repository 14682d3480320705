// A hash that tells two inputs apart: XXH3-128 of the bytes, 32 hexadecimal digits. Identity, not
// security.
#pragma once

#include <string>
#include <string_view>

namespace stowage {

[[nodiscard]] std::string hash_text(std::string_view text);

}  // namespace stowage
