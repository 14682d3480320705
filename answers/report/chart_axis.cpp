#include "answers/report/chart_axis.hpp"

#include <cmath>

namespace stowage {

std::vector<double> round_ticks(double most, double unit) {
  if (!(most > 0) || !(unit > 0)) return {0};
  const double least = most / unit / 6;
  const double power = std::pow(10, std::floor(std::log10(least)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (int i = 0; i <= 6 && i * step * unit <= most; ++i) ticks.push_back(i * step * unit);
  return ticks;
}

AxisUnit size_unit(double most) {
  constexpr double mib = 1 << 20;
  constexpr double gib = 1 << 30;
  if (most >= gib) return {gib, "GiB"};
  return most >= mib ? AxisUnit{mib, "MiB"} : AxisUnit{1 << 10, "KiB"};
}

AxisUnit time_unit(double most) {
  if (most >= 1) return {1, "s"};
  return most >= 1e-3 ? AxisUnit{1e-3, "ms"} : AxisUnit{1e-6, "us"};
}

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace stowage
