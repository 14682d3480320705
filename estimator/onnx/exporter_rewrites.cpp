#include "estimator/onnx/exporter_rewrites.hpp"

#include <algorithm>
#include <set>

namespace stowage {

namespace {

const ParameterSpec* spec_of(const ImportedLayer& layer, std::string_view parameter) {
  const auto spec = std::ranges::find(layer.parameters, parameter, &ParameterSpec::name);
  return spec == layer.parameters.end() ? nullptr : &*spec;
}

bool is_vector(const Shape& shape) {  // [96, 1, 1] too
  return std::ranges::count_if(shape, [](const Affine& one) { return one != Affine(1); }) <= 1;
}

// Whether two layers of one row have a matrix in common.
bool shares_blocks(const LayerList& layers, const std::vector<bool>& needed) {
  std::set<std::pair<std::string_view, std::string>> seen;  // row and initialiser
  for (int i = 0; i < layers.count(); ++i) {
    if (!needed[static_cast<std::size_t>(i)]) continue;
    const ImportedLayer& layer = layers.at(i);
    for (const auto& [parameter, name] : layer.parameter_names) {
      const ParameterSpec* spec = spec_of(layer, parameter);
      if (spec == nullptr || is_vector(spec->shape)) continue;
      if (!seen.emplace(layer.row->name, name).second) return true;
    }
  }
  return false;
}

}  // namespace

bool has_folded_norm(const OnnxNode& node) {
  return node.rewrites.find("FuseBatchNorm") != std::string::npos;
}

bool has_lost_bias(const OnnxNode& node) {
  const auto says = [](const std::string& text, std::string_view word) {
    return text.find(word) != std::string::npos;
  };
  return !has_folded_norm(node) && says(node.rewrites, "RemoveOptionalBias") &&
         says(node.call, "_bias");
}

// "['', 'layer1', 'layer1.0', 'layer1.0.bn1', '_native_batch_norm_legit_no_training_1']": the last
// is the operator.
std::string folded_norm_name(const OnnxNode& node) {
  std::vector<std::string> scopes;
  const std::string& text = node.scopes;
  for (std::size_t at = text.find('\''); at != std::string::npos; at = text.find('\'', at)) {
    const std::size_t end = text.find('\'', at + 1);
    if (end == std::string::npos) break;
    scopes.push_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return scopes.size() < 2 ? "" : scopes[scopes.size() - 2];
}

int separate_merged_vectors(LayerList& layers, const std::vector<bool>& needed) {
  if (shares_blocks(layers, needed)) return 0;
  std::set<std::string> owned;
  int separated = 0;
  for (int i = 0; i < layers.count(); ++i) {
    if (!needed[static_cast<std::size_t>(i)]) continue;
    ImportedLayer& layer = layers.at(i);
    std::vector<NamedText> names;
    for (NamedText& one : layer.parameter_names) {
      const ParameterSpec* spec = spec_of(layer, one.first);
      const bool is_merged =
          spec != nullptr && is_vector(spec->shape) && owned.contains(one.second);
      owned.insert(one.second);
      if (!is_merged) names.push_back(std::move(one));
    }
    if (names.size() < layer.parameter_names.size()) ++separated;
    layer.parameter_names = std::move(names);
  }
  return separated;
}

}  // namespace stowage
