#include <algorithm>

#include "estimator/onnx/pattern_match.hpp"
#include "estimator/onnx/patterns.hpp"

namespace stowage {

namespace {

// The number of axes, if the layer is a mean over the last axes that keeps them.
std::optional<std::int64_t> trailing_mean(const LayerList& layers, const ImportedLayer& layer) {
  if (!layer.is("mean") || !given_flag(layer, "keep", false)) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(layers.type(layer.from[0]).shape.size());
  std::vector<std::int64_t> axes = given_integers(layer, "axes");
  for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  std::ranges::sort(axes);
  const auto count = static_cast<std::int64_t>(axes.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (axes[static_cast<std::size_t>(i)] != rank - count + i) return std::nullopt;
  }
  if (count == 0) return std::nullopt;
  return count;
}

bool is_square_of(const LayerList& layers, const LayerOutput& output, const LayerOutput& x) {
  const ImportedLayer& layer = layers.at(output.layer);
  if (layer.is("pow")) return layer.from[0] == x && given_real(layer, "exponent", 0) == 2;
  return layer.is("mul") && layer.from[0] == x && layer.from[1] == x;
}

struct RootMeanSquare {
  LayerOutput x;
  double eps = 0;
  std::int64_t axes = 1;
  bool by_inverse = false;  ///< x * (1 / root), as transformers' models write it
};

// sqrt(mean(x^2) + eps).
std::optional<RootMeanSquare> root_mean_square(const LayerList& layers, const LayerOutput& output) {
  const ImportedLayer& root = layers.at(output.layer);
  if (!root.is("sqrt")) return std::nullopt;
  const ImportedLayer& sum = layers.at(root.from[0].layer);
  const auto eps = offset_of(sum);
  if (!eps) return std::nullopt;
  const ImportedLayer& mean = layers.at(sum.from[0].layer);
  const auto axes = trailing_mean(layers, mean);
  if (!axes) return std::nullopt;
  const ImportedLayer& square = layers.at(mean.from[0].layer);
  const bool has_input = square.is("pow") || square.is("mul");
  if (!has_input || !is_square_of(layers, mean.from[0], square.from[0])) return std::nullopt;
  return RootMeanSquare{square.from[0], *eps, *axes};
}

// x / root, or x * (1 / root).
std::optional<RootMeanSquare> normalized_value(const LayerList& layers,
                                               const ImportedLayer& layer) {
  const auto of = [&](const LayerOutput& x,
                      const LayerOutput& root) -> std::optional<RootMeanSquare> {
    const auto found = root_mean_square(layers, root);
    return found && found->x == x ? found : std::nullopt;
  };
  if (layer.is("div")) return of(layer.from[0], layer.from[1]);
  if (!layer.is("mul")) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const ImportedLayer& inverse = layers.at(layer.from[1 - i].layer);
    const bool is_inverse =
        (inverse.is("pow") && given_real(inverse, "exponent", 0) == -1) || inverse.is("reciprocal");
    if (!is_inverse) continue;
    if (auto found = of(layer.from[i], inverse.from[0])) {
      found->by_inverse = true;
      return found;
    }
  }
  return std::nullopt;
}

bool is_tail_of(const Shape& shape, const Shape& whole, std::int64_t axes) {
  const auto count = static_cast<std::size_t>(axes);
  return shape.size() == count && whole.size() >= count &&
         std::equal(shape.begin(), shape.end(), whole.end() - axes);
}

// The x of x - mean(x). Some exporters subtract the mean in a separate layer, and square that.
std::optional<LayerOutput> centered(const LayerList& layers, const LayerOutput& output) {
  const ImportedLayer& layer = layers.at(output.layer);
  if (!layer.is("sub")) return std::nullopt;
  const ImportedLayer& mean = layers.at(layer.from[1].layer);
  if (!trailing_mean(layers, mean) || mean.from[0] != layer.from[0]) return std::nullopt;
  return layer.from[0];
}

bool find_plain_norm(LayerList& layers, int layer) {
  const auto found = normalized_value(layers, layers.at(layer));
  if (!found) return false;
  Attributes::Entries given{{"axes", found->axes}, {"eps", found->eps}, {"affine", false}};
  if (const auto x = centered(layers, found->x)) {
    return layers.change(layer, "layer_norm", {*x}, std::move(given));
  }
  // torch.nn.RMSNorm's kernel, which the tracing exporter writes as a division, or operators.
  if (found->by_inverse) given.emplace_back("implementation", std::string("composite"));
  return layers.change(layer, "rms_norm", {found->x}, std::move(given));
}

void take_names(ImportedLayer& into, const ImportedLayer& from, const std::string& parameter) {
  for (const auto& [old, name] : from.parameter_names)
    into.parameter_names.emplace_back(parameter, name);
}

// A norm without weights, times a learned scale.
bool find_weight(LayerList& layers, int layer) {
  const ImportedLayer& scale = layers.at(layer);
  if (!is_learned_scale(scale) || scale.parameters.empty()) return false;
  const ImportedLayer& norm = layers.at(scale.from[0].layer);
  if ((!norm.is("layer_norm") && !norm.is("rms_norm")) || given_flag(norm, "affine", true)) {
    return false;
  }
  const auto axes = static_cast<std::int64_t>(given_real(norm, "axes", 1));
  if (!is_tail_of(scale.parameters[0].shape, norm.outputs[0].shape, axes)) return false;
  Attributes::Entries given{{"axes", axes}, {"eps", given_real(norm, "eps", 0)}};
  const std::string row(norm.row->name);
  if (row == "layer_norm") given.emplace_back("bias", false);
  const std::string implementation = given_text(norm, "implementation");
  if (!implementation.empty()) given.emplace_back("implementation", implementation);
  const ImportedLayer before = scale;
  if (!layers.change(layer, row, norm.from, std::move(given))) return false;
  ImportedLayer& changed = layers.at(layer);
  changed.parameter_names.clear();
  take_names(changed, before, "weight");
  return true;
}

// A layer norm without an offset, plus a learned one.
bool find_offset(LayerList& layers, int layer) {
  const ImportedLayer& sum = layers.at(layer);
  if (!sum.is("add")) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const ImportedLayer norm = layers.at(sum.from[i].layer);
    const ImportedLayer offset = layers.at(sum.from[1 - i].layer);
    if (!norm.is("layer_norm") || given_flag(norm, "bias", true) || !offset.is("parameter"))
      continue;
    const auto axes = static_cast<std::int64_t>(given_real(norm, "axes", 1));
    if (!is_tail_of(offset.outputs[0].shape, norm.outputs[0].shape, axes)) continue;
    if (!layers.change(layer, "layer_norm", norm.from,
                       {{"axes", axes}, {"eps", given_real(norm, "eps", 0)}})) {
      continue;
    }
    take_names(layers.at(layer), norm, "weight");
    take_names(layers.at(layer), offset, "bias");
    return true;
  }
  return false;
}

// The length of the only axis that is not 1, as in numbers per channel before two axes: [8, 1, 1].
bool is_per_channel(const Shape& shape, const Shape& image) {
  if (image.size() < 2 || shape.size() + 1 != image.size() || shape[0] != image[1]) return false;
  return std::all_of(shape.begin() + 1, shape.end(), [](Affine one) { return one == Affine(1); });
}

// PyTorch's exporters write a group norm as an instance norm of its groups:
// [n, c, h, w] as [n, groups, rest], normalized, as [n, c, h, w] again, times and plus a number a
// channel.
bool find_group_norm(LayerList& layers, int layer) {
  const ImportedLayer sum = layers.at(layer);
  if (!sum.is("add")) return false;
  const ImportedLayer scale = layers.at(sum.from[0].layer);
  const ImportedLayer view = layers.at(sum.from[1].layer);
  const ImportedLayer offset = view.is("reshape") ? layers.at(view.from[0].layer) : view;
  if (!is_learned_scale(scale) || scale.parameters.empty() || !offset.is("parameter")) return false;
  const ImportedLayer& whole = layers.at(scale.from[0].layer);
  if (!whole.is("reshape")) return false;
  const ImportedLayer& norm = layers.at(whole.from[0].layer);
  if (!norm.is("instance_norm")) return false;
  const ImportedLayer& grouped = layers.at(norm.from[0].layer);
  if (!grouped.is("reshape")) return false;
  const Shape& image = layers.type(grouped.from[0]).shape;
  const Shape& groups = grouped.outputs[0].shape;
  const bool is_whole = groups.size() == 3 && image.size() > 2 && groups[0] == image[0] &&
                        groups[1].is_constant() && whole.outputs[0].shape == image;
  if (!is_whole || !is_per_channel(scale.parameters[0].shape, image) ||
      !is_per_channel(view.outputs[0].shape, image)) {
    return false;
  }
  if (!layers.change(layer, "group_norm", grouped.from,
                     {{"groups", groups[1].constant}, {"eps", given_real(norm, "eps", 0)}})) {
    return false;
  }
  take_names(layers.at(layer), scale, "weight");
  take_names(layers.at(layer), offset, "bias");
  return true;
}

}  // namespace

bool find_norm(LayerList& layers, int layer) {
  return find_plain_norm(layers, layer) || find_weight(layers, layer) ||
         find_offset(layers, layer) || find_group_norm(layers, layer);
}

}  // namespace stowage
