// Conversions between formats.
#include "gpu_probe/kernels/bodies/cast.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/integers.hpp"

namespace stowage::kernels {
namespace {

Launch cast_floats(const TensorArgument& x, const TensorArgument& y) {
  return in_formats(x.type, Arithmetic::device, [&]<class From, class OfFrom>() {
    return in_formats(y.type, Arithmetic::device, [&]<class To, class OfTo>() {
      using Real =
          std::conditional_t<sizeof(OfFrom) + sizeof(OfTo) == 2 * sizeof(float), float, double>;
      return each_index(body::Cast<From, To, Real>{elements<From>(x), elements<To>(y)},
                        count(x.shape));
    });
  });
}

}  // namespace

// Exact except for the rounding, in either arithmetic.
Launches cast(const KernelCall& call, Arithmetic) {
  const TensorArgument &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  const bool from_floats = is_floating_point(x.type), to_floats = is_floating_point(y.type);
  if (from_floats && to_floats) return {cast_floats(x, y)};
  const std::int64_t total = count(x.shape);
  if (from_floats) return {each_index(body::CastToInteger{any_floats(x), any_integers(y)}, total)};
  if (to_floats) return {each_index(body::CastFromInteger{any_integers(x), any_floats(y)}, total)};
  return {each_index(body::CastIntegers{any_integers(x), any_integers(y)}, total)};
}

}  // namespace stowage::kernels
