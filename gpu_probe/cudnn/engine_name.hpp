// EngineName: an engine of cuDNN as plans name it. "cudnn 9.19.0 eng34 k2=2 k13=0" has cuDNN's
// version, the engine's index and its knobs, as cuDNN numbers them. The same version makes the same
// engine from it for the same graph and card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stowage {

struct EngineName {
  std::string version;  ///< "9.19.0"
  std::int64_t index = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs;  ///< kind, value
  bool operator==(const EngineName&) const = default;
};

[[nodiscard]] std::string to_string(const EngineName& name);

/// None: the text names no engine of cuDNN ("rule", "").
[[nodiscard]] std::optional<EngineName> parse_engine_name(std::string_view text);

}  // namespace stowage
