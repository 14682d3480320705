// What the fuzz targets share. An input that breaks a promise ends in require(), that is in
// abort(); sanitizers and libFuzzer's limits on time and memory find the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage::fuzz {

inline void require(bool held) {
  if (!held) std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline SourceTextPtr source_of(const std::uint8_t* data, std::size_t size) {
  return std::make_shared<const SourceText>(SourceText{"fuzz", std::string(text_of(data, size))});
}

/// What is refused is refused with a message that can be shown.
inline void require_shown(const Diagnostics& mistakes) {
  require(!mistakes.empty() && !render(mistakes).empty());
}

/// A number that depends on every byte of the input: settings follow from it, so that an input is a
/// plain file and every mutation tries other settings too.
inline std::size_t choice(const std::uint8_t* data, std::size_t size) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 1099511628211U;
  return static_cast<std::size_t>(hash >> 16);
}

}  // namespace stowage::fuzz
