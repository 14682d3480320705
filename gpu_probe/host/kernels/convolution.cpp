// Convolutions by oneDNN, except in float64, which oneDNN does not have: those run in loops of our
// own.
//
// A call's tensors are plain row-major. Where oneDNN prefers a blocked layout, the data is
// reordered into scratch memory and back. A transposed convolution is the data gradient of the
// convolution whose weight has the same layout [in, out/groups, k...]. So its three kernels are the
// convolution's three, with the roles of the tensors exchanged.
#include <algorithm>
#include <dnnl.hpp>
#include <unordered_map>

#include "gpu_probe/host/kernels/plain_convolution.hpp"
#include "gpu_probe/host/kernels/single_floats.hpp"
#include "gpu_probe/kernels/bodies/bias.hpp"
#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/row_shape.hpp"
#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage::host {
namespace {

using dnnl::memory;

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& lane() {
  static dnnl::stream stream(cpu());
  return stream;
}

/// A convolution in oneDNN's terms: x is its input and y its output, whichever tensor the call
/// computes.
struct Geometry {
  Sizes x, w, y;
  memory::dims stride, dilation, pad_before, pad_after;
  bool grouped = false;
  Sizes whole_x;  ///< x with the rows that no window covers; empty: x has none
};

/// Leaves out the rows of x that no window covers, if there are as many as the stride or more:
/// oneDNN refuses those.
void leave_out_uncovered(Geometry& g) {
  const Sizes whole = g.x;
  for (std::size_t i = 0; i < g.stride.size(); ++i) {
    if (g.pad_after[i] > -g.stride[i]) continue;
    g.x[i + 2] += g.pad_after[i];
    g.pad_after[i] = 0;
  }
  if (g.x != whole) g.whole_x = whole;
}

/// Calls visit(offset in the whole tensor, offset in the part at its front, length) for each run of
/// elements along the last axis that both have.
template <typename Visit>
void each_run(const Sizes& whole, const Sizes& part, Visit visit) {
  const Sizes strides = row_major_strides(whole);
  Sizes rows = part, steps = strides;
  rows.pop_back();
  steps.pop_back();
  walk(rows, steps,
       [&](std::int64_t row, std::int64_t at) { visit(at, row * part.back(), part.back()); });
}

/// The geometry with all rows of x, and with oneDNN's dilation.
Geometry geometry(const KernelCall& call, const TensorArgument& x, const TensorArgument& w,
                  const TensorArgument& y) {
  const std::size_t rank = x.shape.size();
  require(rank >= 3 && rank <= 5, "a convolution of {} has 1 to 3 spatial axes",
          shape_text(x.shape));
  require(w.shape.size() == rank && y.shape.size() == rank,
          "input {}, weight {} and output {} differ in rank", shape_text(x.shape),
          shape_text(w.shape), shape_text(y.shape));
  const std::size_t spatial = rank - 2;
  const std::int64_t groups = integer(call, "groups", 1);
  Geometry g{.x = x.shape, .w = w.shape, .y = y.shape};
  require(groups >= 1 && x.shape[1] % groups == 0 && y.shape[1] % groups == 0 &&
              x.shape[1] / groups == w.shape[1] && y.shape[1] == w.shape[0] &&
              x.shape[0] == y.shape[0],
          "input {}, weight {} and output {} do not belong together with {} groups",
          shape_text(x.shape), shape_text(w.shape), shape_text(y.shape), groups);
  g.grouped = groups > 1;
  if (g.grouped) {
    g.w[0] /= groups;
    g.w.insert(g.w.begin(), groups);
  }
  g.stride = list(call, "stride", spatial, 1);
  g.dilation = list(call, "dilation", spatial, 1);
  g.pad_before = list(call, "padding", spatial, 0);
  // In a transposed convolution, rows of x behind the last window, so that several sizes of x give
  // one size of y.
  const Sizes unused = list(call, "output_padding", spatial, 0);
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t reach = (w.shape[i + 2] - 1) * g.dilation[i] + 1;
    const std::int64_t padded = x.shape[i + 2] + 2 * g.pad_before[i] - unused[i];
    const std::int64_t size = (padded - reach) / g.stride[i] + 1;
    require(size == y.shape[i + 2], "input {} and weight {} give {} instead of {} along axis {}",
            shape_text(x.shape), shape_text(w.shape), size, y.shape[i + 2], i + 2);
    g.pad_after.push_back((y.shape[i + 2] - 1) * g.stride[i] + reach - x.shape[i + 2] -
                          g.pad_before[i]);
    g.dilation[i] -= 1;  // oneDNN counts the elements left out
  }
  return g;
}

memory::desc plain(const Sizes& shape) {
  return {shape, memory::data_type::f32, row_major_strides(shape)};
}
memory::desc preferred(const Sizes& shape) {
  return {shape, memory::data_type::f32, memory::format_tag::any};
}

/// The call's plain tensor, in the layout that the primitive needs.
memory laid_out(const Sizes& shape, const float* data, const memory::desc& wanted) {
  memory there(plain(shape), cpu(), const_cast<float*>(data));
  if (there.get_desc() == wanted) return there;
  memory here(wanted, cpu());
  dnnl::reorder(there, here).execute(lane(), there, here);
  return here;
}

/// Runs the primitive and writes its result to `data`, in the plain layout.
void execute_into(const dnnl::primitive& primitive, std::unordered_map<int, memory> arguments,
                  int result, const Sizes& shape, float* data, const memory::desc& wanted) {
  memory there(plain(shape), cpu(), data);
  const bool direct = there.get_desc() == wanted;
  memory here = direct ? there : memory(wanted, cpu());
  arguments.emplace(result, here);
  primitive.execute(lane(), arguments);
  if (!direct) dnnl::reorder(here, there).execute(lane(), here, there);
  lane().wait();
}

// oneDNN 3 (Ubuntu 24.04) describes a primitive in one step, oneDNN 2 (Debian 12) in two.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {cpu(), arguments...};
#else
  return {typename Primitive::desc(arguments...), cpu()};
#endif
}

template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe_backward(
    const dnnl::convolution_forward::primitive_desc& hint, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {cpu(), arguments..., hint};
#else
  return {typename Primitive::desc(arguments...), cpu(), hint};
#endif
}

dnnl::convolution_forward::primitive_desc forward_description(const Geometry& g, bool bias) {
  using Forward = dnnl::convolution_forward;
  const auto kind = dnnl::prop_kind::forward_training;
  const auto direct = dnnl::algorithm::convolution_direct;
  if (bias) {
    const Sizes channels{g.y[1]};
    return describe<Forward>(kind, direct, preferred(g.x), preferred(g.w), plain(channels),
                             preferred(g.y), g.stride, g.dilation, g.pad_before, g.pad_after);
  }
  return describe<Forward>(kind, direct, preferred(g.x), preferred(g.w), preferred(g.y), g.stride,
                           g.dilation, g.pad_before, g.pad_after);
}

/// The primitive description of the gradient of the data, or of the weights.
template <typename Primitive>
typename Primitive::primitive_desc backward_description(const Geometry& g) {
  return describe_backward<Primitive>(
      forward_description(g, false), dnnl::algorithm::convolution_direct, preferred(g.x),
      preferred(g.w), preferred(g.y), g.stride, g.dilation, g.pad_before, g.pad_after);
}

/// The part of x that windows cover. It is copied to `storage` if that is not all of x.
const float* covered_part(const Geometry& g, const float* x, std::vector<float>& storage) {
  if (g.whole_x.empty()) return x;
  storage.resize(static_cast<std::size_t>(count(g.x)));
  each_run(g.whole_x, g.x, [&](std::int64_t from, std::int64_t to, std::int64_t length) {
    std::copy_n(x + from, length, storage.begin() + to);
  });
  return storage.data();
}

void forward(const Geometry& g, const float* all_of_x, const float* w, const float* bias,
             float* y) {
  std::vector<float> storage;
  const float* x = covered_part(g, all_of_x, storage);
  const auto description = forward_description(g, bias != nullptr);
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, laid_out(g.x, x, description.src_desc())},
      {DNNL_ARG_WEIGHTS, laid_out(g.w, w, description.weights_desc())}};
  if (bias != nullptr) {
    arguments.emplace(DNNL_ARG_BIAS, laid_out({g.y[1]}, bias, description.bias_desc()));
  }
  execute_into(dnnl::convolution_forward(description), std::move(arguments), DNNL_ARG_DST, g.y, y,
               description.dst_desc());
}

void backward_data(const Geometry& g, const float* dy, const float* w, float* all_of_dx) {
  std::vector<float> storage(g.whole_x.empty() ? 0 : static_cast<std::size_t>(count(g.x)));
  float* const dx = storage.empty() ? all_of_dx : storage.data();
  using Backward = dnnl::convolution_backward_data;
  const auto description = backward_description<Backward>(g);
  execute_into(Backward(description),
               {{DNNL_ARG_DIFF_DST, laid_out(g.y, dy, description.diff_dst_desc())},
                {DNNL_ARG_WEIGHTS, laid_out(g.w, w, description.weights_desc())}},
               DNNL_ARG_DIFF_SRC, g.x, dx, description.diff_src_desc());
  if (storage.empty()) return;
  std::fill_n(all_of_dx, count(g.whole_x), 0.0F);
  each_run(g.whole_x, g.x, [&](std::int64_t to, std::int64_t from, std::int64_t length) {
    std::copy_n(dx + from, length, all_of_dx + to);
  });
}

void backward_filter(const Geometry& g, const float* all_of_x, const float* dy, float* dw) {
  std::vector<float> storage;
  const float* x = covered_part(g, all_of_x, storage);
  using Backward = dnnl::convolution_backward_weights;
  const auto description = backward_description<Backward>(g);
  execute_into(Backward(description),
               {{DNNL_ARG_SRC, laid_out(g.x, x, description.src_desc())},
                {DNNL_ARG_DIFF_DST, laid_out(g.y, dy, description.diff_dst_desc())}},
               DNNL_ARG_DIFF_WEIGHTS, g.w, dw, description.diff_weights_desc());
}

/// Adds to each element of y the bias of its channel.
void add_bias(const TensorArgument& y, const TensorArgument& bias) {
  const body::Planes p = planes_of(y);
  in_formats(y.type, Arithmetic::host, [&]<class T, class Real>() {
    const body::BiasOfChannels<T, Real> add{elements<T>(y), p.channels, p.area, any_floats(bias)};
    for (std::int64_t i = 0; i < count(y.shape); ++i) add(i);
  });
}

/// Computes one of the convolution's tensors from the other two. oneDNN adds `bias`, which may be
/// null: only to float32 results.
void convolve(Computed computed, const KernelCall& call, const TensorArgument& x,
              const TensorArgument& w, const TensorArgument& y,
              const TensorArgument* bias = nullptr) {
  Geometry g = geometry(call, x, w, y);
  if (x.type == DataType::float64) {
    for (std::int64_t& dilation : g.dilation) dilation += 1;
    return plain_convolution(computed,
                             {.x = x.shape,
                              .w = w.shape,
                              .y = y.shape,
                              .stride = g.stride,
                              .dilation = g.dilation,
                              .padding = g.pad_before,
                              .groups = integer(call, "groups", 1)},
                             elements<double>(x), elements<double>(w), elements<double>(y));
  }
  leave_out_uncovered(g);
  SingleFloats xs(x), ws(w), ys(y);
  switch (computed) {
    case Computed::y:
      forward(g, xs.data(), ws.data(), bias == nullptr ? nullptr : floats(*bias), ys.data());
      return ys.store();
    case Computed::x:
      backward_data(g, ys.data(), ws.data(), xs.data());
      return xs.store();
    case Computed::w:
      backward_filter(g, xs.data(), ys.data(), ws.data());
      return ws.store();
  }
}

/// The third argument, which has a value for each channel of y; null: the call has none.
const TensorArgument* bias_of(const KernelCall& call) {
  if (call.reads.size() < 3) return nullptr;
  require_shape("bias", call.reads[2], {call.writes[0].shape[1]});
  return &call.reads[2];
}

}  // namespace

void convolution_forward(const KernelCall& call) {
  const auto &x = call.reads[0], &w = call.reads[1], &y = call.writes[0];
  const TensorArgument* const bias = bias_of(call);
  const bool is_fused = bias != nullptr && y.type == DataType::float32;
  convolve(Computed::y, call, x, w, y, is_fused ? bias : nullptr);
  // In the other formats the bias is added to the rounded result, as on a device.
  if (bias != nullptr && !is_fused) add_bias(y, *bias);
}

void convolution_backward_data(const KernelCall& call) {
  const auto &dy = call.reads[0], &w = call.reads[1], &dx = call.writes[0];
  convolve(Computed::x, call, dx, w, dy);
}

void convolution_backward_filter(const KernelCall& call) {
  const auto &x = call.reads[0], &dy = call.reads[1], &dw = call.writes[0];
  convolve(Computed::w, call, x, dw, dy);
}

void transposed_convolution_forward(const KernelCall& call) {
  const auto &x = call.reads[0], &w = call.reads[1], &y = call.writes[0];
  const TensorArgument* const bias = bias_of(call);
  convolve(Computed::x, call, y, w, x);
  if (bias != nullptr) add_bias(y, *bias);
}

void transposed_convolution_backward_data(const KernelCall& call) {
  const auto &dy = call.reads[0], &w = call.reads[1], &dx = call.writes[0];
  convolve(Computed::y, call, dy, w, dx);
}

void transposed_convolution_backward_filter(const KernelCall& call) {
  const auto &x = call.reads[0], &dy = call.reads[1], &dw = call.writes[0];
  convolve(Computed::w, call, dy, dw, x);
}

}  // namespace stowage::host
