#include "estimator/model/expand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace stowage {

namespace {

using Kind = TensorSource::Kind;

// A tensor that may be used before the layer that makes it is expanded: then `link` is the number
// of a slot that is filled later.
struct Wire {
  TensorSource source;
  std::int32_t link = -1;
};

// The outputs of a layer of a scope after its expansion.
struct Outcome {
  bool ready = false;
  bool broken = false;    // reported: nothing is known of it
  bool left_out = false;  // wires: its own inputs
  int instances = 1;
  std::vector<Wire> wires;  // instance after instance; one of output -1 for an operator
};

struct Instance {
  const Scope* scope;
  std::span<const Wire> inputs;
  Environment at;
  Mark call;  // of the layer that instantiates it; none for the model
  bool frozen;
  int region;  // checkpointed; -1: none
  std::optional<DataType> type = {};
  std::vector<Outcome> outcomes = {};
};

// The settings that a layer passes on to the layers within it.
struct Inherited {
  bool frozen;
  int region;
  std::optional<DataType> type;
};

struct PendingLink {
  const Reference* reference;
  std::int32_t link;
};

class Expansion {
 public:
  Expansion(const ModelDescription& description, Mistakes& mistakes)
      : description_(description), mistakes_(mistakes) {}

  ExpandedModel run() {
    std::vector<Wire> inputs;
    for (std::size_t i = 0; i < description_.inputs.size(); ++i) {
      inputs.push_back({{Kind::model_input, static_cast<std::int32_t>(i), -1}});
    }
    Instance model{&description_.scope, inputs, {.model = description_.values}, {}, false, -1};
    const std::vector<Wire> outputs = expand_scope(model);
    if (stopped_) return {};
    for (std::size_t i = 0; i < model_.operators.size(); ++i) settle(i);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      model_.outputs.push_back(follow(outputs[i], description_.scope.outputs[i].mark));
    }
    const int first_loss = description_.scope.loss;
    for (std::size_t i = first_loss < 0 ? model.outcomes.size()
                                        : static_cast<std::size_t>(first_loss);
         i < model.outcomes.size(); ++i) {
      const Outcome& outcome = model.outcomes[i];
      if (outcome.left_out || outcome.wires.empty()) continue;
      model_.losses.push_back(outcome.wires[0].source.index);
    }
    return std::move(model_);
  }

 private:
  std::vector<Wire> expand_scope(Instance& instance) {
    const Scope& scope = *instance.scope;
    instance.outcomes.resize(scope.layers.size());
    std::vector<PendingLink> pending;
    for (std::size_t i = 0; i < scope.layers.size() && !stopped_; ++i) {
      const LayerEntry& entry = scope.layers[i];
      Outcome& outcome = instance.outcomes[i];
      expand_layer(entry, wires_of(entry.from, instance, pending), instance, outcome);
      outcome.ready = true;
    }
    if (stopped_) return std::vector<Wire>(scope.outputs.size());
    for (const PendingLink& late : pending) {
      links_[static_cast<std::size_t>(late.link)] = select(*late.reference, instance);
    }
    return wires_of(scope.outputs, instance, pending);
  }

  std::vector<Wire> wires_of(const std::vector<Reference>& references, Instance& instance,
                             std::vector<PendingLink>& pending) {
    std::vector<Wire> wires;
    wires.reserve(references.size());
    for (const Reference& reference : references) {
      if (reference.all) {
        add_all(reference, instance, wires);
      } else if (reference.kind == Reference::Kind::layer &&
                 !instance.outcomes[static_cast<std::size_t>(reference.index)].ready) {
        const auto link = static_cast<std::int32_t>(links_.size());
        links_.emplace_back();
        pending.push_back({&reference, link});
        wires.push_back({{}, link});
      } else {
        wires.push_back(select(reference, instance));
      }
    }
    return wires;
  }

  // Counted as layers are: lists of lists grow with their product.
  void add_all(const Reference& reference, const Instance& instance, std::vector<Wire>& wires) {
    std::span<const Wire> all = instance.inputs;
    if (reference.kind == Reference::Kind::layer) {
      const auto number = static_cast<std::size_t>(reference.index);
      const LayerEntry& entry = instance.scope->layers[number];
      const Outcome& outcome = instance.outcomes[number];
      if (!outcome.ready) {
        mistakes_.error_once(reference.mark,
                             fmt::format("'{}' is used before it is written", entry.name),
                             "how many outputs it has is known behind it");
        wires.emplace_back();
        return;
      }
      if (outcome.left_out) {
        mistakes_.error_once(
            reference.mark, fmt::format("'{}' is left out here, and has no instances", entry.name));
        wires.emplace_back();
        return;
      }
      all = outcome.wires;
    }
    if (!has_room(reference.mark, static_cast<std::int64_t>(all.size()))) return;
    visited_ += static_cast<std::int64_t>(all.size());
    wires.insert(wires.end(), all.begin(), all.end());
  }

  Wire select(const Reference& reference, const Instance& instance) {
    switch (reference.kind) {
      case Reference::Kind::unknown:
        return {};
      case Reference::Kind::input:
        return select_input(reference, instance);
      case Reference::Kind::layer:
        break;
    }
    const auto number = static_cast<std::size_t>(reference.index);
    const LayerEntry& entry = instance.scope->layers[number];
    const Outcome& outcome = instance.outcomes[number];
    if (outcome.broken || outcome.wires.empty()) return {};
    std::size_t per_instance = outcome.wires.size();
    std::size_t begin = 0;
    if (!outcome.left_out) {
      const int chosen = reference.instance < 0 ? outcome.instances - 1 : reference.instance;
      if (chosen >= outcome.instances) {
        mistakes_.error_once(reference.mark, fmt::format("'{}' is repeated {} times: there is no "
                                                         "instance {}",
                                                         entry.name, outcome.instances, chosen));
        return {};
      }
      per_instance /= static_cast<std::size_t>(outcome.instances);
      begin = static_cast<std::size_t>(chosen) * per_instance;
    }
    if (entry.row != nullptr && !outcome.left_out) {
      Wire wire = outcome.wires[begin];
      if (wire.source.kind == Kind::operator_output) wire.source.output = reference.output;
      return wire;
    }
    return select_output(reference, entry, outcome,
                         std::span(outcome.wires).subspan(begin, per_instance));
  }

  Wire select_output(const Reference& reference, const LayerEntry& entry, const Outcome& outcome,
                     std::span<const Wire> wires) {
    // The output of a layer that is left out is its first input.
    const bool first = wires.size() == 1 || (outcome.left_out && !wires.empty());
    if (reference.output < 0 && first) return wires[0];
    if (reference.output >= 0 && static_cast<std::size_t>(reference.output) < wires.size()) {
      return wires[static_cast<std::size_t>(reference.output)];
    }
    Diagnostic& error = mistakes_.error_once(
        reference.mark,
        fmt::format("'{}' {} {} {}{}", entry.name,
                    outcome.left_out ? "is left out here, and has" : "has", wires.size(),
                    outcome.left_out ? "input" : "output", wires.size() == 1 ? "" : "s"),
        wires.size() > 1 ? fmt::format("say which: '{}.0'", entry.name) : "");
    error.notes.push_back(mistakes_.note(entry.mark, "it is here"));
    return {};
  }

  Wire select_input(const Reference& reference, const Instance& instance) {
    const std::size_t count = instance.inputs.size();
    if (reference.index < 0 && count == 1) return instance.inputs[0];
    if (reference.index >= 0 && static_cast<std::size_t>(reference.index) < count) {
      return instance.inputs[static_cast<std::size_t>(reference.index)];
    }
    Diagnostic& error = mistakes_.error_once(
        reference.mark,
        fmt::format("the block has {} {} here", count, count == 1 ? "input" : "inputs"),
        count > 1 && reference.index < 0 ? "say which: 'input.0'" : "");
    if (instance.call.line > 0) {
      error.notes.push_back(mistakes_.note(instance.call, "instantiated here"));
    }
    return {};
  }

  void expand_layer(const LayerEntry& entry, std::vector<Wire> inputs, const Instance& instance,
                    Outcome& outcome) {
    if (!has_room(entry.mark, 1)) return;
    ++visited_;
    bool broken = entry.broken;
    bool kept = true;
    if (entry.when) {
      const auto value = evaluate(*entry.when, instance.at, mistakes_);
      const auto condition =
          value ? to_condition("when", *value, entry.when->mark, mistakes_) : std::nullopt;
      kept = condition.value_or(true);
      if (!condition) broken = true;
    }
    std::optional<std::int64_t> repeat;
    if (entry.repeat && kept) {
      const auto value = evaluate(*entry.repeat, instance.at, mistakes_);
      if (value) {
        repeat = to_integer("repeat", 0, most_repeats, *value, entry.repeat->mark, mistakes_);
      }
      if (!repeat) broken = true;
    }
    if (!kept || repeat == 0) {
      outcome.left_out = true;
      outcome.wires = std::move(inputs);
      return;
    }
    outcome.broken = broken;
    repeat_layer(entry, std::move(inputs), instance, repeat, outcome);
  }

  void repeat_layer(const LayerEntry& entry, std::vector<Wire> inputs, const Instance& instance,
                    std::optional<std::int64_t> repeat, Outcome& outcome) {
    const std::size_t prefix = name_.size(), path_prefix = path_.size();
    outcome.instances = static_cast<int>(repeat.value_or(1));
    // Too large repetitions are refused before they are unrolled: an instance visits at least each
    // of its layers.
    const std::size_t inner =
        entry.block < 0
            ? 0
            : description_.blocks[static_cast<std::size_t>(entry.block)].scope.layers.size();
    const std::int64_t others = outcome.instances - 1;
    if (!has_room(entry.mark, others + static_cast<std::int64_t>(inner) * outcome.instances))
      return;
    visited_ += others;
    for (std::int64_t i = 0; i < outcome.instances && !stopped_; ++i) {
      Environment at = instance.at;
      if (repeat) at.index = i;
      name_ += entry.name;
      if (repeat) fmt::format_to(std::back_inserter(name_), ".{}", i);
      if (!entry.module.empty()) path_ += entry.module + '.';
      path_.append(name_, prefix);
      if (repeat && entry.called_one_by_one) path_[path_.rfind('.')] = '#';  // one word: "layers#0"
      const Inherited inherited{instance.frozen || is_set("frozen", entry.frozen, at),
                                region_of(entry, at, instance.region),
                                entry.type ? entry.type : instance.type};
      std::vector<Wire> outputs =
          entry.block >= 0 && !outcome.broken
              ? instantiate(entry, inputs, at, inherited)
              : add_operator(entry, inputs, at, inherited, outcome.broken, prefix);
      name_.resize(prefix);
      path_.resize(path_prefix);
      if (entry.dense) {
        // The next instance also reads this one's outputs.
        inputs.insert(inputs.end(), outputs.begin(), outputs.end());
        const auto more = static_cast<std::int64_t>(inputs.size());
        if (!has_room(entry.mark, more)) return;
        visited_ += more;
      } else {
        // The next instance reads this one's outputs in place of its first inputs.
        std::copy_n(outputs.begin(), std::min(outputs.size(), inputs.size()), inputs.begin());
      }
      outcome.wires.insert(outcome.wires.end(), outputs.begin(), outputs.end());
    }
  }

  // False: there are too many operators, and the expansion ends.
  bool has_room(const Mark& mark, std::int64_t layers) {
    if (visited_ + layers <= most_operators) return true;
    mistakes_.error_once(mark, fmt::format("the model has more than {} layers", most_operators),
                         "every layer of every repetition and of every instance of a block counts");
    stopped_ = true;
    return false;
  }

  std::vector<Wire> instantiate(const LayerEntry& entry, const std::vector<Wire>& inputs,
                                const Environment& at, Inherited inherited) {
    const Block& block = description_.blocks[static_cast<std::size_t>(entry.block)];
    std::vector<Wire> unknown(std::max<std::size_t>(block.scope.outputs.size(), 1));
    if (block.recursive || block.scope.layers.empty()) return unknown;
    std::vector<std::optional<Value>> given(block.arguments.size());
    for (const ArgumentSetting& setting : entry.arguments) {
      auto value = evaluate(setting.value, at, mistakes_);
      if (!value) return unknown;
      given[static_cast<std::size_t>(setting.argument)] = std::move(*value);
    }
    std::vector<Value> values;
    values.reserve(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i]) {
        const auto& fallback = block.arguments[i].default_value;
        if (!fallback) return unknown;
        given[i] = evaluate(*fallback, {values, at.model, at.index}, mistakes_);
        if (!given[i]) return unknown;
      }
      values.push_back(std::move(*given[i]));
    }
    Instance instance{&block.scope,  inputs,           {values, at.model, at.index},
                      entry.mark,    inherited.frozen, inherited.region,
                      inherited.type};
    name_ += '.';
    path_ += '.';
    return expand_scope(instance);
  }

  bool is_set(std::string_view key, const std::optional<WrittenValue>& written,
              const Environment& at) {
    if (!written) return false;
    const auto value = evaluate(*written, at, mistakes_);
    return value && to_condition(key, *value, written->mark, mistakes_).value_or(false);
  }

  // Of nested checkpointed regions the outermost one counts; each instance of a repetition is a
  // separate region.
  int region_of(const LayerEntry& entry, const Environment& at, int around) {
    const bool checkpointed = is_set("checkpoint", entry.checkpoint, at);
    return checkpointed && around < 0 ? regions_++ : around;
  }

  std::vector<Wire> add_operator(const LayerEntry& entry, const std::vector<Wire>& inputs,
                                 const Environment& at, Inherited inherited, bool broken,
                                 std::size_t prefix) {
    ExpandedOperator op{.entry = &entry, .name = name_, .prefix = static_cast<int>(prefix)};
    if (path_ != name_) op.path = path_;
    op.broken = broken || entry.row == nullptr;
    op.frozen = inherited.frozen;
    op.region = inherited.region;
    op.type = inherited.type;
    if (!op.broken) {
      if (!entry.settings.empty()) op.attributes = entry.constants;
      for (const AttributeSetting& setting : entry.settings) {
        const auto value = evaluate(setting.value, at, mistakes_);
        auto attribute =
            value ? to_attribute(*setting.spec, entry.row->name, *value, setting.value, mistakes_)
                  : std::nullopt;
        if (attribute) op.attributes.set(setting.spec->name, std::move(*attribute));
        if (!attribute) op.broken = true;
      }
    }
    const auto number = static_cast<std::int32_t>(model_.operators.size());
    op.inputs.reserve(inputs.size());
    for (const Wire& wire : inputs) {
      // `index` holds the number of the link until settle() resolves it.
      op.inputs.push_back(wire.link < 0 ? wire.source : TensorSource{Kind::unknown, wire.link, 0});
    }
    model_.operators.push_back(std::move(op));
    return {{{Kind::operator_output, number, -1}}};
  }

  void settle(std::size_t number) {
    ExpandedOperator& op = model_.operators[number];
    for (TensorSource& input : op.inputs) {
      if (input.kind == Kind::unknown && input.index >= 0) {
        input = follow({{}, input.index}, op.entry->mark);
      }
    }
  }

  // Follows links to links, and shortens them. A link that leads back to itself goes only through
  // layers that are left out.
  TensorSource follow(const Wire& start, const Mark& user) {
    Wire end = start;
    for (std::size_t steps = 0; end.link >= 0; ++steps) {
      if (steps > links_.size()) {
        mistakes_.error_once(user,
                             "an input comes only from layers that are left out and take "
                             "each other's");
        end = {};
        break;
      }
      end = links_[static_cast<std::size_t>(end.link)];
    }
    for (std::int32_t link = start.link; link >= 0;) {
      link = std::exchange(links_[static_cast<std::size_t>(link)], end).link;
    }
    return end.source;
  }

  const ModelDescription& description_;
  Mistakes& mistakes_;
  ExpandedModel model_;
  std::vector<Wire> links_;
  std::string name_;  // of the instance at hand, with the dots
  std::string path_;  // the same with the modules of `modules:`
  std::int64_t visited_ = 0;
  int regions_ = 0;
  bool stopped_ = false;
};

}  // namespace

ExpandedModel expand(const ModelDescription& description, Mistakes& mistakes) {
  return Expansion(description, mistakes).run();
}

}  // namespace stowage
