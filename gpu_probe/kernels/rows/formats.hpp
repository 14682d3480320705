// Makes a body's arguments from a call's: addresses of elements in their formats.
#pragma once

#include <concepts>

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage::kernels {

template <class T>
inline constexpr DataType data_type_of = DataType::uint8;
template <>
inline constexpr DataType data_type_of<float> = DataType::float32;
template <>
inline constexpr DataType data_type_of<double> = DataType::float64;
template <>
inline constexpr DataType data_type_of<body::Half> = DataType::float16;
template <>
inline constexpr DataType data_type_of<body::Bfloat16> = DataType::bfloat16;
template <>
inline constexpr DataType data_type_of<body::Index> = DataType::int64;
template <>
inline constexpr DataType data_type_of<body::Int32> = DataType::int32;

/// Calls make.operator()<T, Real>() with a tensor's floating-point format and the format in which
/// it is computed. KernelError for other types.
template <class Make>
auto in_formats(DataType type, Arithmetic arithmetic, Make make) {
  switch (type) {
    case DataType::float32:
      return arithmetic == Arithmetic::host ? make.template operator()<float, double>()
                                            : make.template operator()<float, float>();
    case DataType::float64:
      return make.template operator()<double, double>();
    case DataType::float16:
      return make.template operator()<body::Half, float>();
    case DataType::bfloat16:
      return make.template operator()<body::Bfloat16, float>();
    default:
      throw KernelError(
          fmt::format("a tensor is {} where a floating-point format is needed", to_string(type)));
  }
}

/// The tensor's elements. KernelError where it has another type, or has elements and no address.
template <class T>
[[nodiscard]] T* elements(const TensorArgument& argument) {
  require_type(argument, data_type_of<T>);
  return reinterpret_cast<T*>(argument.data);
}

}  // namespace stowage::kernels
