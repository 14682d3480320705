// What drawings of numbers share: round values for an axis, and units that its labels are in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stowage {

/// Values from 0 to `most` that are read at a glance: multiples of 1, 2 or 5 times a power of ten
/// of `unit`, at most 7.
[[nodiscard]] std::vector<double> round_ticks(double most, double unit);

struct AxisUnit {
  double value;
  std::string_view name;
};
/// KiB, MiB or GiB, by the largest value in bytes.
[[nodiscard]] AxisUnit size_unit(double most);
/// us, ms or s, by the largest value in seconds.
[[nodiscard]] AxisUnit time_unit(double most);

/// For the text of an XML element.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace stowage
