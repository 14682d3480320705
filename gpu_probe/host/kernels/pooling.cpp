// Pooling over any number of spatial axes. A window is clipped to the input; an average's divisor
// counts the window clipped to the padded input (`count_include_pad`) or to the input itself, as
// PyTorch's does, ceil mode included.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// Along one axis: the input positions begin, begin + step, ... < end, and the size that an
/// average divides by.
struct Span {
  std::int64_t begin, end, step, divisor;
};

/// The windows of a call: one list of spans an axis, a span for each output position.
struct Windows {
  std::int64_t planes;  // batch times channels
  Sizes in, out;        // spatial sizes
  std::vector<std::vector<Span>> spans;
};

void require_planes(const TensorArgument& x, const TensorArgument& y) {
  require(x.shape.size() >= 3 && x.shape.size() == y.shape.size() && x.shape[0] == y.shape[0] &&
              x.shape[1] == y.shape[1],
          "input {} and output {} do not belong together", shape_text(x.shape),
          shape_text(y.shape));
}

Windows fixed_windows(const KernelCall& call, const TensorArgument& x, const TensorArgument& y) {
  require_planes(x, y);
  const std::size_t spatial = x.shape.size() - 2;
  require(has(call, "kernel"), "attribute 'kernel' is missing");
  const Sizes kernel = list(call, "kernel", spatial, 1),
              padding = list(call, "padding", spatial, 0),
              dilation = list(call, "dilation", spatial, 1);
  const Sizes stride = has(call, "stride") ? list(call, "stride", spatial, 1) : kernel;
  const bool count_padding = boolean(call, "count_include_pad", true);
  Windows w{.planes = x.shape[0] * x.shape[1],
            .in = Sizes(x.shape.begin() + 2, x.shape.end()),
            .out = Sizes(y.shape.begin() + 2, y.shape.end())};
  for (std::size_t axis = 0; axis < spatial; ++axis) {
    const std::int64_t size = w.in[axis], reach = (kernel[axis] - 1) * dilation[axis] + 1;
    auto& spans = w.spans.emplace_back();
    for (std::int64_t at = 0; at < w.out[axis]; ++at) {
      const std::int64_t first = at * stride[axis] - padding[axis];
      const std::int64_t padded_end = std::min(first + reach, size + padding[axis]);
      std::int64_t begin = first;
      while (begin < 0) begin += dilation[axis];
      const std::int64_t end = std::min(first + reach, size);
      require(begin < end, "output {} is too large for input {}", shape_text(y.shape),
              shape_text(x.shape));
      spans.push_back(
          {begin, end, dilation[axis], count_padding ? padded_end - first : end - begin});
    }
  }
  return w;
}

/// Adaptive pooling: output position o takes inputs floor(o n / m) to ceil((o + 1) n / m).
Windows adaptive_windows(const TensorArgument& x, const TensorArgument& y) {
  require_planes(x, y);
  Windows w{.planes = x.shape[0] * x.shape[1],
            .in = Sizes(x.shape.begin() + 2, x.shape.end()),
            .out = Sizes(y.shape.begin() + 2, y.shape.end())};
  for (std::size_t axis = 0; axis < w.in.size(); ++axis) {
    auto& spans = w.spans.emplace_back();
    const std::int64_t n = w.in[axis], m = w.out[axis];
    for (std::int64_t o = 0; o < m; ++o) {
      const std::int64_t begin = o * n / m, end = ((o + 1) * n + m - 1) / m;
      spans.push_back({begin, end, 1, end - begin});
    }
  }
  return w;
}

/// visit(input offset) for the elements of the window at `at`, in row-major order.
template <typename Visit>
void each_of_window(const Windows& w, const Sizes& at, std::size_t axis, std::int64_t offset,
                    Visit& visit) {
  if (axis == w.in.size()) return visit(offset);
  const Span& span = w.spans[axis][static_cast<std::size_t>(at[axis])];
  for (std::int64_t i = span.begin; i < span.end; i += span.step) {
    each_of_window(w, at, axis + 1, offset * w.in[axis] + i, visit);
  }
}

/// begin(output offset, first input offset of the plane, divisor) gives what is called for each
/// element of that output's window.
template <typename PerWindow>
void each_window(const Windows& w, PerWindow per_window) {
  const std::int64_t in_area = count(w.in), out_area = count(w.out);
  for (std::int64_t plane = 0; plane < w.planes; ++plane) {
    Sizes at(w.out.size(), 0);
    for (std::int64_t o = 0; o < out_area; ++o) {
      std::int64_t divisor = 1;
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        divisor *= w.spans[axis][static_cast<std::size_t>(at[axis])].divisor;
      }
      per_window(plane * out_area + o, plane * in_area, divisor, at);
      for (std::size_t axis = at.size(); axis-- > 0;) {
        if (++at[axis] < w.out[axis]) break;
        at[axis] = 0;
      }
    }
  }
}

void average_forward(const Windows& w, const float* x, float* y) {
  each_window(w, [&](std::int64_t o, std::int64_t plane, std::int64_t divisor, const Sizes& at) {
    double sum = 0;
    auto take = [&](std::int64_t i) { sum += x[plane + i]; };
    each_of_window(w, at, 0, 0, take);
    y[o] = static_cast<float>(sum / static_cast<double>(divisor));
  });
}

void average_backward(const Windows& w, const float* dy, float* dx) {
  std::fill_n(dx, w.planes * count(w.in), 0.0F);
  each_window(w, [&](std::int64_t o, std::int64_t plane, std::int64_t divisor, const Sizes& at) {
    const float share = dy[o] / static_cast<float>(divisor);
    auto give = [&](std::int64_t i) { dx[plane + i] += share; };
    each_of_window(w, at, 0, 0, give);
  });
}

/// NaN counts as the largest, as in PyTorch.
void maximum_forward(const KernelCall& call, const Windows& w) {
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  std::int64_t* indices = nullptr;
  if (call.writes.size() == 2) {
    require_same_shape("indices", call.writes[1], call.writes[0]);
    indices = mutable_integers(call.writes[1]);
  }
  each_window(w, [&](std::int64_t o, std::int64_t plane, std::int64_t, const Sizes& at) {
    float best = -std::numeric_limits<float>::infinity();
    std::int64_t where = -1;
    auto take = [&](std::int64_t i) {
      const float value = x[plane + i];
      if (where < 0 || value > best || std::isnan(value)) {
        best = value;
        where = i;
      }
    };
    each_of_window(w, at, 0, 0, take);
    y[o] = best;
    if (indices != nullptr) indices[o] = where;
  });
}

void maximum_backward(const KernelCall& call, const Windows& w) {
  require_same_shape("dy", call.reads[2], call.reads[1]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const float *x = floats(call.reads[0]), *y = floats(call.reads[1]), *dy = floats(call.reads[2]);
  float* dx = mutable_floats(call.writes[0]);
  std::fill_n(dx, count(call.writes[0].shape), 0.0F);
  each_window(w, [&](std::int64_t o, std::int64_t plane, std::int64_t, const Sizes& at) {
    bool given = false;
    auto give = [&](std::int64_t i) {
      if (!given && x[plane + i] == y[o]) {
        dx[plane + i] += dy[o];
        given = true;
      }
    };
    each_of_window(w, at, 0, 0, give);
    // No element equals the maximum: x or y is not what the forward pass saw. NaN says so.
    if (!given) dx[plane + w.spans[0][0].begin] = std::numeric_limits<float>::quiet_NaN();
  });
}

}  // namespace

void max_pool_forward(const KernelCall& call) {
  maximum_forward(call, fixed_windows(call, call.reads[0], call.writes[0]));
}

void max_pool_backward(const KernelCall& call) {
  maximum_backward(call, fixed_windows(call, call.reads[0], call.reads[1]));
}

void adaptive_max_pool_forward(const KernelCall& call) {
  maximum_forward(call, adaptive_windows(call.reads[0], call.writes[0]));
}

void adaptive_max_pool_backward(const KernelCall& call) {
  maximum_backward(call, adaptive_windows(call.reads[0], call.reads[1]));
}

void avg_pool_forward(const KernelCall& call) {
  average_forward(fixed_windows(call, call.reads[0], call.writes[0]), floats(call.reads[0]),
                  mutable_floats(call.writes[0]));
}

void avg_pool_backward(const KernelCall& call) {
  average_backward(fixed_windows(call, call.writes[0], call.reads[0]), floats(call.reads[0]),
                   mutable_floats(call.writes[0]));
}

void adaptive_avg_pool_forward(const KernelCall& call) {
  average_forward(adaptive_windows(call.reads[0], call.writes[0]), floats(call.reads[0]),
                  mutable_floats(call.writes[0]));
}

void adaptive_avg_pool_backward(const KernelCall& call) {
  average_backward(adaptive_windows(call.writes[0], call.reads[0]), floats(call.reads[0]),
                   mutable_floats(call.writes[0]));
}

}  // namespace stowage::host
