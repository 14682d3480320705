#include "gpu_probe/kernels/rows/integers.hpp"

namespace stowage::kernels {
namespace {

using body::IntegerFormat;

IntegerFormat integer_format(DataType type) {
  switch (type) {
    case DataType::int64:
      return IntegerFormat::int64;
    case DataType::int32:
      return IntegerFormat::int32;
    case DataType::uint8:
      return IntegerFormat::uint8;
    case DataType::boolean:
      return IntegerFormat::boolean;
    default:
      throw KernelError(
          fmt::format("a tensor is {} where whole numbers are needed", to_string(type)));
  }
}

}  // namespace

body::Integers any_integers(const TensorArgument& argument) {
  const IntegerFormat format = integer_format(argument.type);
  require_type(argument, argument.type);
  return {argument.data, format};
}

}  // namespace stowage::kernels
