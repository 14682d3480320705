#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "estimator/model/build_model.hpp"

namespace stowage {

namespace {

class ParameterRenaming {
 public:
  ParameterRenaming(ModelGraph& model, Mistakes& mistakes) : model_(model), mistakes_(mistakes) {}

  void rename(const Operator& op, const LayerEntry& entry) {
    for (const ParameterName& given : entry.parameter_names) {
      const std::string before = fmt::format("{}.{}", op.name, given.parameter);
      const auto own = std::ranges::find_if(
          op.parameters, [&](ParameterId id) { return original_name(id) == before; });
      if (own != op.parameters.end()) {
        renamed_.emplace(own->index(), &given);
      } else if (!is_tied(entry, given.parameter)) {
        mistakes_.error_once(given.mark,
                             fmt::format("'{}' has no parameter '{}'", op.name, given.parameter));
      }
    }
  }

  void apply() {
    for (auto& [number, given] : renamed_) model_.parameters[number].name = given->name;
    std::unordered_map<std::string_view, std::size_t> numbers;  // looked up only
    for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
      const auto [first, fresh] = numbers.emplace(model_.parameters[i].name, i);
      if (fresh) continue;
      const auto given = renamed_.contains(i) ? renamed_.find(i) : renamed_.find(first->second);
      if (given == renamed_.end()) continue;
      mistakes_.error_once(given->second->mark, fmt::format("two parameters are called '{}'",
                                                            model_.parameters[i].name));
    }
  }

 private:
  [[nodiscard]] std::string_view original_name(ParameterId id) const {
    return model_.parameter(id).name;
  }
  [[nodiscard]] static bool is_tied(const LayerEntry& entry, std::string_view parameter) {
    return std::ranges::any_of(entry.ties,
                               [&](const Tie& tie) { return tie.parameter == parameter; });
  }

  ModelGraph& model_;
  Mistakes& mistakes_;
  std::unordered_map<std::size_t, const ParameterName*> renamed_;  // by the parameter's number
};

}  // namespace

void name_parameters(std::span<const ExpandedOperator* const> sources, ModelGraph& model,
                     Mistakes& mistakes) {
  ParameterRenaming renaming(model, mistakes);
  bool any = false;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const LayerEntry& entry = *sources[i]->entry;
    any = any || !entry.parameter_names.empty();
    renaming.rename(model.operators[i], entry);
  }
  if (any) renaming.apply();
}

}  // namespace stowage
