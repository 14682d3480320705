// Pooling over one to three spatial axes.
#include "gpu_probe/kernels/bodies/pooling.hpp"

#include <array>

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/integers.hpp"

namespace stowage::kernels {
namespace {

using body::WindowAxis;

struct Pooling {
  body::Windows windows;
  std::int64_t planes;  ///< batch times channels

  [[nodiscard]] std::int64_t inputs() const { return planes * windows.in_area(); }
  [[nodiscard]] std::int64_t outputs() const { return planes * windows.out_area(); }
};

/// The attributes: one number for each spatial axis.
struct FixedWindows {
  Sizes kernel, stride, padding, dilation;
  bool counts_padding;

  FixedWindows(const KernelCall& call, std::size_t spatial)
      : kernel(list(call, "kernel", spatial, 1)),
        stride(has(call, "stride") ? list(call, "stride", spatial, 1) : kernel),
        padding(list(call, "padding", spatial, 0)),
        dilation(list(call, "dilation", spatial, 1)),
        counts_padding(boolean(call, "count_include_pad", true)) {}
};

void require_planes(const TensorArgument& x, const TensorArgument& y) {
  require(x.shape.size() >= 3 && x.shape.size() == y.shape.size() && x.shape[0] == y.shape[0] &&
              x.shape[1] == y.shape[1],
          "input {} and output {} do not belong together", shape_text(x.shape),
          shape_text(y.shape));
  require(x.shape.size() <= 5, "{} has more than three spatial axes", shape_text(x.shape));
}

/// `axis_at(i)` returns the windows along spatial axis i, whose sizes are those of x and y.
template <class AxisAt>
Pooling pooling(const TensorArgument& x, const TensorArgument& y, AxisAt axis_at) {
  Pooling p{.windows = {}, .planes = x.shape[0] * x.shape[1]};
  constexpr WindowAxis none{1, 1, 1, 1, 0, 1, true};
  const std::array<WindowAxis*, 3> axes{&p.windows.first, &p.windows.second, &p.windows.third};
  const std::size_t lacking = 5 - x.shape.size();
  for (std::size_t i = 0; i < 3; ++i) {
    *axes[i] = i < lacking ? none : axis_at(i - lacking);
    if (i < lacking) continue;
    axes[i]->in = x.shape[i - lacking + 2];
    axes[i]->out = y.shape[i - lacking + 2];
  }
  return p;
}

void require_inside(const WindowAxis& axis, const TensorArgument& x, const TensorArgument& y) {
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const body::Window window = axis.window(o);
    require(window.begin < window.end, "output {} is too large for input {}", shape_text(y.shape),
            shape_text(x.shape));
  }
}

Pooling fixed(const KernelCall& call, const TensorArgument& x, const TensorArgument& y) {
  require_planes(x, y);
  require(has(call, "kernel"), "attribute 'kernel' is missing");
  const FixedWindows f(call, x.shape.size() - 2);
  const Pooling p = pooling(x, y, [&](std::size_t i) {
    require(f.kernel[i] >= 1 && f.stride[i] >= 1 && f.padding[i] >= 0 && f.dilation[i] >= 1,
            "a window of {}, by steps of {}, padding {}, dilation {}", f.kernel[i], f.stride[i],
            f.padding[i], f.dilation[i]);
    return WindowAxis{
        0, 0, f.kernel[i], f.stride[i], f.padding[i], f.dilation[i], f.counts_padding};
  });
  for (const WindowAxis& axis : {p.windows.first, p.windows.second, p.windows.third}) {
    require_inside(axis, x, y);
  }
  return p;
}

Pooling adaptive(const TensorArgument& x, const TensorArgument& y) {
  require_planes(x, y);
  return pooling(x, y, [](std::size_t) { return WindowAxis{0, 0, 0, 1, 0, 1, true}; });
}

/// The number of elements in the window of an output in the middle.
std::int64_t window_elements(const body::Windows& windows) {
  std::int64_t elements = 1;
  for (const WindowAxis& axis : {windows.first, windows.second, windows.third}) {
    if (axis.out > 0) elements *= axis.window(axis.out / 2).count();
  }
  return elements;
}

Launches average_forward(const KernelCall& call, Arithmetic arithmetic, const Pooling& p) {
  constexpr std::int64_t large = 32;
  const auto &x = call.reads[0], &y = call.writes[0];
  const std::int64_t window = window_elements(p.windows);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    const body::AveragePoolForward<T, Real> body{elements<T>(x), elements<T>(y), p.windows};
    return window < large ? each_index(body, p.outputs())
                          : each_group(body, p.outputs(), threads_for(window));
  })};
}

Launches average_backward(const KernelCall& call, Arithmetic arithmetic, const Pooling& p) {
  const auto &dy = call.reads[0], &dx = call.writes[0];
  return {in_formats(dy.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::AveragePoolBackward<T, Real>{elements<T>(dy), elements<T>(dx), p.windows},
        p.inputs());
  })};
}

Launches maximum_forward(const KernelCall& call, Arithmetic arithmetic, const Pooling& p) {
  const auto &x = call.reads[0], &y = call.writes[0];
  body::Integers indices = no_integers;
  if (call.writes.size() == 2) {
    require_same_shape("indices", call.writes[1], y);
    indices = any_integers(call.writes[1]);
  }
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::MaximumPoolForward<T, Real>{elements<T>(x), elements<T>(y), indices, p.windows},
        p.outputs());
  })};
}

Launches maximum_backward(const KernelCall& call, Arithmetic arithmetic, const Pooling& p) {
  const auto &x = call.reads[0], &y = call.reads[1], &dy = call.reads[2], &dx = call.writes[0];
  require_same_shape("dy", dy, y);
  require_same_shape("dx", dx, x);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::MaximumPoolBackward<T, Real>{elements<T>(x), elements<T>(y), elements<T>(dy),
                                           elements<T>(dx), p.windows},
        p.inputs());
  })};
}

}  // namespace

Launches max_pool_forward(const KernelCall& call, Arithmetic arithmetic) {
  return maximum_forward(call, arithmetic, fixed(call, call.reads[0], call.writes[0]));
}
Launches max_pool_backward(const KernelCall& call, Arithmetic arithmetic) {
  return maximum_backward(call, arithmetic, fixed(call, call.reads[0], call.reads[1]));
}

Launches adaptive_max_pool_forward(const KernelCall& call, Arithmetic arithmetic) {
  return maximum_forward(call, arithmetic, adaptive(call.reads[0], call.writes[0]));
}
Launches adaptive_max_pool_backward(const KernelCall& call, Arithmetic arithmetic) {
  return maximum_backward(call, arithmetic, adaptive(call.reads[0], call.reads[1]));
}

Launches avg_pool_forward(const KernelCall& call, Arithmetic arithmetic) {
  return average_forward(call, arithmetic, fixed(call, call.reads[0], call.writes[0]));
}
Launches avg_pool_backward(const KernelCall& call, Arithmetic arithmetic) {
  return average_backward(call, arithmetic, fixed(call, call.writes[0], call.reads[0]));
}

Launches adaptive_avg_pool_forward(const KernelCall& call, Arithmetic arithmetic) {
  return average_forward(call, arithmetic, adaptive(call.reads[0], call.writes[0]));
}
Launches adaptive_avg_pool_backward(const KernelCall& call, Arithmetic arithmetic) {
  return average_backward(call, arithmetic, adaptive(call.writes[0], call.reads[0]));
}

}  // namespace stowage::kernels
