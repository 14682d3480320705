// The tables of a plan file are read by hand: as YAML they are five literal blocks, since a general
// reader would spend most of a plan's loading time on their rows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "planner/plan/plan_file.hpp"
#include "planner/plan/plan_header.hpp"

namespace stowage {
namespace {

constexpr std::size_t largest_plan = std::size_t{1} << 30;
constexpr std::size_t most_errors = 20;
constexpr std::int64_t most_bytes = std::int64_t{1} << 62;
constexpr std::int64_t most_steps = std::numeric_limits<std::int32_t>::max() - 1;

struct Row {
  int line = 0;
  std::string_view text;  ///< without its indentation
};

enum Table { storages_table, nodes_table, gpu_table, host_table, transfers_table, table_count };
constexpr std::array<std::string_view, table_count> table_names{"storages", "nodes", "gpu", "host",
                                                                "transfers"};
constexpr int indentation = 2;

class TableReader {
 public:
  TableReader(SourceTextPtr source, Plan plan)
      : source_(std::move(source)), plan_(std::move(plan)) {}

  Result<Plan> run(std::size_t begin, int first_line) {
    collect_rows(begin, first_line);
    if (errors_.empty()) {
      for (const Row& row : rows_[storages_table]) storage(row);
      for (const Row& row : rows_[nodes_table]) node(row);
      steps_ = static_cast<std::int64_t>(plan_.nodes.size());
      for (const Row& row : rows_[gpu_table]) residence(row, plan_.gpu);
      for (const Row& row : rows_[host_table]) residence(row, plan_.host);
      for (const Row& row : rows_[transfers_table]) transfer(row);
    }
    if (!errors_.empty()) return tl::unexpected(std::move(errors_));
    return std::move(plan_);
  }

 private:
  void error(int line, int column, std::size_t length, std::string message) {
    if (errors_.size() >= most_errors) return;
    const int shown =
        static_cast<int>(std::min<std::size_t>(std::max<std::size_t>(length, 1), 200));
    errors_.push_back({.message = std::move(message), .span = {source_, line, column, shown}});
  }

  void collect_rows(std::size_t begin, int line) {
    const std::string_view text = source_->text;
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
        error(line, 1, row.size(), "expected a table: storages, nodes, gpu, host or transfers");
      }
    }
    for (std::size_t i = 0; i < table_count; ++i) {
      if (!seen[i]) error(line, 1, 1, fmt::format("the plan lacks the table '{}'", table_names[i]));
    }
  }

  /// Cells of one row, from left to right. After the first mistake the row yields nothing more.
  class Cells {
   public:
    Cells(TableReader& reader, const Row& row) : reader_(reader), row_(row) {}

    [[nodiscard]] bool good() const { return good_; }

    std::string_view word() {
      const std::size_t end = std::min(row_.text.find(' ', at_), row_.text.size());
      begin_ = at_;
      at_ = std::min(end + 1, row_.text.size());
      return row_.text.substr(begin_, end - begin_);
    }

    std::int64_t number(std::string_view what, std::int64_t least, std::int64_t most) {
      const std::string_view text = word();
      std::int64_t value = 0;
      const auto [stopped, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (failed != std::errc() || stopped != text.data() + text.size() || text.empty()) {
        refuse(text, fmt::format("{} must be an integer, not '{}'", what, text));
      } else if (value < least || value > most) {
        refuse(text, fmt::format("{} must be from {} to {}", what, least, most));
      }
      return value;
    }

    std::string_view rest(std::string_view what) {
      begin_ = at_;
      const std::string_view text = row_.text.substr(at_);
      if (text.empty()) refuse(text, fmt::format("{} is missing", what));
      at_ = row_.text.size();
      return text;
    }

    /// About the cell read last.
    void refuse(std::string_view cell, std::string message) {
      if (!good_) return;
      good_ = false;
      reader_.error(row_.line, static_cast<int>(begin_) + indentation + 1, cell.size(),
                    std::move(message));
    }

   private:
    TableReader& reader_;
    const Row& row_;
    std::size_t begin_ = 0, at_ = 0;
    bool good_ = true;
  };

  void storage(const Row& row) {
    Cells cells(*this, row);
    const std::string_view class_name = cells.word();
    PlannedStorage storage;
    bool known = false;
    for (int i = 0; i < storage_class_count; ++i) {
      const auto candidate = static_cast<StorageClass>(i);
      if (to_string(candidate) != class_name) continue;
      storage.storage_class = candidate;
      known = true;
    }
    if (!known) cells.refuse(class_name, fmt::format("unknown class '{}'", class_name));
    storage.bytes = Bytes(cells.number("the bytes", 0, most_bytes));
    const std::string_view name = cells.rest("the storage's name");
    storage.name = name;
    const auto id = StorageId::of(plan_.storages.size());
    if (!ids_.emplace(name, id).second) {
      cells.refuse(name, fmt::format("storage '{}' is there twice", name));
    }
    plan_.storages.push_back(std::move(storage));
  }

  void node(const Row& row) {
    Cells cells(*this, row);
    const std::string_view device = cells.word();
    if (device != "gpu" && device != "cpu") {
      cells.refuse(device, fmt::format("the device must be gpu or cpu, not '{}'", device));
    }
    PlannedNode node;
    node.device = device == "cpu" ? Device::cpu : Device::gpu;
    node.workspace = Bytes(cells.number("the workspace", 0, most_bytes));
    node.workspace_offset = Bytes(cells.number("the workspace's offset", 0, most_bytes));
    const std::string_view name = cells.rest("the node's name");
    const std::size_t bar = name.rfind(" | ");
    node.name = name.substr(0, bar);
    if (bar != name.npos) node.engine = name.substr(bar + 3);
    plan_.nodes.push_back(std::move(node));
  }

  StorageId storage_named(Cells& cells) {
    const std::string_view name = cells.rest("the storage's name");
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    cells.refuse(name, fmt::format("there is no storage '{}'", name));
    return {};
  }

  void residence(const Row& row, std::vector<Residence>& residences) {
    Cells cells(*this, row);
    const std::int64_t begin = cells.number("the begin", 0, std::min(steps_, most_steps));
    const std::int64_t end = cells.number("the end", 0, std::min(steps_, most_steps));
    if (begin >= end) cells.refuse("?", fmt::format("a residence from {} to {}", begin, end));
    const Bytes offset(cells.number("the offset", 0, most_bytes));
    const StorageId storage = storage_named(cells);
    residences.push_back(
        {storage, {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)}, offset});
  }

  void transfer(const Row& row) {
    Cells cells(*this, row);
    const std::string_view direction = cells.word();
    if (direction != "h2d" && direction != "d2h") {
      cells.refuse(direction, fmt::format("the direction must be h2d or d2h, not '{}'", direction));
    }
    const std::int64_t begin = cells.number("the begin", 0, std::min(steps_, most_steps));
    const std::int64_t end = cells.number("the end", 0, std::min(steps_, most_steps));
    if (begin > end) cells.refuse("?", fmt::format("a transfer from {} to {}", begin, end));
    const StorageId storage = storage_named(cells);
    plan_.transfers.push_back({storage, direction == "d2h" ? Direction::d2h : Direction::h2d,
                               static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
  }

  SourceTextPtr source_;
  Plan plan_;
  Diagnostics errors_;
  std::array<std::vector<Row>, table_count> rows_;
  std::unordered_map<std::string_view, StorageId> ids_;  // by name: looked up, never walked
  std::int64_t steps_ = 0;
};

}  // namespace

Result<Plan> read_plan(SourceTextPtr source) {
  if (source->text.size() > largest_plan) {
    return failure({.message = "this plan is larger than 1 GiB", .span = {source, 1, 1, 1}});
  }
  constexpr std::string_view separator = "\n---\n";
  const std::size_t cut = source->text.find(separator);
  const std::size_t header_size = cut == std::string::npos ? source->text.size() : cut + 1;
  const auto header = std::make_shared<const SourceText>(
      SourceText{source->name, source->text.substr(0, header_size)});
  Result<Plan> plan = read_plan_header(header);
  if (!plan) return plan;
  const auto lines = std::count(header->text.begin(), header->text.end(), '\n');
  if (cut == std::string::npos) {
    return failure({.message = "the plan ends before its tables ('---')",
                    .span = {source, static_cast<int>(lines), 1, 1}});
  }
  return TableReader(source, std::move(*plan))
      .run(cut + separator.size(), static_cast<int>(lines) + 2);
}

}  // namespace stowage
