#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <iterator>
#include <map>
#include <set>

#include "estimator/step/node_dependences.hpp"
#include "planner/export/dot.hpp"
#include "planner/export/dot_text.hpp"
#include "planner/export/plan_rows.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_rows = 12;
constexpr std::string_view gpu_fill = "#e2f0d9", cpu_fill = "#cfe2f3", host_fill = "#f3f3f3";

/// A box: what a row does in one part of the step, or what of it is copied to or from the host.
struct Box {
  enum class Column { forward, host, backward, update };
  int row = 0;
  Column column = Column::forward;
  auto operator<=>(const Box&) const = default;
};

std::string id_of(const Box& box) {
  return fmt::format("{}{}", "fhbu"[static_cast<std::size_t>(box.column)], box.row);
}

Box::Column column_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
    case Phase::loss:
      return Box::Column::forward;
    case Phase::backward:
      return Box::Column::backward;
    case Phase::update:
      break;
  }
  return Box::Column::update;
}

struct KernelCounts {
  int gpu = 0, cpu = 0;
};

/// What an edge says of the tensors that it stands for.
enum class EdgeKind { stays, copied, read_on_host, control };

struct Edge {
  Box from, to;
  EdgeKind kind;
  auto operator<=>(const Edge&) const = default;
};

struct EdgeLoad {
  std::set<StorageId> storages;
  Bytes bytes;
};

class BlockDrawing {
 public:
  explicit BlockDrawing(const Plan& plan) : plan_(plan), rows_(plan_rows(plan, most_rows)) {
    last_write_.resize(plan.step.graph->storages.size(), -1);
  }

  /// Gathers the boxes and the edges from the kernels and the copies, and writes them.
  std::string run() {
    index_uses();
    for (std::size_t step = 0; step < plan_.nodes.size(); ++step) add_node(step);
    for (const Transfer& transfer : plan_.transfers) add_copy(transfer);
    if (!plan_.step.graph->settings.order.empty()) add_control();
    std::string out = dot_opening(fmt::format("{} {}", plan_.inputs.model_name, plan_.name));
    out += legend() + boxes() + layout();
    for (const auto& [edge, load] : edges_) out += edge_line(edge, load);
    return out + "}\n";
  }

 private:
  [[nodiscard]] int row_or_last(int row) const {
    return row < 0 ? static_cast<int>(rows_.names.size()) : row;
  }
  [[nodiscard]] Box box_of(std::size_t step) const {
    const KernelNode& node = plan_.step.graph->nodes[step];
    return {row_or_last(rows_.row_of(plan_, node)), column_of(node.phase)};
  }
  /// In the row of the storage's layer; an input's is the row that uses it first.
  [[nodiscard]] Box host_of(StorageId storage) const {
    int row = rows_.row_of(plan_, storage);
    if (row < 0 && !uses_[storage.index()].empty())
      row = box_of(uses_[storage.index()].front()).row;
    return {row_or_last(row), Box::Column::host};
  }
  [[nodiscard]] bool is_on_cpu(std::size_t step) const {
    return device_of(plan_, plan_.nodes[step]) == Device::cpu;
  }

  void index_uses() {
    uses_.resize(last_write_.size());
    for (std::size_t step = 0; step < plan_.nodes.size(); ++step) {
      const KernelNode& node = plan_.step.graph->nodes[step];
      for (const auto* views : {&node.reads, &node.writes}) {
        for (const TensorView& view : *views) uses_[view.storage.index()].push_back(step);
      }
    }
  }

  /// `storage` counts once an edge; a copy counts each time.
  void add_edge(const Edge& edge, StorageId storage) {
    if (edge.from == edge.to) return;
    EdgeLoad& load = edges_[edge];
    const bool is_new = load.storages.insert(storage).second;
    if (is_new || edge.kind == EdgeKind::copied) load.bytes += plan_.bytes(storage);
  }

  // Is the value of `storage` brought by an upload after `writer` and before `reader`?
  [[nodiscard]] bool crosses_link(StorageId storage, int writer, std::size_t reader) const {
    return std::ranges::any_of(plan_.transfers, [&](const Transfer& transfer) {
      return transfer.storage == storage && direction_of(plan_, transfer) == Direction::h2d &&
             transfer.begin > writer && transfer.end <= static_cast<int>(reader);
    });
  }

  void add_node(std::size_t step) {
    const KernelNode& node = plan_.step.graph->nodes[step];
    const Box box = box_of(step);
    ++(is_on_cpu(step) ? counts_[box].cpu : counts_[box].gpu);
    for (const TensorView& view : node.reads) add_read(view.storage, step);
    for (const TensorView& view : node.writes) {
      last_write_[view.storage.index()] = static_cast<int>(step);
    }
  }

  void add_read(StorageId storage, std::size_t step) {
    const int writer = last_write_[storage.index()];
    const bool is_written_here = writer >= 0;
    const auto from = static_cast<std::size_t>(writer);
    if (is_on_cpu(step)) {
      const Box source = is_written_here && is_on_cpu(from) ? box_of(from) : host_box(storage);
      add_edge({source, box_of(step), EdgeKind::read_on_host}, storage);
    } else if (is_written_here && !is_on_cpu(from) && !crosses_link(storage, writer, step)) {
      add_edge({box_of(from), box_of(step), EdgeKind::stays}, storage);
    }
  }

  Box host_box(StorageId storage) {
    const Box box = host_of(storage);
    on_host_[box].insert(storage);
    return box;
  }

  /// A download comes from the box that used the storage last before it, an upload goes to the one
  /// that uses it next; around the step's end, where the storage has no such use.
  void add_copy(const Transfer& transfer) {
    const std::vector<std::size_t>& uses = uses_[transfer.storage.index()];
    if (uses.empty()) return;
    const Box host = host_box(transfer.storage);
    const auto next = std::ranges::lower_bound(uses, static_cast<std::size_t>(transfer.begin));
    if (direction_of(plan_, transfer) == Direction::d2h) {
      const std::size_t last = next == uses.begin() ? uses.back() : *std::prev(next);
      add_edge({box_of(last), host, EdgeKind::copied}, transfer.storage);
    } else {
      const std::size_t first = next == uses.end() ? uses.front() : *next;
      add_edge({host, box_of(first), EdgeKind::copied}, transfer.storage);
    }
  }

  // The control dependencies for a runtime that knows only which node reads which value: in a step
  // with an order of its own each node comes behind the one before it.
  void add_control() {
    const auto before = node_dependences(*plan_.step.graph);
    for (std::size_t step = 1; step < before.size(); ++step) {
      if (std::ranges::binary_search(before[step], static_cast<std::int32_t>(step) - 1)) continue;
      const Edge edge{box_of(step - 1), box_of(step), EdgeKind::control};
      if (edge.from != edge.to) edges_[edge];
    }
  }

  [[nodiscard]] std::string name_of(int row) const {
    return row < static_cast<int>(rows_.names.size()) ? rows_.names[static_cast<std::size_t>(row)]
                                                      : std::string("all layers");
  }

  [[nodiscard]] std::string boxes() const {
    std::string out;
    for (const auto& [box, counts] : counts_) {
      const std::string_view part = box.column == Box::Column::forward    ? "forward"
                                    : box.column == Box::Column::backward ? "backward"
                                                                          : "update";
      std::string label = fmt::format("{}\n{}: ", name_of(box.row), part);
      if (counts.gpu > 0) label += fmt::format("{} on the GPU", counts.gpu);
      if (counts.cpu > 0) {
        label += fmt::format("{}{} on the CPU", counts.gpu > 0 ? ", " : "", counts.cpu);
      }
      const std::string fill = counts.gpu == 0   ? std::string(cpu_fill)
                               : counts.cpu == 0 ? std::string(gpu_fill)
                                                 : fmt::format("{}:{}", gpu_fill, cpu_fill);
      out +=
          fmt::format("  {} [label={}, fillcolor=\"{}\"];\n", id_of(box), dot_quoted(label), fill);
    }
    for (const auto& [box, storages] : on_host_) {
      out += fmt::format("  {} [label={}, shape=cylinder, fillcolor=\"{}\"];\n", id_of(box),
                         dot_quoted(host_label(storages)), host_fill);
    }
    return out;
  }

  [[nodiscard]] std::string host_label(const std::set<StorageId>& storages) const {
    std::map<StorageClass, Bytes> of_class;
    for (const StorageId storage : storages) {
      of_class[plan_.storage(storage).storage_class] += plan_.bytes(storage);
    }
    std::string label = "host memory";
    for (const auto& [storage_class, bytes] : of_class) {
      std::string words(to_string(storage_class));
      std::ranges::replace(words, '_', ' ');
      label += fmt::format("\n{} {}", words, format_bytes(bytes));
    }
    return label;
  }

  /// Boxes of a row stand side by side, in columns: forward, host, backward, update.
  [[nodiscard]] std::string layout() const {
    std::set<Box> all;
    for (const auto& [box, counts] : counts_) all.insert(box);
    for (const auto& [box, storages] : on_host_) all.insert(box);
    std::string out;
    std::map<Box::Column, Box> above;
    for (auto box = all.begin(); box != all.end();) {
      std::string row, order;
      const int number = box->row;
      for (const Box* left = nullptr; box != all.end() && box->row == number; ++box) {
        row += id_of(*box) + "; ";
        if (left != nullptr) {
          out += fmt::format("  {} -> {} [style=invis];\n", id_of(*left), id_of(*box));
        }
        left = &*box;
        if (const auto upper = above.find(box->column); upper != above.end()) {
          out += fmt::format("  {} -> {} [style=invis, weight=20];\n", id_of(upper->second),
                             id_of(*box));
        }
        above[box->column] = *box;
      }
      out += fmt::format("  {{ rank=same; {}}}\n", row);
    }
    return out;
  }

  /// Edges to a row above are written the other way round, so that rows keep their order.
  [[nodiscard]] std::string edge_line(const Edge& edge, const EdgeLoad& load) const {
    const bool goes_up = edge.to.row < edge.from.row;
    const std::string ends = goes_up ? fmt::format("{} -> {}", id_of(edge.to), id_of(edge.from))
                                     : fmt::format("{} -> {}", id_of(edge.from), id_of(edge.to));
    const std::string_view back = goes_up ? ", dir=back" : "";
    if (edge.kind == EdgeKind::control) {
      return fmt::format(
          "  {} [style=dashed, color=gray, constraint=false, tooltip=\"control\"{}];\n", ends,
          back);
    }
    const std::string_view style =
        edge.kind == EdgeKind::copied         ? "color=red, fontcolor=red, penwidth=2"
        : edge.kind == EdgeKind::read_on_host ? "color=blue, fontcolor=blue"
                                              : "color=black";
    return fmt::format("  {} [{}, label={}, tooltip={}, constraint=false{}];\n", ends, style,
                       dot_quoted(format_bytes(load.bytes)), dot_quoted(tooltip(load.storages)),
                       back);
  }

  [[nodiscard]] std::string tooltip(const std::set<StorageId>& storages) const {
    constexpr std::size_t most_names = 8;
    std::string text;
    std::size_t named = 0;
    for (const StorageId storage : storages) {
      if (named == most_names) return text + fmt::format(" and {} more", storages.size() - named);
      text += (named++ == 0 ? "" : ", ") + plan_.storage(storage).name;
    }
    return text;
  }

  [[nodiscard]] std::string legend() const {
    std::string rows = fmt::format(
        "<tr><td align=\"left\" bgcolor=\"{}\">kernels on the GPU</td></tr>"
        "<tr><td align=\"left\" bgcolor=\"{}\">kernels on the CPU</td></tr>"
        "<tr><td align=\"left\" bgcolor=\"{}\">host memory: what is copied or read there</td></tr>"
        "<tr><td align=\"left\">black: stays on the GPU</td></tr>"
        "<tr><td align=\"left\"><font color=\"red\">red: copied between GPU and "
        "host</font></td></tr>"
        "<tr><td align=\"left\"><font color=\"blue\">blue: read on the host</font></td></tr>",
        gpu_fill, cpu_fill, host_fill);
    if (!plan_.step.graph->settings.order.empty()) {
      rows +=
          "<tr><td align=\"left\"><font color=\"gray\">grey, dashed: order of the plan's own"
          "</font></td></tr>";
    }
    return fmt::format(
        "  legend [shape=plaintext, style=\"\", label=<<table border=\"0\" cellborder=\"0\" "
        "cellspacing=\"2\">{}</table>>];\n",
        rows);
  }

  const Plan& plan_;
  PlanRows rows_;
  std::vector<int> last_write_;                 // by StorageId; -1: the step found it
  std::vector<std::vector<std::size_t>> uses_;  // by StorageId: steps, ascending
  std::map<Box, KernelCounts> counts_;
  std::map<Box, std::set<StorageId>> on_host_;
  std::map<Edge, EdgeLoad> edges_;
};

}  // namespace

Result<std::string> export_dot(const Plan& plan) {
  if (const std::string mismatch = two_sides_mismatch(plan.machine); !mismatch.empty()) {
    return failure("a plan for another machine than one GPU and its host is not drawn: " +
                   mismatch);
  }
  return BlockDrawing(plan).run();
}

}  // namespace stowage
