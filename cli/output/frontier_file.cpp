#include "cli/output/frontier_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "answers/report/chart_axis.hpp"
#include "cli/output/table.hpp"

namespace stowage {
namespace {

std::string frontier_csv(const std::vector<FrontierPoint>& points) {
  std::string text = "budget_bytes,plan,step_seconds,step_lower_bound_seconds,pcie_bytes\n";
  for (const FrontierPoint& point : points) {
    const std::string bound =
        point.step_lower_bound_seconds ? fmt::format("{}", *point.step_lower_bound_seconds) : "";
    text += fmt::format("{},{},{},{},{}\n", point.budget.bytes.count(), point.plan,
                        point.step_seconds, bound, point.pcie.count());
  }
  return text;
}

/// Budgets to the right, seconds upwards from 0.
class Drawing {
 public:
  Drawing(const std::vector<FrontierPoint>& points, const FrontierTitle& title)
      : points_(points), title_(title) {
    most_bytes_ = static_cast<double>(title.card_budget.count());
    for (const FrontierPoint& point : points) {
      most_bytes_ = std::max(most_bytes_, bytes(point));
      most_seconds_ = std::max(most_seconds_, point.step_seconds);
    }
  }

  std::string run() {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n",
        width, height);
    put("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    put("<text x=\"{}\" y=\"22\" font-size=\"15\">{}</text>\n", left, xml_escaped(title_.text));
    axes();
    card();
    line("#999", [](const FrontierPoint& point) { return point.step_lower_bound_seconds; });
    line("#0b62a4", [](const FrontierPoint& point) { return std::optional(point.step_seconds); });
    dots();
    put("<text x=\"{}\" y=\"{}\" fill=\"#0b62a4\">step</text>\n", width - 150, top);
    put("<text x=\"{}\" y=\"{}\" fill=\"#777\">bound of its step</text>\n", width - 110, top);
    put("</svg>\n");
    return out_;
  }

 private:
  static constexpr double width = 760, height = 420, left = 80, right = 50, top = 50, bottom = 60;

  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
  }
  static double bytes(const FrontierPoint& point) {
    return static_cast<double>(point.budget.bytes.count());
  }
  [[nodiscard]] double x(double bytes) const {
    return left + (width - left - right) * (most_bytes_ > 0 ? bytes / most_bytes_ : 0);
  }
  [[nodiscard]] double y(double seconds) const {
    return height - bottom -
           (height - top - bottom) * (most_seconds_ > 0 ? seconds / most_seconds_ : 0);
  }

  void axes() {
    const AxisUnit sizes = size_unit(most_bytes_);
    for (const double bytes : round_ticks(most_bytes_, sizes.value)) {
      put("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#eee\"/>\n",
          x(bytes), y(0), y(most_seconds_));
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g} {}</text>\n", x(bytes),
          y(0) + 18, bytes / sizes.value, sizes.name);
    }
    const AxisUnit times = time_unit(most_seconds_);
    for (const double seconds : round_ticks(most_seconds_, times.value)) {
      put("<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#eee\"/>\n",
          x(0), x(most_bytes_), y(seconds));
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g} {}</text>\n", x(0) - 8,
          y(seconds) + 4, seconds / times.value, times.name);
    }
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">budget for the GPU arena</text>\n",
        (left + width - right) / 2, height - 18);
  }

  /// What the card leaves, as a line whose label stands on the side that has room.
  void card() {
    if (title_.card_budget <= Bytes()) return;
    const double at = x(static_cast<double>(title_.card_budget.count()));
    const bool is_right = at > (left + width - right) / 2;
    put("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#b3541e\" "
        "stroke-dasharray=\"5 4\"/>\n",
        at, y(0), y(most_seconds_));
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#b3541e\" text-anchor=\"{}\">{}: {}</text>\n",
        is_right ? at - 6 : at + 6, y(0) - 8, is_right ? "end" : "start", xml_escaped(title_.card),
        format_bytes(title_.card_budget));
  }

  template <typename Value>
  void line(const char* color, const Value& value) {
    std::string points;
    for (const FrontierPoint& point : points_) {
      if (const std::optional<double> seconds = value(point)) {
        points += fmt::format("{:.1f},{:.1f} ", x(bytes(point)), y(*seconds));
      }
    }
    put("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points,
        color);
  }

  void dots() {
    for (const FrontierPoint& point : points_) {
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#0b62a4\"><title>{} in {}: {}, {} "
          "over "
          "PCIe</title></circle>\n",
          x(bytes(point)), y(point.step_seconds), xml_escaped(point.plan),
          format_bytes(point.budget.bytes), format_seconds(point.step_seconds),
          format_bytes(point.pcie));
    }
  }

  const std::vector<FrontierPoint>& points_;
  const FrontierTitle& title_;
  double most_bytes_ = 0, most_seconds_ = 0;
  std::string out_;
};

}  // namespace

std::optional<FrontierFormat> frontier_format(std::string_view path) {
  if (path.ends_with(".csv")) return FrontierFormat::csv;
  if (path.ends_with(".svg")) return FrontierFormat::svg;
  return std::nullopt;
}

std::string frontier_text(const std::vector<FrontierPoint>& points, FrontierFormat format,
                          const FrontierTitle& title) {
  return format == FrontierFormat::csv ? frontier_csv(points) : Drawing(points, title).run();
}

}  // namespace stowage
