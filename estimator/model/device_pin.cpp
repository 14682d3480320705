#include "estimator/model/device_pin.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "estimator/base/name_match.hpp"

namespace stowage {

namespace {

constexpr std::string_view class_prefix = "class:";
constexpr std::string_view op_prefix = "op:";

// "/device:GPU:0", "cuda:0" and "gpu" are one.
std::optional<PinnedSide> side_of(std::string_view word) {
  const std::string lowered = lower_case(word);
  std::string_view name = lowered;
  if (name.starts_with('/')) name.remove_prefix(1);
  if (name.starts_with("device:")) name.remove_prefix(7);
  if (name.ends_with(":0")) name.remove_suffix(2);
  if (name == "cpu" || name == "host") return PinnedSide::cpu;
  if (name == "gpu" || name == "cuda") return PinnedSide::gpu;
  return std::nullopt;
}

tl::unexpected<Diagnostics> refused(std::string message, SourceSpan span, std::string hint = {}) {
  return failure({.message = std::move(message), .span = std::move(span), .hint = std::move(hint)});
}

}  // namespace

std::string_view to_string(PinnedSide side) { return side == PinnedSide::cpu ? "cpu" : "gpu"; }

std::string to_string(const DevicePin& pin) {
  const std::string_view prefix = pin.target == PinTarget::storage_class ? class_prefix
                                  : pin.target == PinTarget::op          ? op_prefix
                                                                         : std::string_view();
  return fmt::format("{}{}={}", prefix, pin.pattern, to_string(pin.side));
}

Result<DevicePin> parse_device_pin(std::string_view pattern, std::string_view side,
                                   SourceSpan span) {
  DevicePin pin;
  const std::string_view whole = pattern;
  for (const auto& [prefix, target] :
       {std::pair(class_prefix, PinTarget::storage_class), std::pair(op_prefix, PinTarget::op)}) {
    if (!pattern.starts_with(prefix)) continue;
    pattern.remove_prefix(prefix.size());
    pin.target = target;
    break;
  }
  if (pattern.empty()) {
    return refused(fmt::format("the pin '{}={}' names nothing", whole, side), std::move(span),
                   "a pin is SCOPE=cpu, class:NAME=cpu or op:NAME=cpu");
  }
  if (pattern.size() > longest_pin_pattern) {
    return refused(fmt::format("the pattern of a pin is {} bytes long, more than {}",
                               pattern.size(), longest_pin_pattern),
                   std::move(span));
  }
  const auto where = side_of(side);
  if (!where) {
    return refused(fmt::format("'{}' is pinned to '{}', which is no device of a plan", whole, side),
                   std::move(span), "a plan has one GPU and its host: cpu or gpu");
  }
  pin.pattern = pattern;
  pin.side = *where;
  pin.span = std::move(span);
  return pin;
}

// On a mismatch it goes back to the last '*' only: an earlier one cannot match more of the name.
bool fits_pattern(std::string_view name, std::string_view pattern) {
  std::size_t n = 0, p = 0;
  std::size_t star = std::string_view::npos, after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool has_wildcard(std::string_view pattern) {
  return pattern.find_first_of("*?") != std::string_view::npos;
}

}  // namespace stowage
