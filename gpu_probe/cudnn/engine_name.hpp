// An engine of cuDNN as plans name it: "cudnn 9.19.0 eng34 k2=2 k13=0" is the engine's index, then
// its knobs, as cuDNN numbers them. With the same version of cuDNN, the graph and the card it can
// be made again from that.
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

/// None: it names no engine of cuDNN ("rule", "").
[[nodiscard]] std::optional<EngineName> parse_engine_name(std::string_view text);

}  // namespace stowage
