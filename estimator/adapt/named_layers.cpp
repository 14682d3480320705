#include "estimator/adapt/named_layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/model/layer_match.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_listed = 12;

Diagnostic no_such_layer(const ModelGraph& model, const std::string& name,
                         bool (*suits)(const Operator&), std::string_view what) {
  std::set<std::string_view> parts;
  for (const Operator& op : model.operators) {
    if (suits(op)) parts.insert(last_part(op.name));
  }
  const std::vector<std::string_view> candidates(parts.begin(), parts.end());
  std::string hint = did_you_mean(name, candidates);
  if (hint.empty() && candidates.empty()) hint = fmt::format("no layer of the model {}", what);
  if (hint.empty()) {
    const std::size_t shown = std::min(candidates.size(), most_listed);
    hint = fmt::format("what {}: {}{}", what,
                       fmt::join(candidates.begin(),
                                 candidates.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                       shown < candidates.size() ? ", ..." : "");
  }
  return {.message = fmt::format("no layer of '{}' is called '{}'", model.name,
                                 std::string_view(name).substr(0, 60)),
          .hint = std::move(hint)};
}

}  // namespace

bool is_linear(const Operator& op) { return op.row->is_linear; }

OperatorId output_layer(const ModelGraph& model) {
  TensorId tensor = model.output;
  while (tensor.valid()) {
    const OperatorId producer = model.tensor(tensor).producer;
    if (!producer.valid()) return {};
    const Operator& op = model.op(producer);
    if (is_linear(op)) return producer;
    const std::string_view row = op.row->name;
    if (row != "reshape" && row != "flatten" && row != "cast" && row != "identity" &&
        row != "slice" && row != "transpose") {
      return {};
    }
    tensor = op.inputs.front();
  }
  return {};
}

Result<std::vector<bool>> named_layers(const ModelGraph& model, std::span<const std::string> names,
                                       bool (*suits)(const Operator& op), std::string_view what) {
  std::vector<bool> meant(model.operators.size());
  Diagnostics mistakes;
  for (const std::string& name : names) {
    const Operator* unsuitable = nullptr;
    bool any = false;
    for (std::size_t i = 0; i < model.operators.size(); ++i) {
      const Operator& op = model.operators[i];
      if (!is_target(op.name, name)) continue;
      if (suits(op)) {
        meant[i] = any = true;
      } else if (unsuitable == nullptr) {
        unsuitable = &op;
      }
    }
    if (any) continue;
    if (unsuitable == nullptr) {
      mistakes.push_back(no_such_layer(model, name, suits, what));
    } else {
      mistakes.push_back({.message = fmt::format("'{}' is {}, which is none that {}",
                                                 unsuitable->name, unsuitable->row->name, what),
                          .span = unsuitable->span});
    }
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return meant;
}

}  // namespace stowage
