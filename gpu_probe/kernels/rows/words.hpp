// Elements that are moved without regard to their type: as words of their size.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// Calls make.operator()<Word>() with the word of the type's size.
template <class Make>
auto in_words(DataType type, Make make) {
  switch (element_size(type)) {
    case 1:
      return make.template operator()<body::Byte>();
    case 2:
      return make.template operator()<body::Word16>();
    case 4:
      return make.template operator()<body::Word32>();
    default:
      return make.template operator()<body::Word64>();
  }
}

/// Throws KernelError where the tensor has elements and no address.
template <class Word>
[[nodiscard]] Word* words(const TensorArgument& argument) {
  require_type(argument, argument.type);
  return reinterpret_cast<Word*>(argument.data);
}

/// A number in the type's format, as a word. It is rounded to nearest; for integer types towards
/// zero.
template <class Word>
[[nodiscard]] Word word_of(DataType type, double value) {
  std::uint64_t bits = 0;
  const auto put = [&bits](auto element) { std::memcpy(&bits, &element, sizeof element); };
  const auto narrowed = [&]<class T>(T element) {
    body::narrow(value, element);
    put(element);
  };
  switch (type) {
    case DataType::float32:
      narrowed(float{});
      break;
    case DataType::float64:
      put(value);
      break;
    case DataType::float16:
      narrowed(body::Half{});
      break;
    case DataType::bfloat16:
      narrowed(body::Bfloat16{});
      break;
    case DataType::boolean:
      put(static_cast<body::Byte>(value != 0));
      break;
    default:
      put(static_cast<std::int64_t>(value));
  }
  return static_cast<Word>(bits);
}

inline void require_same_type(const TensorArgument& a, const TensorArgument& b) {
  require(a.type == b.type, "{} and {} differ in type", to_string(a.type), to_string(b.type));
}

}  // namespace stowage::kernels
