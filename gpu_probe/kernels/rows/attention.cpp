// Scaled dot product attention: forward; backward in two launches, with a third for the gradient of
// a bias.
//
// float32 and 16-bit formats are computed in float, on the host too: these are matrix products,
// which the host computes in float elsewhere.
#include <algorithm>
#include <array>
#include <cmath>

#include "gpu_probe/kernels/bodies/attention_backward.hpp"
#include "gpu_probe/kernels/bodies/attention_forward.hpp"
#include "gpu_probe/kernels/rows/attention_call.hpp"
#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/mask_draw.hpp"
#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage::kernels {
namespace {

// Threads of a device that share a tile; each has a block of 4 by 4.
constexpr std::int64_t tile_threads = 64;

body::AttentionShape shape_of(const KernelCall& call, const AttentionCall& a) {
  const Sizes &q = a.query->shape, &k = a.key->shape, &v = a.value->shape;
  const double p = real(call, "dropout", 0);
  body::AttentionShape shape{.images = q[0],
                             .heads = q[1],
                             .sharing = q[1] / k[1],
                             .queries = q[2],
                             .keys = k[2],
                             .features = q[3],
                             .value_features = v[3],
                             .scale = attention_scale(call),
                             .causal = boolean(call, "causal", false),
                             .bias_image = 0,
                             .bias_head = 0,
                             .bias_query = 0,
                             .bias_key = 0,
                             .draw = mask_draw(p, integer(call, "seed", 0)),
                             .kept = p > 0 ? mask_scale(p) : 0};
  if (a.bias == nullptr) return shape;
  const Sizes steps = broadcast_strides(a.bias->shape, {q[0], q[1], q[2], k[2]});
  shape.bias_image = steps[0];
  shape.bias_head = steps[1];
  shape.bias_query = steps[2];
  shape.bias_key = steps[3];
  return shape;
}

template <class T>
body::AttentionOperands<T> operands_of(const KernelCall& call, const AttentionCall& a) {
  return {elements<T>(*a.query), elements<T>(*a.key), elements<T>(*a.value),
          a.bias == nullptr ? nullptr : elements<T>(*a.bias), shape_of(call, a)};
}

std::int64_t tiles_of(std::int64_t length, std::int64_t side) { return (length + side - 1) / side; }

/// A launch over tiles of `rows`, each of which goes over all of `others`.
template <class Body>
Launch each_tile(const Body& body, std::int64_t count, std::int64_t others) {
  Launch launch = each_group(body, count, tile_threads);
  launch.elements = Body::side * others;
  return launch;
}

template <class T, class Real>
void push_backward(const KernelCall& call, const AttentionCall& a, Launches& launches) {
  constexpr std::int64_t side = body::tile_side<Real>;
  const body::AttentionGradients<T, Real> from{operands_of<T>(call, a), elements<T>(*a.output),
                                               elements<T>(*a.gradient), any_floats(*a.logsumexp)};
  const body::AttentionShape& shape = from.operands.shape;
  launches.push_back(
      each_tile(body::AttentionBackwardQuery<T, Real>{from, elements<T>(call.writes[0])},
                shape.images * shape.heads * tiles_of(shape.queries, side) *
                    body::attention_parts(shape.features),
                shape.keys));
  launches.push_back(
      each_tile(body::AttentionBackwardKey<T, Real>{from, elements<T>(call.writes[1]),
                                                    elements<T>(call.writes[2])},
                shape.images * (shape.heads / shape.sharing) * tiles_of(shape.keys, side) *
                    body::attention_parts(std::max(shape.features, shape.value_features)),
                shape.sharing * shape.queries));
  if (call.writes.size() < 4) return;
  std::array<std::int64_t, 4> extents{1, 1, 1, 1};
  std::ranges::copy_backward(a.bias->shape, extents.end());
  const auto [images, heads, queries, keys] = extents;
  const std::int64_t tiles = images * heads * tiles_of(queries, side) * tiles_of(keys, side);
  launches.push_back(
      each_tile(body::AttentionBackwardBias<T, Real>{from, elements<T>(call.writes[3]), images,
                                                     heads, queries, keys},
                tiles,
                shape.images * shape.heads * shape.queries * shape.keys /
                    (side * std::max<std::int64_t>(tiles, 1))));
}

}  // namespace

double attention_scale(const KernelCall& call) {
  const double scale = real(call, "scale", 0);
  const auto features = static_cast<double>(call.reads[0].shape[3]);
  return scale > 0 ? scale : 1 / std::sqrt(features);
}

AttentionCall attention_call(const KernelCall& call) {
  const bool forward = call.kernel == Kernel::attention_forward;
  const std::size_t first = forward ? 0 : 1, without_bias = forward ? 3 : 6;
  AttentionCall a{.query = &call.reads[first],
                  .key = &call.reads[first + 1],
                  .value = &call.reads[first + 2],
                  .bias = call.reads.size() > without_bias ? &call.reads[without_bias] : nullptr,
                  .output = forward ? call.writes.data() : &call.reads[4],
                  .logsumexp = nullptr,
                  .gradient = forward ? nullptr : call.reads.data()};
  if (!forward) a.logsumexp = &call.reads[5];
  if (forward && call.writes.size() > 1) a.logsumexp = &call.writes[1];
  require(!forward || call.writes.size() <= 2, "writes {} tensors instead of 1 or 2",
          call.writes.size());
  const Sizes &q = a.query->shape, &k = a.key->shape, &v = a.value->shape;
  require(q.size() == 4 && k.size() == 4 && v.size() == 4 && k[1] > 0 && q[1] % k[1] == 0 &&
              k == Sizes({q[0], k[1], k[2], q[3]}) && v == Sizes({q[0], k[1], k[2], v[3]}),
          "query {}, key {} and value {} do not belong together", shape_text(q), shape_text(k),
          shape_text(v));
  require_shape("the result", *a.output, {q[0], q[1], q[2], v[3]});
  if (a.logsumexp != nullptr) {
    require_shape("logsumexp", *a.logsumexp, {q[0], q[1], q[2]});
    require(element_size(a.logsumexp->type) >= 4, "logsumexp is {} where float32 is needed",
            to_string(a.logsumexp->type));
  }
  if (!forward) require_same_shape("dy", *a.gradient, *a.output);
  return a;
}

Launches attention_forward(const KernelCall& call, Arithmetic) {
  const AttentionCall a = attention_call(call);
  return {in_formats(a.query->type, Arithmetic::device, [&]<class T, class Real>() {
    const body::AttentionForward<T, Real> body{
        operands_of<T>(call, a), elements<T>(*a.output),
        a.logsumexp == nullptr ? no_floats : any_floats(*a.logsumexp)};
    const body::AttentionShape& shape = body.operands.shape;
    return each_tile(body,
                     shape.images * shape.heads * tiles_of(shape.queries, body.side) *
                         body::attention_parts(shape.value_features),
                     shape.keys);
  })};
}

Launches attention_backward(const KernelCall& call, Arithmetic) {
  const AttentionCall a = attention_call(call);
  for (std::size_t i = 0; i < 3; ++i) {
    require_same_shape("a gradient", call.writes[i], call.reads[i + 1]);
  }
  if (call.writes.size() > 3) {
    require(a.bias != nullptr, "there is no bias to have a gradient");
    require_same_shape("dbias", call.writes[3], *a.bias);
  }
  Launches launches;
  in_formats(a.query->type, Arithmetic::device,
             [&]<class T, class Real>() { push_backward<T, Real>(call, a, launches); });
  return launches;
}

}  // namespace stowage::kernels
