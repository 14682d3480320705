#include "estimator/base/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "estimator/base/largest_memory.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/base/quantity.hpp"

namespace stowage {

void throw_overflow(std::int64_t a, char operation, std::int64_t b) {
  throw ArithmeticOverflow(fmt::format("{} {} {} does not fit in 64 bits", a, operation, b));
}

std::string format_bytes(Bytes bytes) {
  constexpr std::array<std::string_view, 7> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const std::int64_t count = bytes.count();
  if (std::abs(static_cast<double>(count)) < 1024) return fmt::format("{} B", count);
  double value = static_cast<double>(count);
  std::size_t unit = 0;
  // 1023.95 would print as "1024.0": go up as soon as rounding would.
  while (std::abs(value) >= 1023.95 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::pair<std::string, std::string> format_apart(Bytes a, Bytes b) {
  std::pair<std::string, std::string> shown{format_bytes(a), format_bytes(b)};
  if (a == b || shown.first != shown.second) return shown;
  constexpr std::array<std::pair<double, std::string_view>, 2> finer{
      {{1048576.0, "MiB"}, {1024.0, "KiB"}}};
  for (const auto& [size, unit] : finer) {
    shown = {fmt::format("{:.1f} {}", static_cast<double>(a.count()) / size, unit),
             fmt::format("{:.1f} {}", static_cast<double>(b.count()) / size, unit)};
    if (shown.first != shown.second) return shown;
  }
  return {fmt::format("{} B", a.count()), fmt::format("{} B", b.count())};
}

namespace {

// In lower case.
constexpr std::array<Unit, 15> size_units{{{"b", 1},
                                           {"kib", 1024.0},
                                           {"mib", 1048576.0},
                                           {"gib", 1073741824.0},
                                           {"tib", 1099511627776.0},
                                           {"kb", 1e3},
                                           {"mb", 1e6},
                                           {"gb", 1e9},
                                           {"tb", 1e12},
                                           {"k", 1024.0},
                                           {"m", 1048576.0},
                                           {"g", 1073741824.0},
                                           {"t", 1099511627776.0},
                                           {"byte", 1},
                                           {"bytes", 1}}};
constexpr std::array<std::string_view, 9> shown_units{"B",  "KiB", "MiB", "GiB", "TiB",
                                                      "KB", "MB",  "GB",  "TB"};

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

// What a number without a unit was probably meant to be: 8 of gigabytes, 500 of megabytes, a long
// one of bytes.
std::string_view likely_unit(double value) {
  if (value < 100) return "GiB";
  return value < 1e7 ? "MiB" : "B";
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const std::string_view trimmed = trim(text);
  if (!trimmed.empty() && trimmed.front() == '-') {
    return failure(fmt::format("'{}' is negative; a size of memory is not", trimmed));
  }
  const auto quantity = parse_quantity(trimmed);
  if (!quantity) {
    return failure(fmt::format("'{}' is not a size", trimmed), "write 8GiB, 233MiB or 2GB");
  }
  const double value = quantity->number;
  const std::string written(trim(quantity->rest));
  const std::string unit = lower_case(written);
  double factor = 1;  // of 0 alone, which needs no unit
  if (!unit.empty()) {
    const auto* const found = std::find_if(size_units.begin(), size_units.end(),
                                           [&](const Unit& u) { return u.name == unit; });
    if (found == size_units.end()) {
      std::string hint = did_you_mean(written, shown_units);
      if (hint.empty()) hint = "units are B, KiB, MiB, GiB, TiB, KB, MB, GB and TB";
      return failure(fmt::format("'{}' has an unknown unit '{}'", trimmed, written), hint);
    }
    factor = found->factor;
  } else if (value > 0) {
    return failure(fmt::format("{} of what? A size has a unit", trimmed),
                   fmt::format("did you mean {}{}?", trimmed, likely_unit(value)));
  }
  const double bytes = std::round(value * factor);
  if (bytes > static_cast<double>(largest_memory.count())) {
    return failure(fmt::format("'{}' is more than {}", trimmed, format_bytes(largest_memory)),
                   "no machine has that much memory");
  }
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace stowage
