#include "answers/exporting/memory_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "answers/report/chart_axis.hpp"
#include "answers/report/memory_columns.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_columns = 640;
constexpr std::size_t most_phase_marks = 8;

/// By StorageClass: those of the pages (cli/report/page/page.css).
constexpr std::array<std::string_view, storage_class_count> class_colors{
    "#8a929c",   // input
    "#b4bac2",   // augmented_input
    "#3b6fd4",   // parameter
    "#7aa0ea",   // parameter_copy
    "#a9c1f0",   // buffer
    "#d9558f",   // gradient
    "#8a56d6",   // optimizer_state
    "#2f9e4f",   // activation
    "#e0a100",   // activation_gradient
    "#62bfa5",   // saved_auxiliary
    "#8d6246",   // workspace
    "#e4643f",   // temporary
    "#1d93ad"};  // kv_cache

constexpr std::string_view style =
    "<style>\n"
    "svg{background:#fff;color:#1b1b1b}\n"
    ".grid{stroke:#8884}.quiet{fill:#666}.line{stroke:currentColor;fill:none}\n"
    "text{fill:currentColor}text.quiet{fill:#666}\n"
    "@media(prefers-color-scheme:dark){svg{background:#16181c;color:#e8e8e8}"
    "text.quiet{fill:#a5a5a5}}\n"
    "</style>\n";

class MemoryDrawing {
 public:
  MemoryDrawing(const MemoryOverStep& memory, const MemoryPicture& picture)
      : memory_(memory),
        picture_(picture),
        columns_(memory_columns(memory, most_columns)),
        classes_(stacked_classes(memory)) {
    for (const MemoryColumn& column : columns_)
      most_ = std::max({most_, column.live, column.reserved});
    shows_limit_ = picture.limit > Bytes() && picture.limit.count() / 2 <= most_.count();
    if (shows_limit_) most_ = std::max(most_, picture.limit);
  }

  std::string run() {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n",
        width, height);
    out_ += style;
    put("<title>{}</title>\n", xml_escaped(picture_.title));
    put("<text x=\"{}\" y=\"22\" font-size=\"15\">{}</text>\n", left, xml_escaped(picture_.title));
    put("<text x=\"{}\" y=\"40\" class=\"quiet\">{}</text>\n", left,
        xml_escaped(picture_.subtitle));
    axes();
    stack();
    phases();
    reserved();
    limit();
    peak();
    legend();
    return std::move(out_) + "</svg>\n";
  }

 private:
  static constexpr double width = 960, height = 460, left = 76, right = 250, top = 62, bottom = 52;

  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
  }
  [[nodiscard]] double x(std::int32_t node) const {
    return left + (width - left - right) * node / std::max(memory_.nodes(), 1);
  }
  [[nodiscard]] double y(double bytes) const {
    const auto most = static_cast<double>(std::max<std::int64_t>(most_.count(), 1));
    return height - bottom - (height - top - bottom) * bytes / most;
  }
  [[nodiscard]] double y(Bytes bytes) const { return y(static_cast<double>(bytes.count())); }
  [[nodiscard]] Bytes at(StorageClass of, std::int32_t node) const {
    return memory_.by_class[static_cast<std::size_t>(of)][static_cast<std::size_t>(node)];
  }
  static std::string_view color(StorageClass of) {
    return class_colors[static_cast<std::size_t>(of)];
  }

  void axes() {
    const auto most = static_cast<double>(most_.count());
    const AxisUnit unit = size_unit(most);
    for (const double bytes : round_ticks(most, unit.value)) {
      put("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n", left,
          width - right, y(bytes));
      put("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g} {}</text>\n", left - 8,
          y(bytes) + 4, bytes / unit.value, unit.name);
    }
    for (const double node : round_ticks(memory_.nodes(), 1)) {
      if (node != static_cast<std::int32_t>(node)) continue;
      put("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
          x(static_cast<std::int32_t>(node)), height - bottom + 18, node);
    }
    put("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" class=\"quiet\">kernels, in the order "
        "in "
        "which they run</text>\n",
        (left + width - right) / 2, height - 14);
  }

  /// A path a class: its upper edge to the right, its lower edge back.
  void stack() {
    std::vector<Bytes> below(columns_.size());
    for (const StorageClass of : classes_) {
      std::vector<Bytes> above = below;
      std::string path;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        above[i] += at(of, columns_[i].at);
        path += fmt::format("{}{:.1f} {:.1f}H{:.1f}", i == 0 ? 'M' : 'L',
                            x(columns_[i].nodes.begin), y(above[i]), x(columns_[i].nodes.end));
      }
      for (std::size_t i = columns_.size(); i-- > 0;) {
        path += fmt::format("L{:.1f} {:.1f}H{:.1f}", x(columns_[i].nodes.end), y(below[i]),
                            x(columns_[i].nodes.begin));
      }
      put("<path fill=\"{}\" d=\"{}Z\"><title>{}</title></path>\n", color(of), path,
          class_words(of));
      below = std::move(above);
    }
  }

  static std::string class_words(StorageClass of) {
    std::string words(to_string(of));
    std::ranges::replace(words, '_', ' ');
    return words;
  }

  /// Where forward, backward and the update begin, unless the step changes between them often.
  void phases() {
    std::vector<std::pair<std::int32_t, std::string_view>> begins;
    for (std::int32_t node = 0; node < memory_.nodes(); ++node) {
      const Phase phase = memory_.graph->node(NodeId{node}).phase;
      const std::string_view name = to_string(phase == Phase::loss ? Phase::forward : phase);
      if (begins.empty() || begins.back().second != name) begins.emplace_back(node, name);
    }
    if (begins.size() > most_phase_marks) return;
    for (const auto& [node, name] : begins) {
      put("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>\n", x(node),
          top - 8, height - bottom);
      const bool is_late = x(node) > width - right - 60;
      put("<text x=\"{:.1f}\" y=\"{}\" font-size=\"11\" class=\"quiet\" "
          "text-anchor=\"{}\">{}</text>\n",
          is_late ? x(node) - 3 : x(node) + 3, top - 2, is_late ? "end" : "start", name);
    }
  }

  void reserved() {
    std::string path;
    for (const MemoryColumn& column : columns_) {
      path += fmt::format("{}{:.1f} {:.1f}H{:.1f}", path.empty() ? 'M' : 'L', x(column.nodes.begin),
                          y(column.reserved), x(column.nodes.end));
    }
    put("<path class=\"line\" stroke-dasharray=\"5 3\" d=\"{}\"/>\n", path);
  }

  void limit() {
    if (!shows_limit_) return;
    put("<line stroke=\"#d4351c\" stroke-width=\"1.5\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" "
        "y2=\"{2:.1f}\"/>\n",
        left, width - right, y(picture_.limit));
  }

  void peak() {
    const double at_x = (x(memory_.peak) + x(memory_.peak + 1)) / 2;
    const bool is_right = at_x > (left + width - right) / 2;
    put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#d4351c\"><title>{}</title></circle>\n",
        at_x, y(memory_.peak_bytes()), xml_escaped(peak_node()));
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-weight=\"bold\">peak {}</text>\n",
        is_right ? at_x - 8 : at_x + 8, y(memory_.peak_bytes()) - 6, is_right ? "end" : "start",
        format_bytes(memory_.peak_bytes()));
  }

  [[nodiscard]] const std::string& peak_node() const {
    return memory_.graph->node(NodeId{memory_.peak}).name;
  }

  /// At the peak, from the top of the stack down.
  void legend() {
    const double at_x = width - right + 18;
    double at_y = top + 4;
    put("<text x=\"{}\" y=\"{}\" class=\"quiet\">at the peak, {}</text>\n", at_x, at_y,
        xml_escaped(shortened(peak_node())));
    for (auto of = classes_.rbegin(); of != classes_.rend(); ++of) {
      at_y += 20;
      put("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", at_x, at_y - 10,
          color(*of));
      put("<text x=\"{}\" y=\"{}\">{} {}</text>\n", at_x + 18, at_y, class_words(*of),
          format_bytes(at(*of, memory_.peak)));
    }
    at_y += 26;
    put("<line class=\"line\" stroke-dasharray=\"5 3\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" "
        "y2=\"{2}\"/>\n",
        at_x, at_x + 14, at_y - 4);
    Bytes most;
    for (const MemoryColumn& column : columns_) most = std::max(most, column.reserved);
    put("<text x=\"{}\" y=\"{}\">{} {}</text>\n", at_x + 18, at_y, picture_.reserved_name,
        format_bytes(most));
    if (!shows_limit_) return;
    at_y += 20;
    put("<line stroke=\"#d4351c\" stroke-width=\"1.5\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" "
        "y2=\"{2}\"/>\n",
        at_x, at_x + 14, at_y - 4);
    put("<text x=\"{}\" y=\"{}\">{} {}</text>\n", at_x + 18, at_y, xml_escaped(picture_.limit_name),
        format_bytes(picture_.limit));
  }

  /// The end of a long name, which says the most.
  static std::string shortened(const std::string& name) {
    constexpr std::size_t most_letters = 24;
    return name.size() <= most_letters ? name : "*" + name.substr(name.size() - most_letters);
  }

  const MemoryOverStep& memory_;
  const MemoryPicture& picture_;
  std::vector<MemoryColumn> columns_;
  std::vector<StorageClass> classes_;
  Bytes most_;
  bool shows_limit_ = false;
  std::string out_;
};

}  // namespace

std::string memory_svg(const MemoryOverStep& memory, const MemoryPicture& picture) {
  return MemoryDrawing(memory, picture).run();
}

}  // namespace stowage
