#include "gpu_probe/kernels/rows/row_shape.hpp"

namespace stowage::kernels {

RowShape row_shape(const KernelCall& call, const TensorArgument& x) {
  const auto axes = static_cast<std::size_t>(integer(call, "axes", 1));
  require(axes >= 1 && axes <= x.shape.size(), "{} has no {} trailing axes", shape_text(x.shape),
          axes);
  const auto split = x.shape.end() - static_cast<std::ptrdiff_t>(axes);
  RowShape r{.rows = 0,
             .width = 0,
             .row_shape = Sizes(x.shape.begin(), split),
             .width_shape = Sizes(split, x.shape.end())};
  r.rows = count(r.row_shape);
  r.width = count(r.width_shape);
  return r;
}

void require_row_statistic(std::string_view what, const TensorArgument& argument,
                           const RowShape& r) {
  require(count(argument.shape) == r.rows, "{} is {}, {} values are needed", what,
          shape_text(argument.shape), r.rows);
}

body::Planes planes_of(const TensorArgument& x) {
  require(x.shape.size() >= 2, "{} has no channel axis", shape_text(x.shape));
  return {x.shape[0], x.shape[1], count(x.shape, 2, x.shape.size())};
}

}  // namespace stowage::kernels
