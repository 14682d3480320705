// A plan file is three YAML documents. The first is read as YAML. The tables of the second are read
// by hand: they are literal blocks, since a general reader would spend most of a plan's loading
// time on their rows. The third is the step's file, which is JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>

#include "estimator/base/quantity.hpp"
#include "estimator/document/step_document.hpp"
#include "planner/plan/certificate_table.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/plan/plan_header.hpp"
#include "planner/plan/section.hpp"
#include "planner/plan/table_row.hpp"

namespace stowage {
namespace {

constexpr std::size_t largest_plan = std::size_t{64} << 20;
constexpr std::int64_t most_steps = std::numeric_limits<std::int32_t>::max() - 1;

using Row = TableLine;
using Cells = TableCells;

enum Table {
  nodes_table,
  windows_table,
  seconds_table,
  residences_table,
  transfers_table,
  pins_table,
  certificate_table,
  table_count
};
constexpr std::array<std::string_view, table_count> table_names{
    "nodes", "windows", "seconds", "residences", "transfers", "pins", "certificate"};
constexpr int indentation = table_indentation;

class TableReader {
 public:
  /// Precondition: the plan has its step and its machine.
  TableReader(SourceTextPtr source, Plan plan)
      : source_(std::move(source)),
        plan_(std::move(plan)),
        mistakes_(source_),
        steps_(static_cast<std::int64_t>(plan_.step.graph->nodes.size())) {}

  /// Reads the text's bytes [begin, end), which start on line `first_line`.
  Result<Plan> run(std::size_t begin, std::size_t end, int first_line) {
    collect_rows(begin, end, first_line);
    if (mistakes_.none()) {
      number_names();
      plan_.nodes.assign(plan_.step.graph->nodes.size(), {.processor = ProcessorId{0}});
      plan_.residences.assign(plan_.machine.memories.size(), {});
      for (const Row& row : rows_[nodes_table]) node(row);
      for (const Row& row : rows_[windows_table]) window(row);
      read_seconds();
      for (const Row& row : rows_[residences_table]) residence(row);
      for (const Row& row : rows_[transfers_table]) transfer(row);
      read_pins();
      if (has_certificate_) {
        plan_.certificate =
            read_certificate(rows_[certificate_table], *plan_.step.graph, mistakes_);
      }
    }
    if (!mistakes_.none()) return tl::unexpected(std::move(mistakes_).taken());
    return std::move(plan_);
  }

 private:
  void number_names() {
    const StepGraph& graph = *plan_.step.graph;
    for (std::size_t i = 0; i < graph.storages.size(); ++i) {
      storages_.emplace(graph.storages[i].name, StorageId::of(i));
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      nodes_.emplace(graph.nodes[i].name, NodeId::of(i));
    }
  }

  void error(int line, int column, std::size_t length, std::string message) {
    mistakes_.add(line, column, length, std::move(message));
  }

  void collect_rows(std::size_t begin, std::size_t text_end, int line) {
    const std::string_view text = std::string_view(source_->text).substr(0, text_end);
    std::array<bool, table_count> seen{};
    int current = -1;
    for (; begin < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view row = text.substr(begin, end - begin);
      begin = end + 1;
      if (row.empty() || row.front() == '#') continue;
      if (row.starts_with("  ")) {
        const std::string_view cells = row.substr(indentation);
        if (current < 0) {
          error(line, indentation + 1, cells.size(), "a row outside the plan's tables");
        } else if (!cells.empty() && cells.front() != '#') {
          rows_[static_cast<std::size_t>(current)].push_back({line, cells});
        }
        continue;
      }
      current = -1;
      for (std::size_t i = 0; i < table_count; ++i) {
        if (row != fmt::format("{}: |", table_names[i])) continue;
        current = static_cast<int>(i);
        if (seen[i]) error(line, 1, row.size(), fmt::format("'{}' is there twice", table_names[i]));
        seen[i] = true;
      }
      if (current < 0) {
        error(line, 1, row.size(),
              "expected a table: nodes, windows, seconds, residences, transfers, pins or "
              "certificate");
      }
    }
    has_certificate_ = seen[certificate_table];
    for (std::size_t i = 0; i < table_count; ++i) {
      const bool optional = i == windows_table || i == certificate_table ||
                            (i == seconds_table && plan_.machine.measured_on.empty()) ||
                            (i == pins_table && plan_.pins.reasons.empty());
      if (!optional && !seen[i]) {
        error(line, 1, 1, fmt::format("the plan lacks the table '{}'", table_names[i]));
      }
    }
  }

  /// The id of the row of a head table with this name. `kind` is used in the message.
  template <typename Id, typename Rows>
  Id named(Cells& cells, std::string_view kind, const Rows& rows) {
    const std::string_view name = cells.word();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].name == name) return Id::of(i);
    }
    cells.refuse(name, fmt::format("there is no {} '{}'", kind, name));
    return {};
  }

  void node(const Row& row) {
    Cells cells(mistakes_, row);
    PlannedNode node;
    node.processor = named<ProcessorId>(cells, "processor", plan_.machine.processors);
    node.workspace = Bytes(cells.number("the workspace", 0, most_plan_bytes));
    node.workspace_offset = Bytes(cells.number("the workspace's offset", 0, most_plan_bytes));
    const std::string_view rest = cells.rest("the node's name");
    const std::size_t bar = rest.rfind(" | ");
    const std::string_view name = rest.substr(0, bar);
    if (bar != rest.npos) node.engine = rest.substr(bar + 3);
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) {
      return cells.refuse(name, fmt::format("the step has no node '{}'", name));
    }
    if (found->second <= last_node_) {
      return cells.refuse(name, fmt::format("node '{}' is there twice or out of order", name));
    }
    last_node_ = found->second;
    plan_.nodes[found->second.index()] = std::move(node);
  }

  void window(const Row& row) {
    Cells cells(mistakes_, row);
    const std::int32_t begin = boundary(cells, "the begin");
    const std::int32_t end = boundary(cells, "the end");
    const std::string_view name = cells.rest("the node's name");
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) {
      return cells.refuse(name, fmt::format("the step has no node '{}'", name));
    }
    const NodeId node = found->second;
    const StepRange range{begin, end};
    if (!range.contains(node.value)) {
      return cells.refuse(name,
                          fmt::format("a window from {} to {} does not contain step {} of its "
                                      "node",
                                      begin, end, node.value));
    }
    PlannedNode& planned = plan_.nodes[node.index()];
    if (!is_known(planned.processor)) return;  // its row has said so
    if (plan_.machine.processor(planned.processor).kind != ProcessorKind::cpu) {
      return cells.refuse(name, fmt::format("node '{}' is not on the CPU", name));
    }
    if (node <= last_window_) {
      return cells.refuse(name, fmt::format("node '{}' is there twice or out of order", name));
    }
    last_window_ = node;
    if (cells.good() && range != StepRange::single(node.value)) planned.window = range;
  }

  /// A processor has the seconds of all nodes, in the step's order, or of none.
  void read_seconds() {
    for (const Row& row : rows_[seconds_table]) seconds(row);
    if (rows_[seconds_table].empty() || !mistakes_.none()) return;
    const Row& last = rows_[seconds_table].back();
    for (const Processor& processor : plan_.machine.processors) {
      const std::size_t there = processor.node_seconds.size();
      if (there == 0 || there == plan_.nodes.size()) continue;
      mistakes_.add(last, fmt::format("'{}' has the seconds of {} nodes of {}", processor.name,
                                      there, plan_.nodes.size()));
    }
  }

  void seconds(const Row& row) {
    Cells cells(mistakes_, row);
    const auto id = named<ProcessorId>(cells, "processor", plan_.machine.processors);
    const double seconds = cells.real("the seconds", 0);
    const std::string_view name = cells.rest("the node's name");
    if (!cells.good()) return;
    if (plan_.machine.measured_on.empty()) {
      return cells.refuse(name, "the plan's machine does not say where this was measured_on");
    }
    std::vector<double>& of = plan_.machine.processors[id.index()].node_seconds;
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) {
      return cells.refuse(name, fmt::format("the step has no node '{}'", name));
    }
    if (found->second.index() != of.size()) {
      return cells.refuse(name, fmt::format("node '{}' is out of the step's order", name));
    }
    of.push_back(seconds);
  }

  [[nodiscard]] bool is_known(ProcessorId id) const {
    return id.valid() && id.index() < plan_.machine.processors.size();
  }

  StorageId storage_named(Cells& cells) {
    const std::string_view name = cells.rest("the storage's name");
    const auto found = storages_.find(name);
    if (found != storages_.end()) return found->second;
    cells.refuse(name, fmt::format("the step has no storage '{}'", name));
    return {};
  }

  std::int32_t boundary(Cells& cells, std::string_view what) {
    return static_cast<std::int32_t>(cells.number(what, 0, std::min(steps_, most_steps)));
  }

  void residence(const Row& row) {
    Cells cells(mistakes_, row);
    const auto memory = named<MemoryId>(cells, "memory", plan_.machine.memories);
    const std::int32_t begin = boundary(cells, "the begin");
    const std::int32_t end = boundary(cells, "the end");
    if (begin >= end) cells.refuse("?", fmt::format("a residence from {} to {}", begin, end));
    const Bytes offset(cells.number("the offset", 0, most_plan_bytes));
    const StorageId storage = storage_named(cells);
    if (cells.good()) plan_.in(memory).push_back({storage, {begin, end}, offset});
  }

  void transfer(const Row& row) {
    Cells cells(mistakes_, row);
    const auto link = named<LinkId>(cells, "link", plan_.machine.links);
    const std::int32_t begin = boundary(cells, "the begin");
    const std::int32_t end = boundary(cells, "the end");
    if (begin > end) cells.refuse("?", fmt::format("a transfer from {} to {}", begin, end));
    const StorageId storage = storage_named(cells);
    plan_.transfers.push_back({storage, link, begin, end});
  }

  void read_pins() {
    if (plan_.pins.reasons.empty() && rows_[pins_table].empty()) return;
    plan_.pins.nodes.resize(plan_.step.graph->nodes.size());
    plan_.pins.storages.resize(plan_.step.graph->storages.size());
    for (const Row& row : rows_[pins_table]) pin(row);
  }

  void pin(const Row& row) {
    Cells cells(mistakes_, row);
    const std::string_view device = cells.word();
    if (device != "cpu" && device != "gpu") {
      return cells.refuse(device, fmt::format("a pin is to cpu or gpu, not '{}'", device));
    }
    const std::int64_t most = std::ssize(plan_.pins.reasons) - 1;
    if (most < 0) return cells.refuse(device, "the plan's head has no 'pins'");
    AppliedPin applied{device == "cpu" ? Pin::cpu : Pin::gpu, 0};
    applied.reason = static_cast<std::int32_t>(cells.number("the pin's reason", 0, most));
    const std::string_view kind = cells.word();
    AppliedPin* pinned = nullptr;
    if (kind == "node") {
      const std::string_view name = cells.rest("the node's name");
      const auto found = nodes_.find(name);
      if (found == nodes_.end()) {
        return cells.refuse(name, fmt::format("the step has no node '{}'", name));
      }
      pinned = &plan_.pins.nodes[found->second.index()];
    } else if (kind == "storage") {
      const StorageId storage = storage_named(cells);
      if (!cells.good()) return;
      pinned = &plan_.pins.storages[storage.index()];
    } else {
      return cells.refuse(kind, fmt::format("a pin is of a node or a storage, not '{}'", kind));
    }
    if (pinned->pin != Pin::free) return cells.refuse("?", "this is pinned twice");
    if (cells.good()) *pinned = applied;
  }

  SourceTextPtr source_;
  Plan plan_;
  TableMistakes mistakes_;
  std::array<std::vector<Row>, table_count> rows_;
  bool has_certificate_ = false;
  std::int64_t steps_;
  NodeId last_node_, last_window_;
  // By name, looked up and never walked.
  std::unordered_map<std::string_view, StorageId> storages_;
  std::unordered_map<std::string_view, NodeId> nodes_;
};

/// A part of a text as a text of its own, whose lines keep their numbers.
SourceTextPtr with_line_numbers(const SourceText& source, std::size_t begin, int line) {
  std::string text(static_cast<std::size_t>(line - 1), '\n');
  text.append(source.text, begin);
  return std::make_shared<const SourceText>(SourceText{source.name, std::move(text)});
}

/// Reads the step of the third document, at the batch that the head gives.
Result<void> set_step(PlanHeader& header, const SourceTextPtr& source, SourceTextPtr step_text) {
  auto document = read_step(std::move(step_text));
  if (!document) return tl::unexpected(std::move(document.error()));
  const int micro_batches = document->graph->settings.micro_batches;
  const std::optional<std::int64_t> batch = micro_batch_of(header.batch, micro_batches);
  const auto refuse = [&](std::string message) {
    return failure({.message = std::move(message), .span = span_of(source, header.batch_mark)});
  };
  if (!batch) {
    return refuse(fmt::format("a batch of {} is not {} equal micro-batches", header.batch.samples,
                              micro_batches));
  }
  auto step = size_storages(document->graph, *batch);
  if (!step) return refuse(step.error().front().message);
  header.plan.document = *std::move(document);
  header.plan.step = *std::move(step);
  return {};
}

/// The end of a document and the begin of the next one.
struct DocumentEnd {
  std::size_t end = 0;   ///< of the document, past its last newline
  std::size_t next = 0;  ///< where the next one begins
  int line = 0;          ///< of `next`, from 1
};
std::optional<DocumentEnd> document_end_after(std::string_view text, std::size_t begin, int line) {
  constexpr std::string_view separator = "\n---\n";
  const std::size_t at = text.find(separator, begin);
  if (at == text.npos) return std::nullopt;
  const auto newlines =
      std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                 text.begin() + static_cast<std::ptrdiff_t>(at + separator.size()), '\n');
  return DocumentEnd{at + 1, at + separator.size(), line + static_cast<int>(newlines)};
}

}  // namespace

Result<Plan> read_plan(SourceTextPtr source) {
  if (source->text.size() > largest_plan) {
    return failure(
        {.message = fmt::format("this plan is larger than {}",
                                format_bytes(Bytes(static_cast<std::int64_t>(largest_plan)))),
         .span = {source, 1, 1, 1}});
  }
  const auto head = document_end_after(source->text, 0, 1);
  const auto head_text = std::make_shared<const SourceText>(
      SourceText{source->name, source->text.substr(0, head ? head->end : std::string::npos)});
  Result<PlanHeader> header = read_plan_header(head_text);
  if (!header) return tl::unexpected(std::move(header.error()));
  // A table may be empty, so that the second document may begin where the first one ends.
  const auto tables =
      head ? document_end_after(source->text, head->next - 1, head->line - 1) : std::nullopt;
  if (!tables) {
    const auto lines = std::count(source->text.begin(), source->text.end(), '\n');
    return failure(
        {.message = fmt::format("the plan ends before its {} ('---')", head ? "step" : "tables"),
         .span = {source, std::max(static_cast<int>(lines), 1), 1, 1}});
  }
  auto step = set_step(*header, source, with_line_numbers(*source, tables->next, tables->line));
  if (!step) return tl::unexpected(std::move(step.error()));
  return TableReader(source, std::move(header->plan)).run(head->next, tables->end, head->line);
}

}  // namespace stowage
