#include "bench/accuracy/scatter.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace stowage::accuracy {

namespace {

constexpr double side = 560, left = 70, top = 20;
constexpr double least_gib = 0.5, most_gib = 64;
constexpr std::array colours{"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                             "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};

// From 0 to 1 along an axis.
double along(double gib) {
  return (std::log2(gib) - std::log2(least_gib)) / (std::log2(most_gib) - std::log2(least_gib));
}
double across(double gib) { return left + side * along(gib); }
double up(double gib) { return top + side * (1 - along(gib)); }

std::string axes() {
  std::string text =
      fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='none' stroke='#444'/>\n", left,
                  top, side, side);
  for (double gib = least_gib; gib <= most_gib; gib *= 2) {
    text += fmt::format(
        "<line x1='{0:.1f}' y1='{1}' x2='{0:.1f}' y2='{2}' stroke='#ddd'/>"
        "<text x='{0:.1f}' y='{3}' text-anchor='middle'>{4:g}</text>\n",
        across(gib), top, top + side, top + side + 18, gib);
    text += fmt::format(
        "<line x1='{0}' y1='{1:.1f}' x2='{2}' y2='{1:.1f}' stroke='#ddd'/>"
        "<text x='{3}' y='{1:.1f}' dy='4' text-anchor='end'>{4:g}</text>\n",
        left, up(gib), left + side, left - 8, gib);
  }
  return text + fmt::format(
                    "<text x='{}' y='{}' text-anchor='middle'>measured, GiB</text>\n"
                    "<text transform='translate(20 {}) rotate(-90)' text-anchor='middle'>"
                    "predicted, GiB</text>\n",
                    left + side / 2, top + side + 40, top + side / 2);
}

std::string line(double factor, const char* style) {
  const double from = factor < 1 ? least_gib / factor : least_gib;
  const double to = factor > 1 ? most_gib / factor : most_gib;
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='#444' {}/>\n",
                     across(from), up(from * factor), across(to), up(to * factor), style);
}

}  // namespace

std::string scatter_svg(const std::vector<Series>& series) {
  std::string text = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n",
      left + side + 20, top + side + 60);
  text += axes() + line(1, "") + line(1.1, "stroke-dasharray='4 4'") +
          line(1 / 1.1, "stroke-dasharray='4 4'");
  for (std::size_t i = 0; i < series.size(); ++i) {
    const char* colour = colours[i % colours.size()];
    for (const Pair& pair : series[i].pairs) {
      text += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2.5' fill='{}' opacity='0.6'/>\n",
                          across(pair.measured / 1024), up(pair.predicted / 1024), colour);
    }
    const double y = top + 20 + 18 * static_cast<double>(i);
    text += fmt::format(
        "<circle cx='{}' cy='{}' r='4' fill='{}'/><text x='{}' y='{}' dy='4'>{}</text>\n",
        left + 16, y, colour, left + 26, y, series[i].name);
  }
  return text + "</svg>\n";
}

}  // namespace stowage::accuracy
