#include "estimator/adapt/checkpointed_blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "estimator/adapt/named_layers.hpp"
#include "estimator/model/layer_match.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/model/repeated_blocks.hpp"

namespace stowage {

namespace {

/// The shortest part of the path, from its start, that one of the patterns means; "": none.
std::string_view fitting_part(std::string_view path, const std::vector<std::string>& patterns) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    const std::string_view part = path.substr(0, end);
    for (const std::string& pattern : patterns) {
      if (is_target(part, pattern)) return part;
    }
    at = end + 1;
  }
  return {};
}

bool keeps(const Operator& op, KeptResults kept) {
  const std::string_view row = op.row->name;
  if (row == "scaled_dot_product_attention") return kept.attention;
  return kept.products && (is_linear(op) || row == "matmul");
}

class Blocks {
 public:
  explicit Blocks(ModelGraph& model) : model_(model) {}

  void clear() {
    for (Operator& op : model_.operators) {
      op.region = -1;
      op.keeps_result = false;
    }
  }

  /// The region of a block, which is made where there is none.
  int region(std::string_view block) {
    const auto [found, fresh] = regions_.emplace(block, static_cast<int>(regions_.size()));
    if (fresh) order_.emplace_back(block);
    return found->second;
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return order_; }

 private:
  ModelGraph& model_;
  std::map<std::string, int, std::less<>> regions_;
  std::vector<std::string> order_;
};

Result<void> choose_by_pattern(ModelGraph& model, const CheckpointSettings& checkpoint,
                               Blocks& blocks) {
  for (Operator& op : model.operators) {
    if (op.row->is_loss) continue;
    const std::string_view part = fitting_part(op.name, checkpoint.patterns);
    if (!part.empty()) op.region = blocks.region(part);
  }
  for (const std::string& pattern : checkpoint.patterns) {
    const bool any = std::any_of(blocks.names().begin(), blocks.names().end(),
                                 [&](const std::string& name) { return is_target(name, pattern); });
    if (!any) {
      return failure(
          fmt::format("no layer or block of '{}' fits '{}'", model.name, pattern.substr(0, 60)),
          "stowage summary lists the layers' paths; '*' stands for any characters");
    }
  }
  return {};
}

Result<void> choose_repeated(ModelGraph& model, const CheckpointSettings& checkpoint,
                             Blocks& blocks) {
  const auto chains = block_chains(model);
  if (chains.empty()) {
    return failure(fmt::format("'{}' has no repeated block to checkpoint", model.name),
                   "name layers or blocks by their paths: checkpoint layers=PATTERN");
  }
  std::map<std::string_view, bool> chosen;
  for (const auto& [name, chain] : chains) {
    for (std::size_t i = 0; i < chain.blocks.size(); ++i) {
      chosen[chain.blocks[i]] = i % static_cast<std::size_t>(checkpoint.every) == 0;
    }
  }
  for (Operator& op : model.operators) {
    if (op.row->is_loss) continue;
    const auto found = chosen.find(block_of(op.name));
    if (found != chosen.end() && found->second) op.region = blocks.region(found->first);
  }
  return {};
}

std::string checkpoint_note(const std::vector<std::string>& names) {
  if (names.size() == 1) return fmt::format("checkpointed: {}", names.front());
  return fmt::format("checkpointed: {} blocks, {} to {}", names.size(), names.front(),
                     names.back());
}

}  // namespace

Result<ModelGraph> with_checkpointed_blocks(ModelGraph model,
                                            const CheckpointSettings& checkpoint) {
  Blocks blocks(model);
  blocks.clear();
  auto chosen = checkpoint.patterns.empty() ? choose_repeated(model, checkpoint, blocks)
                                            : choose_by_pattern(model, checkpoint, blocks);
  if (!chosen) return tl::unexpected(std::move(chosen.error()));
  std::string text = checkpoint_note(blocks.names());
  std::size_t kept = 0;
  for (Operator& op : model.operators) {
    op.keeps_result = op.region >= 0 && keeps(op, checkpoint.kept);
    if (op.keeps_result) ++kept;
  }
  if (checkpoint.kept.attention || checkpoint.kept.products) {
    if (kept == 0) {
      return failure(fmt::format("the checkpointed blocks of '{}' have no {} to keep", model.name,
                                 checkpoint.kept.products ? "product" : "attention"));
    }
    text += fmt::format(", which keep the results of {} operators", kept);
  }
  model.warnings.push_back({.severity = Severity::note, .message = std::move(text)});
  return model;
}

}  // namespace stowage
