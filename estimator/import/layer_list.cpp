#include "estimator/import/layer_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace stowage {

namespace {

// A name as descriptions have them: letters, digits, '_' and '-', a letter first.
std::string layer_name(std::string_view text) {
  constexpr std::size_t longest = 100;
  std::string name;
  for (const char c : text.substr(0, longest)) {
    const bool is_sound = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    const bool repeats = !is_sound && (name.empty() || name.back() == '_');
    if (!repeats) name.push_back(is_sound ? c : '_');
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty()) return "layer";
  if (name == "null" || name == "Null" || name == "NULL") return name + "_";  // YAML's nothing
  const bool begins_well = std::isalpha(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_';
  return begins_well ? name : "n" + name;
}

// The attributes in the row's order, with defaults filled in and single numbers extended to lists.
tl::expected<Attributes, std::string> completed(const OperatorRow& row,
                                                const Attributes::Entries& given) {
  Attributes attributes;
  for (const AttributeSpec& spec : row.attributes) {
    const auto found =
        std::ranges::find_if(given, [&](const auto& entry) { return entry.first == spec.name; });
    std::optional<AttributeValue> value = spec.default_value;
    if (found != given.end()) value = found->second;
    if (!value) return tl::unexpected(fmt::format("{} needs '{}'", row.name, spec.name));
    const auto* number = std::get_if<std::int64_t>(&*value);
    if (spec.type == AttributeType::integers && number != nullptr) {
      value =
          std::vector<std::int64_t>(static_cast<std::size_t>(std::max(spec.length, 1)), *number);
    }
    attributes.set(spec.name, *std::move(value));
  }
  return attributes;
}

bool within_bounds(const AttributeSpec& spec, const AttributeValue& value) {
  const auto bounded = [&](double number) {
    return (!spec.minimum || number >= *spec.minimum) && (!spec.maximum || number <= *spec.maximum);
  };
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return bounded(static_cast<double>(*integer));
  }
  if (const auto* real = std::get_if<double>(&value)) return bounded(*real);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    const auto length = static_cast<int>(list->size());
    const bool has_length =
        spec.length == 0 || length == spec.length || length == spec.other_length;
    return has_length && std::ranges::all_of(*list, [&](std::int64_t number) {
             return bounded(static_cast<double>(number));
           });
  }
  return true;
}

}  // namespace

// Names that have a special meaning in a description.
LayerList::LayerList() : names_{{"loss", 2}, {"loss_1", 2}, {"input", 2}} {}

std::string LayerList::fresh_name(std::string_view wanted) {
  const std::string base = layer_name(wanted);
  const auto [known, fresh] = names_.emplace(base, 2);
  if (fresh) return base;
  while (true) {
    std::string name = fmt::format("{}_{}", base, known->second++);
    if (names_.emplace(name, 2).second) return name;
  }
}

tl::expected<void, std::string> LayerList::infer(ImportedLayer& layer) const {
  const OperatorRow& row = *layer.row;
  const auto attributes = completed(row, layer.given);
  if (!attributes) return tl::unexpected(attributes.error());
  for (const AttributeSpec& spec : row.attributes) {
    const auto given = std::ranges::find_if(
        layer.given, [&](const auto& entry) { return entry.first == spec.name; });
    if (given == layer.given.end() || within_bounds(spec, given->second)) continue;
    return tl::unexpected(
        fmt::format("{} does not take '{}: {}'", row.name, spec.name, to_string(given->second)));
  }
  const int inputs = static_cast<int>(layer.from.size());
  if (inputs < row.min_inputs || (row.max_inputs >= 0 && inputs > row.max_inputs)) {
    return tl::unexpected(fmt::format("{} does not take {} inputs", row.name, inputs));
  }
  std::vector<TensorType> types;
  for (const LayerOutput& input : layer.from) types.push_back(type(input));
  try {
    auto inference = row.infer(*attributes, types);
    if (!inference) return tl::unexpected(inference.error().message);
    layer.outputs = std::move(inference->outputs);
    layer.parameters = std::move(inference->parameters);
    for (const TensorType& output : layer.outputs) {
      constexpr std::int64_t most_bytes_an_element = 16;
      (void)(element_count(output.shape) * Affine(most_bytes_an_element));
    }
  } catch (const ArithmeticOverflow&) {
    return tl::unexpected(std::string("a size leaves the 64-bit range"));
  } catch (const NotAffine& e) {
    return tl::unexpected(fmt::format("a size is not linear in the batch: {}", e.what()));
  }
  const bool has_weights = std::ranges::any_of(
      layer.parameters, [](const ParameterSpec& spec) { return !spec.is_buffer; });
  layer.trains = has_weights || std::ranges::any_of(layer.from, [&](const LayerOutput& input) {
                   return at(input.layer).trains;
                 });
  return {};
}

LayerOutput LayerList::add_input(std::string_view name, TensorType type) {
  layers_.push_back({.name = fresh_name(name), .outputs = {std::move(type)}, .is_input = true});
  return {count() - 1, 0};
}

tl::expected<int, std::string> LayerList::add(std::string_view row, std::string_view name,
                                              std::vector<LayerOutput> from,
                                              Attributes::Entries given) {
  ImportedLayer layer{
      .row = find_operator(row), .from = std::move(from), .given = std::move(given)};
  if (layer.row == nullptr) return tl::unexpected(fmt::format("there is no operator '{}'", row));
  if (auto inferred = infer(layer); !inferred) return tl::unexpected(inferred.error());
  layer.name = fresh_name(name);
  layers_.push_back(std::move(layer));
  return count() - 1;
}

int LayerList::add_foreign(std::string_view foreign, std::string_view name,
                           std::vector<LayerOutput> from, std::vector<TensorType> outputs) {
  ImportedLayer layer{.foreign = std::string(foreign),
                      .name = fresh_name(name),
                      .from = std::move(from),
                      .outputs = std::move(outputs)};
  layer.trains = std::ranges::any_of(
      layer.from, [&](const LayerOutput& input) { return at(input.layer).trains; });
  layers_.push_back(std::move(layer));
  return count() - 1;
}

bool LayerList::change(int layer, std::string_view row, std::vector<LayerOutput> from,
                       Attributes::Entries given) {
  ImportedLayer changed = at(layer);
  changed.row = find_operator(row);
  changed.foreign.clear();
  changed.from = std::move(from);
  changed.given = std::move(given);
  if (changed.row == nullptr || !infer(changed)) return false;
  at(layer) = std::move(changed);
  return true;
}

}  // namespace stowage
