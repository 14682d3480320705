// Functions of two numbers, element by element; operands are repeated to the result's shape.
#include "gpu_probe/kernels/bodies/binary.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/strided.hpp"

namespace stowage::kernels {
namespace {

template <class Operation>
Launches binary_floats(const KernelCall& call, Arithmetic arithmetic) {
  const auto &a = call.reads[0], &b = call.reads[1], &y = call.writes[0];
  const bool alike =
      a.shape == y.shape && b.shape == y.shape && a.type == y.type && b.type == y.type;
  return {in_formats(y.type, arithmetic, [&]<class T, class Real>() {
    if (alike) {
      return each_index(
          body::Binary<T, Real, Operation>{elements<T>(a), elements<T>(b), elements<T>(y)},
          count(y.shape));
    }
    return each_index(
        body::BroadcastBinary<T, Real, Operation>{any_floats(a), any_floats(b), elements<T>(y),
                                                  repeated(a.shape, y.shape),
                                                  repeated(b.shape, y.shape)},
        count(y.shape));
  })};
}

template <class Operation>
Launches binary_numbers(const KernelCall& call, Arithmetic arithmetic) {
  const auto &a = call.reads[0], &b = call.reads[1], &y = call.writes[0];
  if (is_floating_point(y.type)) return binary_floats<Operation>(call, arithmetic);
  return {each_index(
      body::BinaryOfIntegers<Operation>{elements<body::Index>(a), elements<body::Index>(b),
                                        elements<body::Index>(y), repeated(a.shape, y.shape),
                                        repeated(b.shape, y.shape)},
      count(y.shape))};
}

}  // namespace

Launches add(const KernelCall& call, Arithmetic arithmetic) {
  return binary_numbers<body::Sum>(call, arithmetic);
}
Launches subtract(const KernelCall& call, Arithmetic arithmetic) {
  return binary_numbers<body::Difference>(call, arithmetic);
}
Launches multiply(const KernelCall& call, Arithmetic arithmetic) {
  return binary_numbers<body::Product>(call, arithmetic);
}
Launches divide(const KernelCall& call, Arithmetic arithmetic) {
  return binary_floats<body::Quotient>(call, arithmetic);
}

Launches maximum(const KernelCall& call, Arithmetic arithmetic) {
  return binary_floats<body::Larger>(call, arithmetic);
}
Launches minimum(const KernelCall& call, Arithmetic arithmetic) {
  return binary_floats<body::Smaller>(call, arithmetic);
}

Launches extremum_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &a = call.reads[0], &b = call.reads[1], &dy = call.reads[2], &da = call.writes[0];
  require_same_shape("da", da, dy);
  const std::string operation = text(call, "operation", "");
  require(operation == "maximum" || operation == "minimum", "attribute 'operation' is '{}'",
          operation);
  return {in_formats(dy.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::ExtremumBackward<T, Real>{any_floats(a), any_floats(b), elements<T>(dy),
                                        elements<T>(da), repeated(a.shape, dy.shape),
                                        repeated(b.shape, dy.shape), operation == "minimum"},
        count(dy.shape));
  })};
}

Launches accumulate(const KernelCall& call, Arithmetic arithmetic) {
  require_same_shape("b", call.reads[1], call.reads[0]);
  require_same_shape("the result", call.writes[0], call.reads[0]);
  return binary_floats<body::Sum>(call, arithmetic);
}

Launches scale(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  const double factor = real(call, "factor", 1), offset = real(call, "offset", 0);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::Scale<T, Real>{elements<T>(x), elements<T>(y),
                                           static_cast<Real>(factor), static_cast<Real>(offset)},
                      count(x.shape));
  })};
}

}  // namespace stowage::kernels
