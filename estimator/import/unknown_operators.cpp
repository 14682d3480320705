#include "estimator/import/unknown_operators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/base/cure.hpp"

namespace stowage {

namespace {

struct UnknownOperator {
  int count = 0;
  std::string reason;  ///< of the first
};
using UnknownOperators = std::map<std::string, UnknownOperator>;

std::string list_of(const UnknownOperators& unknown) {
  std::vector<std::string> names;
  for (const auto& [op, one] : unknown) {
    names.push_back(one.count == 1 ? op : fmt::format("{} ({} times)", op, one.count));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Diagnostics notes_of_reasons(const UnknownOperators& unknown) {
  Diagnostics notes;
  for (const auto& [op, one] : unknown) {
    if (one.reason.empty()) continue;
    notes.push_back({.severity = Severity::note, .message = fmt::format("{}: {}", op, one.reason)});
  }
  return notes;
}

bool make_custom(LayerList& layers, int number, bool trains) {
  const ImportedLayer& layer = layers.at(number);
  const TensorType& first = layer.outputs[0];
  Attributes::Entries given;
  constexpr std::size_t most_outputs = 4;
  if (layer.outputs.size() > most_outputs) return false;
  if (layer.from.empty()) {
    given.emplace_back("shape", first.shape);
    if (first.type != DataType::float32)
      given.emplace_back("dtype", std::string(to_string(first.type)));
    return layer.outputs.size() == 1 && layers.change(number, "constant", {}, std::move(given));
  }
  for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
    const Shape& shape = layer.outputs[i].shape;
    given.emplace_back(i == 0 ? std::string("shape") : fmt::format("shape_{}", i + 1),
                       shape.empty() ? Shape{1} : shape);
  }
  if (first.type != layers.type(layer.from[0]).type) {
    given.emplace_back("dtype", std::string(to_string(first.type)));
  }
  if (trains) given.emplace_back("saves_inputs", true);
  return layers.change(number, "custom", layer.from, std::move(given));
}

}  // namespace

Result<Diagnostics> count_unknown_operators(LayerList& layers, const DescriptionFrame& frame,
                                            bool allow, const std::map<int, std::string>& reasons) {
  UnknownOperators unknown;
  UnknownOperators counted;
  const std::vector<bool> needed = needed_layers(layers, frame);
  for (int i = 0; i < layers.count(); ++i) {
    const ImportedLayer& layer = layers.at(i);
    const bool is_foreign = layer.row == nullptr && !layer.is_input;
    if (!needed[static_cast<std::size_t>(i)] || !is_foreign) continue;
    const std::string op = layer.foreign.empty() ? "an operator without a name" : layer.foreign;
    const bool trains = layer.trains;
    const bool is_counted = (allow || !trains) && make_custom(layers, i, trains);
    UnknownOperator& one = (is_counted ? counted : unknown)[op];
    const auto reason = reasons.find(i);
    if (one.count++ == 0 && reason != reasons.end()) one.reason = reason->second;
  }
  if (!unknown.empty()) {
    return failure(Diagnostic{
        .message = fmt::format("the catalogue cannot express {} of this model", list_of(unknown)),
        .hint = hint_of(Cure::count_unknown),
        .notes = notes_of_reasons(unknown)});
  }
  Diagnostics notes;
  if (counted.empty()) return notes;
  notes.push_back(
      {.severity = allow ? Severity::warning : Severity::note,
       .message = fmt::format("{} {} counted by the sizes of their outputs, and cannot be run",
                              list_of(counted), counted.size() == 1 ? "is" : "are")});
  return notes;
}

void tie_shared_parameters(LayerList& layers, const DescriptionFrame& frame) {
  struct Owner {
    std::string name;
    Shape shape;
  };
  // An exporter may merge equal parameters and buffers. A parameter is never tied to a buffer; the
  // first of them keeps the file's name.
  std::map<std::pair<std::string, bool>, Owner> owners;  // by name, and whether it is a buffer
  const std::vector<bool> needed = needed_layers(layers, frame);
  for (int i = 0; i < layers.count(); ++i) {
    ImportedLayer& layer = layers.at(i);
    if (!needed[static_cast<std::size_t>(i)]) continue;
    std::vector<NamedText> names;
    for (auto& [parameter, file_name] : layer.parameter_names) {
      const auto spec = std::ranges::find(layer.parameters, parameter, &ParameterSpec::name);
      if (spec == layer.parameters.end()) continue;
      const auto [owner, fresh] =
          owners.emplace(std::pair(file_name, spec->is_buffer),
                         Owner{fmt::format("{}.{}", layer.name, parameter), spec->shape});
      if (fresh) {
        if (!owners.contains({file_name, !spec->is_buffer})) {
          names.emplace_back(parameter, file_name);
        }
      } else if (owner->second.shape == spec->shape) {
        layer.ties.emplace_back(parameter, owner->second.name);
      }
    }
    layer.parameter_names = std::move(names);
  }
}

}  // namespace stowage
