#include "tests/planner/validate/plan_mutations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace stowage::test {
namespace {

/// How a value is changed, and what it becomes.
using Changes = std::vector<std::pair<std::string, std::string>>;

/// Words that are replaced by one another.
constexpr std::array<std::array<std::string_view, 3>, 5> word_groups{{
    {"true", "false", "true"},
    {"nothing", "computation", "all nodes"},
    {"gpu", "pinned", "pageable"},
    {"device", "pinned", "pageable"},
    {"cpu", "gpu", "cpu"},
}};

std::optional<double> number_in(const std::string& value) {
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [stopped, failed] = std::from_chars(value.data(), end, number);
  if (failed != std::errc() || stopped != end) return std::nullopt;
  return number;
}

Changes changes_of(const std::string& value) {
  Changes changes;
  if (const auto number = number_in(value)) {
    const bool integer = value.find_first_of(".e") == value.npos;
    if (integer) {
      changes.emplace_back("+1", fmt::format("{:.0f}", *number + 1));
      if (*number > 0) changes.emplace_back("-1", fmt::format("{:.0f}", *number - 1));
    }
    changes.emplace_back("times 1.5", integer ? fmt::format("{:.0f}", *number * 1.5 + 1)
                                              : fmt::format("{}", *number * 1.5 + 1e-9));
    changes.emplace_back("2^60", "1152921504606846976");
    if (*number != 0) {
      changes.emplace_back("negative", "-" + value);
      changes.emplace_back("0", "0");
    }
    return changes;
  }
  if (value.size() >= 2 && value.front() == '"') {
    changes.emplace_back("other", value.substr(0, value.size() - 1) + "x\"");
    changes.emplace_back("empty", "\"\"");
    return changes;
  }
  for (const auto& group : word_groups) {
    if (std::find(group.begin(), group.end(), value) == group.end()) continue;
    for (const std::string_view other : group) {
      if (other != value) changes.emplace_back(std::string(other), std::string(other));
    }
  }
  changes.emplace_back("other", value + "x");
  return changes;
}

class Mutator {
 public:
  Mutator(const std::string& plan, const std::function<void(const Mutant&)>& visit)
      : visit_(visit) {
    std::istringstream stream(plan);
    for (std::string line; std::getline(stream, line);) lines_.push_back(line);
  }

  void run() {
    std::size_t i = 0;
    for (; lines_[i] != "---"; ++i) head(i);
    for (++i; lines_[i] != "---"; ++i) row(i);
    for (++i; i < lines_.size(); ++i) step(i);
  }

 private:
  void emit(const std::string& kind, const std::string& where,
            const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + '\n';
    visit_({kind, where, std::move(text)});
  }

  void replace(std::size_t i, const std::string& kind, const std::string& line) {
    std::vector<std::string> lines = lines_;
    lines[i] = line;
    emit(kind, fmt::format("{} -> {}", lines_[i], line), lines);
  }

  void remove(std::size_t i, const std::string& kind) {
    std::vector<std::string> lines = lines_;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    emit(kind, "without " + lines_[i], lines);
  }

  void repeat(std::size_t i, const std::string& kind) {
    std::vector<std::string> lines = lines_;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i), lines_[i]);
    emit(kind, "twice " + lines_[i], lines);
  }

  /// A line of the head: "key: value", "key:", "- item", "-", or one of a literal block.
  void head(std::size_t i) {
    const std::string& line = lines_[i];
    const std::size_t indentation = line.find_first_not_of(' ');
    if (indentation == line.npos || line[indentation] == '#') return;
    if (block_indentation_ && indentation > *block_indentation_) return block(i);
    block_indentation_.reset();
    while (!path_.empty() && path_.back().first >= indentation) path_.pop_back();
    const std::size_t colon = line.find(": ", indentation);
    if (line[indentation] == '-') {
      if (line.size() > indentation + 2) replace(i, path("[]") + " other", line + "x");
      return;
    }
    if (colon == line.npos) {
      path_.emplace_back(indentation, line.substr(indentation, line.size() - indentation - 1));
      return;
    }
    const std::string key = line.substr(indentation, colon - indentation);
    const std::string value = line.substr(colon + 2);
    if (value.starts_with("|")) {
      block_indentation_ = indentation;
      block_key_ = path(key);
      block_is_changed_ = false;
      return;
    }
    for (const auto& [how, changed] : changes_of(value)) {
      replace(i, path(key) + " " + how, line.substr(0, colon + 2) + changed);
    }
    remove(i, path(key) + " removed");
    repeat(i, path(key) + " twice");
  }

  void block(std::size_t i) {
    if (std::exchange(block_is_changed_, true)) return;
    replace(i, block_key_ + " other", lines_[i] + "x");
  }

  [[nodiscard]] std::string path(const std::string& key) const {
    std::string result;
    for (const auto& [indentation, name] : path_) result += name + ".";
    return result + key;
  }

  /// A row of a table, or a table's first lines.
  void row(std::size_t i) {
    const std::string& line = lines_[i];
    if (!line.starts_with("  ")) {
      table_ = line.substr(0, line.find(':'));
      remove(i, table_ + " removed");
      return;
    }
    if (line.starts_with("  #")) {
      if (table_ == "certificate") return;  // each kind of row has its own columns
      std::istringstream names(line.substr(4));
      columns_.clear();
      for (std::string name; names >> name && name != "|";) columns_.push_back(name);
      return;
    }
    if (table_ == "certificate") return certificate_row(i);
    std::size_t begin = 2;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const bool last = column + 1 == columns_.size();
      std::size_t end = last ? line.size() : line.find(' ', begin);
      if (last && line.find(" | ") != line.npos) end = line.find(" | ");
      cell(i, begin, end, columns_[column]);
      begin = end + 1;
    }
    if (const std::size_t bar = line.find(" | "); bar != line.npos) {
      replace(i, table_ + ".engine foreign", line.substr(0, bar) + " | cudnn 9.99.9 eng0");
      replace(i, table_ + ".engine other", line + "x");
      replace(i, table_ + ".engine removed", line.substr(0, bar));
    } else if (table_ == "nodes") {
      replace(i, table_ + ".engine added", line + " | rule");
    }
    move_row(i, table_);
  }

  void move_row(std::size_t i, const std::string& kind) {
    remove(i, kind + " row removed");
    repeat(i, kind + " row twice");
    if (lines_[i + 1].starts_with("  ")) {
      std::vector<std::string> lines = lines_;
      std::swap(lines[i], lines[i + 1]);
      emit(kind + " rows swapped", lines_[i] + " <-> " + lines_[i + 1], lines);
    }
  }

  /// "price 12 3.5e-10": what kind of row it is, and its cells.
  void certificate_row(std::size_t i) {
    static const std::map<std::string, std::vector<std::string>> columns{
        {"workspace", {"bytes", "node"}},
        {"bound", {"kind", "scope", "scope", "scope", "scope", "scope"}},
        {"weights", {"gpu", "cpu", "uploads", "downloads"}},
        {"beside", {"downloads", "uploads", "cpu", "node"}},
        {"round", {"step", "divisor", "storages"}},
        {"gap", {"after", "storage"}},
        {"node", {"node"}},
        {"leaf", {}},
        {"price", {"step", "price"}},
        {"limit", {"number", "price"}}};
    const std::string& line = lines_[i];
    std::istringstream words(line);
    std::string kind, value;
    words >> kind;
    const std::string path = "certificate." + kind;
    std::size_t begin = 2 + kind.size() + 1;
    for (const std::string& column : columns.at(kind)) {
      if (begin >= line.size()) break;
      const bool last = column == "node" || column == "storage";
      const std::size_t end = last ? line.size() : std::min(line.find(' ', begin), line.size());
      value = line.substr(begin, end - begin);
      const auto put = [&](const std::string& how, const std::string& changed) {
        replace(i, fmt::format("{}.{} {}", path, column, how),
                line.substr(0, begin) + changed + line.substr(end));
      };
      if (column == "scope") put("removed", "");
      if (column == "storages") {
        put("none", "-");
        put("but the first", value.substr(std::min(value.find(',') + 1, value.size() - 1)));
      }
      if (column == "price") {
        put("less by a tenth", fmt::format("{}", 0.9 * std::stod(value)));
        put("more by a tenth", fmt::format("{}", 1.1 * std::stod(value)));
      }
      for (const auto& [how, changed] : changes_of(value)) put(how, changed);
      begin = end + 1;
    }
    if (kind == "bound") {
      for (const char* word : {"computation", "updates", "activations", "weights", "state"}) {
        if (line.find(word) == line.npos) {
          replace(i, path + " of " + word + " as well", line + " " + word);
        }
      }
    }
    move_row(i, path);
  }

  void cell(std::size_t i, std::size_t begin, std::size_t end, const std::string& column) {
    const std::string& line = lines_[i];
    const std::string value = line.substr(begin, end - begin);
    const auto put = [&](const std::string& how, const std::string& changed) {
      replace(i, table_ + "." + column + " " + how,
              line.substr(0, begin) + changed + line.substr(end));
    };
    if (column == "storage" || column == "node") {
      const std::string& before = lines_[i - 1];
      const std::size_t at = before.rfind(' ');
      const std::string neighbour = before.substr(at + 1);
      if (before.starts_with("  #") || neighbour == value) return;
      return put("its neighbour's", neighbour);
    }
    if (column == "link") return put("the other", value == "h2d" ? "d2h" : "h2d");
    if (column == "offset" || column == "workspace_offset") {
      put("256 up", fmt::format("{}", std::stoll(value) + 256));
    }
    for (const auto& [how, changed] : changes_of(value)) put(how, changed);
  }

  /// Some numbers and texts of a line of the step's file.
  void step(std::size_t i) {
    const std::string& line = lines_[i];
    if (line.starts_with("\"")) step_part_ = "step." + line.substr(1, line.find('"', 1) - 1);
    for (std::size_t at = 0; at < line.size(); ++at) {
      const bool digit = line[at] >= '0' && line[at] <= '9';
      const bool starts = at > 0 && (line[at - 1] == ',' || line[at - 1] == '[' ||
                                     line[at - 1] == ' ' || line[at - 1] == ':');
      if (digit && starts && step_places_++ % stride == 0) {
        replace(i, step_part_ + " number", line.substr(0, at) + "1" + line.substr(at));
      }
      if (line[at] == '"' && starts && step_places_++ % stride == 0) {
        replace(i, step_part_ + " text", line.substr(0, at + 1) + "x" + line.substr(at + 1));
      }
    }
  }

  static constexpr int stride = 7;  // of the places in the step's file

  const std::function<void(const Mutant&)>& visit_;
  std::vector<std::string> lines_;
  std::vector<std::pair<std::size_t, std::string>> path_;  // of the head: indentation, key
  std::optional<std::size_t> block_indentation_;
  std::string block_key_;
  bool block_is_changed_ = false;
  std::string table_;
  std::vector<std::string> columns_;
  std::string step_part_;  // of the step's file: its last member
  int step_places_ = 0;
};

}  // namespace

void visit_mutants(const std::string& plan, const std::function<void(const Mutant&)>& visit) {
  Mutator(plan, visit).run();
}

}  // namespace stowage::test
