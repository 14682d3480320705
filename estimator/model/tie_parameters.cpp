#include <fmt/format.h>

#include <map>
#include <string_view>
#include <unordered_map>

#include "estimator/model/build_model.hpp"

namespace stowage {

namespace {

// The number of the parameter called `name` among an operator's, or none.
std::optional<std::size_t> find_parameter(const Operator& op, const ModelGraph& model,
                                          std::string_view name) {
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    const std::string_view full = model.parameter(op.parameters[i]).name;
    if (full.size() == op.name.size() + 1 + name.size() && full.ends_with(name)) return i;
  }
  return std::nullopt;
}

class ParameterTies {
 public:
  ParameterTies(std::span<const ExpandedOperator* const> sources, ModelGraph& model,
                Mistakes& mistakes)
      : sources_(sources), model_(model), mistakes_(mistakes) {
    for (std::size_t i = 0; i < model.operators.size(); ++i) {
      numbers_.emplace(model.operators[i].name, i);
    }
  }

  void run() {
    owners_.resize(model_.parameters.size());
    for (std::size_t i = 0; i < owners_.size(); ++i) owners_[i] = ParameterId::of(i);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      for (const Tie& tie : sources_[i]->entry->ties) bind(i, tie);
    }
    drop_tied();
  }

 private:
  void bind(std::size_t number, const Tie& tie) {
    const Operator& op = model_.operators[number];
    const auto own = find_parameter(op, model_, tie.parameter);
    if (!own) {
      mistakes_.error_once(tie.mark,
                           fmt::format("'{}' has no parameter '{}'", op.name, tie.parameter));
      return;
    }
    const std::optional<ParameterId> target = find_target(number, tie);
    if (!target) return;
    const ParameterId mine = op.parameters[*own];
    const ParameterId owner = owner_of(*target);
    const Parameter& tied = model_.parameter(mine);
    const Parameter& shared = model_.parameter(*target);
    if (owner == mine || tied.is_buffer != shared.is_buffer) {
      mistakes_.error_once(tie.mark, owner == mine
                                         ? fmt::format("'{}' is tied to itself", tied.name)
                                         : "a parameter and a buffer cannot be one");
      return;
    }
    if (tied.type != shared.type) {
      if (tied.type.shape == shared.type.shape) {
        mistakes_.error_once(
            tie.target_mark,
            fmt::format("'{}' is {}, but '{}', with which it is one, is {}", tied.name,
                        to_string(tied.type.type), shared.name, to_string(shared.type.type)));
        return;
      }
      mistakes_.error_once(tie.target_mark, fmt::format("'{}' is {}, but '{}' is {}", tied.name,
                                                        to_string(tied.type.shape), shared.name,
                                                        to_string(shared.type.shape)));
      return;
    }
    owners_[mine.index()] = owner;
  }

  std::optional<ParameterId> find_target(std::size_t number, const Tie& tie) {
    const std::string& target = tie.target;
    const std::size_t dot = target.rfind('.');
    const std::string layer = target.substr(0, dot == std::string::npos ? 0 : dot);
    const std::string prefix =
        sources_[number]->name.substr(0, static_cast<std::size_t>(sources_[number]->prefix));
    auto found = numbers_.find(prefix + layer);
    if (found == numbers_.end()) found = numbers_.find(layer);
    if (found != numbers_.end()) {
      const Operator& op = model_.operators[found->second];
      const auto parameter = find_parameter(op, model_, target.substr(dot + 1));
      if (parameter) return op.parameters[*parameter];
    }
    std::vector<std::string_view> candidates;
    for (const Parameter& parameter : model_.parameters) candidates.push_back(parameter.name);
    mistakes_.error_once(tie.target_mark, fmt::format("no parameter is called '{}'", target),
                         mistakes_.suggest(target, candidates));
    return std::nullopt;
  }

  // Ties are bound one by one to the owner of the time, so that a chain has at most its own length.
  [[nodiscard]] ParameterId owner_of(ParameterId id) const {
    while (owners_[id.index()] != id) id = owners_[id.index()];
    return id;
  }

  void drop_tied() {
    std::vector<Parameter> kept;
    std::vector<ParameterId> numbers(owners_.size());
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i] != ParameterId::of(i)) continue;
      numbers[i] = ParameterId::of(kept.size());
      kept.push_back(std::move(model_.parameters[i]));
    }
    for (Operator& op : model_.operators) {
      for (ParameterId& id : op.parameters) id = numbers[owner_of(id).index()];
    }
    model_.parameters = std::move(kept);
  }

  std::span<const ExpandedOperator* const> sources_;
  ModelGraph& model_;
  Mistakes& mistakes_;
  std::unordered_map<std::string_view, std::size_t> numbers_;  // looked up only
  std::vector<ParameterId> owners_;  // of each parameter: itself where it is not tied
};

}  // namespace

void tie_parameters(std::span<const ExpandedOperator* const> sources, ModelGraph& model,
                    Mistakes& mistakes) {
  for (const ExpandedOperator* source : sources) {
    if (source->entry->ties.empty()) continue;
    ParameterTies(sources, model, mistakes).run();
    return;
  }
}

}  // namespace stowage
