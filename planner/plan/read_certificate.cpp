#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "estimator/arena/arena.hpp"
#include "estimator/base/quantity.hpp"
#include "planner/plan/certificate_table.hpp"
#include "planner/plan/scope_words.hpp"
#include "planner/plan/section.hpp"

namespace stowage {
namespace {

constexpr std::int64_t most_number = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t largest_divisor = std::int64_t{1} << 61;
constexpr double least_price = std::numeric_limits<double>::min();

class CertificateReader {
 public:
  CertificateReader(const StepGraph& step, TableMistakes& mistakes)
      : step_(step), mistakes_(mistakes) {
    for (std::size_t i = 0; i < step.nodes.size(); ++i) {
      nodes_.emplace(step.nodes[i].name, static_cast<std::int32_t>(i));
    }
    for (std::size_t i = 0; i < step.storages.size(); ++i) {
      storages_.emplace(step.storages[i].name, static_cast<std::int32_t>(i));
    }
  }

  Certificate run(const std::vector<TableLine>& rows) {
    for (const TableLine& row : rows) read(row);
    finish_tree();
    return std::move(certificate_);
  }

 private:
  using Read = void (CertificateReader::*)(TableCells&);
  struct Kind {
    std::string_view word;
    Read read;
  };

  void read(const TableLine& row) {
    static constexpr std::array<Kind, 11> kinds{{{"granule", &CertificateReader::granule},
                                                 {"workspace", &CertificateReader::workspace},
                                                 {"bound", &CertificateReader::bound},
                                                 {"weights", &CertificateReader::weights},
                                                 {"beside", &CertificateReader::beside},
                                                 {"round", &CertificateReader::round},
                                                 {"gap", &CertificateReader::gap},
                                                 {"node", &CertificateReader::node},
                                                 {"leaf", &CertificateReader::leaf},
                                                 {"price", &CertificateReader::price},
                                                 {"limit", &CertificateReader::limit}}};
    row_ = row;
    TableCells cells(mistakes_, row_);
    const std::string_view word = cells.word();
    const auto kind = std::ranges::find(kinds, word, &Kind::word);
    if (kind == kinds.end()) {
      return cells.refuse(word, fmt::format("a certificate has no rows '{}'", word));
    }
    (this->*kind->read)(cells);
  }

  std::int32_t step_number(TableCells& cells) {
    return static_cast<std::int32_t>(cells.number("the step", 0, std::ssize(step_.nodes) - 1));
  }
  std::int32_t named(TableCells& cells, std::string_view kind,
                     const std::unordered_map<std::string_view, std::int32_t>& rows) {
    const std::string_view name = cells.rest(fmt::format("the {}'s name", kind));
    const auto found = rows.find(name);
    if (found != rows.end()) return found->second;
    cells.refuse(name, fmt::format("the step has no {} '{}'", kind, name));
    return 0;
  }

  void granule(TableCells& cells) {
    const std::int64_t bytes = cells.number("the granule", 2, arena_alignment.count());
    if (arena_alignment.count() % bytes != 0 || certificate_.granule > Bytes(1)) {
      return cells.refuse("?", "a granule divides the arena's, and is given once");
    }
    certificate_.granule = Bytes(bytes);
    cells.end();
  }

  void workspace(TableCells& cells) {
    NodeWorkspace row;
    row.least = Bytes(cells.number("the workspace", 1, most_plan_bytes));
    row.node = named(cells, "node", nodes_);
    auto& rows = certificate_.workspaces;
    if (!rows.empty() && row.node <= rows.back().node) {
      return cells.refuse("?", "this node is there twice or out of order");
    }
    rows.push_back(row);
  }

  void bound(TableCells& cells) {
    finish_tree();
    tree_ = nullptr;
    prices_ = nullptr;
    const std::string_view kind = cells.word();
    const std::optional<BoundScope> scope = scope_of(cells);
    if (!scope) return;
    const bool is_step = kind == "lanes" || kind == "split";
    std::optional<TreeProof>* of = kind == "cost"        ? &certificate_.cost
                                   : kind == "transfers" ? &certificate_.transfers
                                                         : nullptr;
    if (of == nullptr && !is_step) {
      return cells.refuse("?", fmt::format("'{}' is none of the bounds cost, transfers, lanes, "
                                           "split",
                                           kind));
    }
    if (is_step ? certificate_.step.index() != 0 : of->has_value()) {
      return cells.refuse("?",
                          fmt::format("there are two bounds '{}'", is_step ? "of the step" : kind));
    }
    if (of != nullptr) {
      tree_ = &of->emplace(TreeProof{*scope, {}}).tree;
      missing_ = 1;
      begun_at_ = row_;
    } else if (kind == "lanes") {
      prices_ = &certificate_.step.emplace<LaneProof>(LaneProof{.scope = *scope}).prices;
    } else {
      certificate_.step.emplace<SplitProof>(SplitProof{.scope = *scope});
    }
  }

  std::optional<BoundScope> scope_of(TableCells& cells) {
    BoundScope scope;
    while (!cells.at_end()) {
      const std::string_view word = cells.word();
      const auto found = std::ranges::find(scope_words, word, &ScopeWord::word);
      if (found == scope_words.end() || scope.*found->flag) {
        cells.refuse(word, fmt::format("'{}' is no further word of a bound's scope", word));
        return std::nullopt;
      }
      scope.*found->flag = true;
    }
    return scope;
  }

  void weights(TableCells& cells) {
    LaneProof* lanes = std::get_if<LaneProof>(&certificate_.step);
    if (lanes == nullptr || prices_ != &lanes->prices) return misplaced(cells, "'bound lanes'");
    if (!begins_step(cells)) return;
    for (double* weight : {&lanes->gpu, &lanes->cpu, &lanes->uploads, &lanes->downloads}) {
      *weight = cells.real("the weight", 0);
    }
    cells.end();
  }

  void beside(TableCells& cells) {
    SplitProof* split = std::get_if<SplitProof>(&certificate_.step);
    if (split == nullptr) return misplaced(cells, "'bound split'");
    if (!begins_step(cells)) return;
    split->downloads = cells.real("the weight", 0);
    split->uploads = cells.real("the weight", 0);
    split->cpu = cells.real("the weight", 0);
    split->node = named(cells, "node", nodes_);
  }

  bool begins_step(TableCells& cells) {
    if (has_weights_) cells.refuse("?", "the bound of the step has its weights already");
    return !std::exchange(has_weights_, true);
  }

  void round(TableCells& cells) {
    if (!takes_branch(cells)) return;
    RoundedLimit rounded;
    rounded.step = step_number(cells);
    rounded.divisor = cells.number("the divisor", 1, largest_divisor);
    const std::string_view list = cells.word();
    if (cells.good() && list != "-") {
      std::int64_t least = 0;
      for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        const std::string_view part = list.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t dash = part.find('-');
        const auto first = parse_number<std::int64_t>(part.substr(0, dash));
        const auto last =
            dash == part.npos ? first : parse_number<std::int64_t>(part.substr(dash + 1));
        if (!first || !last || *first < least || *last < *first ||
            *last >= std::ssize(step_.storages)) {
          return cells.refuse(part, fmt::format("'{}' is no further range of storages", part));
        }
        rounded.counted.push_back(
            {static_cast<std::int32_t>(*first), static_cast<std::int32_t>(*last)});
        least = *last + 1;
      }
    }
    cells.end();
    if (cells.good()) rounded_.push_back(std::move(rounded));
  }

  void gap(TableCells& cells) {
    if (!takes_branch(cells)) return;
    Fixing fixing;
    fixing.after = step_number(cells);
    fixing.subject = named(cells, "storage", storages_);
    add_branch(cells, fixing);
    ++missing_;
  }

  void node(TableCells& cells) {
    if (!takes_branch(cells)) return;
    add_branch(cells, Fixing{.subject = named(cells, "node", nodes_)});
    ++missing_;
  }

  void leaf(TableCells& cells) {
    if (!takes_branch(cells)) return;
    cells.end();
    add_branch(cells, BranchLeaf{});
    --missing_;
    if (cells.good()) leaf_ = tree_->size() - 1;
  }

  void price(TableCells& cells) {
    std::vector<MemoryPrice>* prices = prices_;
    if (BranchLeaf* leaf = open_leaf()) prices = &leaf->steps;
    if (prices == nullptr) return misplaced(cells, "a leaf or 'bound lanes'");
    MemoryPrice row;
    row.step = step_number(cells);
    row.price = cells.real("the price", least_price);
    cells.end();
    prices->push_back(row);
  }

  void limit(TableCells& cells) {
    BranchLeaf* leaf = open_leaf();
    if (leaf == nullptr) return misplaced(cells, "a leaf");
    LimitPrice row;
    row.limit = static_cast<std::int32_t>(cells.number("the rounded limit", 0, most_number));
    row.price = cells.real("the price", least_price);
    cells.end();
    leaf->limits.push_back(row);
  }

  void misplaced(TableCells& cells, std::string_view place) {
    cells.refuse("?", fmt::format("such a row belongs to {}", place));
  }

  BranchLeaf* open_leaf() {
    if (tree_ == nullptr || !leaf_) return nullptr;
    return std::get_if<BranchLeaf>(&(*tree_)[*leaf_].content);
  }

  bool takes_branch(TableCells& cells) {
    if (tree_ == nullptr) {
      misplaced(cells, "'bound cost' or 'bound transfers'");
    } else if (missing_ == 0) {
      cells.refuse("?", "the branches before this row cover every plan");
    }
    return tree_ != nullptr && missing_ > 0;
  }

  template <typename Content>
  void add_branch(TableCells& cells, Content content) {
    leaf_.reset();
    if (cells.good()) tree_->push_back({std::exchange(rounded_, {}), std::move(content)});
  }

  void finish_tree() {
    if (tree_ == nullptr) return;
    if (missing_ > 0 && mistakes_.none()) {
      mistakes_.add(begun_at_, fmt::format("{} branches of this bound are missing", missing_));
    }
    if (!rounded_.empty() && mistakes_.none()) {
      mistakes_.add(begun_at_, "a rounded limit of this bound belongs to no branch");
    }
    leaf_.reset();
    rounded_.clear();
  }

  const StepGraph& step_;
  TableMistakes& mistakes_;
  std::unordered_map<std::string_view, std::int32_t> nodes_, storages_;  // looked up only
  Certificate certificate_;
  TableLine row_;
  TableLine begun_at_;                          // of the tree at hand
  BranchTree* tree_ = nullptr;                  // of the bound at hand, if it is a sum
  std::vector<MemoryPrice>* prices_ = nullptr;  // of lanes
  bool has_weights_ = false;                    // the bound of the step
  std::size_t missing_ = 0;                     // trees that have yet to begin
  std::optional<std::size_t> leaf_;             // whose prices are being read
  std::vector<RoundedLimit> rounded_;           // of the branch that comes next
};

}  // namespace

Certificate read_certificate(const std::vector<TableLine>& rows, const StepGraph& step,
                             TableMistakes& mistakes) {
  return CertificateReader(step, mistakes).run(rows);
}

}  // namespace stowage
