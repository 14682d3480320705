// FakeGraph: executes an operation graph of products, pointwise operations, reductions and
// reshapes, as attention is described, one operation after the other as cuDNN documents them.
// Virtual tensors are float32; tensors in memory have their stated format.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <vector>

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "tests/gpu_probe/device/fake_driver/fake_descriptor.hpp"

class FakeGraph {
 public:
  /// `memory`: addresses by the tensors' ids.
  FakeGraph(const Descriptor& graph, std::map<std::int64_t, void*> memory)
      : graph_(graph), memory_(std::move(memory)) {}

  /// Executes the graph. False: it has another kind of operation, or a tensor that is not virtual
  /// has no address.
  bool run() {
    const auto operations = graph_.descriptors.find(stowage::CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (operations == graph_.descriptors.end()) return false;
    try {
      for (const auto& operation : operations->second) run(*operation);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  using Sizes = std::vector<std::int64_t>;

  /// A tensor in float32, in the order of memory.
  struct Tensor {
    Sizes shape, strides;
    std::vector<float> values;

    /// The element at a place; `whole`: the shape that the tensor is repeated to. An extent of 1,
    /// or one that divides (key heads), is repeated.
    [[nodiscard]] float& at(const Sizes& place, const Sizes& whole) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < place.size(); ++i) {
        sum += place[i] / (whole[i] / shape[i]) * strides[i];
      }
      return values.at(static_cast<std::size_t>(sum));
    }
    [[nodiscard]] float& at(const Sizes& place) { return at(place, shape); }
  };

  static std::int64_t number(const Descriptor& of, int name) {
    return of.integers.at(name).front();
  }
  static const Descriptor& described(const Descriptor& operation, int name) {
    const Descriptor* const found = inner(operation, name);
    if (found == nullptr) throw std::runtime_error("an operation lacks a tensor");
    return *found;
  }

  static Tensor shaped(const Descriptor& tensor) {
    Tensor made{tensor.integers.at(stowage::CUDNN_ATTR_TENSOR_DIMENSIONS),
                tensor.integers.at(stowage::CUDNN_ATTR_TENSOR_STRIDES),
                {}};
    std::int64_t last = 0;
    for (std::size_t i = 0; i < made.shape.size(); ++i) {
      last += (made.shape[i] - 1) * made.strides[i];
    }
    made.values.resize(static_cast<std::size_t>(last + 1));
    return made;
  }

  template <class Element>
  static void copy(const void* memory, std::vector<float>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Element element;
      std::memcpy(&element, static_cast<const char*>(memory) + i * sizeof element, sizeof element);
      values[i] = static_cast<float>(stowage::body::widened(element));
    }
  }
  template <class Element>
  static void copy(const std::vector<float>& values, void* memory) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Element element;
      stowage::body::narrow(values[i], element);
      std::memcpy(static_cast<char*>(memory) + i * sizeof element, &element, sizeof element);
    }
  }

  Tensor read(const Descriptor& operation, int name) {
    const Descriptor& tensor = described(operation, name);
    const std::int64_t id = number(tensor, stowage::CUDNN_ATTR_TENSOR_UNIQUE_ID);
    if (number(tensor, stowage::CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0) return virtual_.at(id);
    Tensor made = shaped(tensor);
    const void* const memory = memory_.at(id);
    switch (number(tensor, stowage::CUDNN_ATTR_TENSOR_DATA_TYPE)) {
      case stowage::CUDNN_DATA_HALF:
        copy<stowage::body::Half>(memory, made.values);
        break;
      case stowage::CUDNN_DATA_BFLOAT16:
        copy<stowage::body::Bfloat16>(memory, made.values);
        break;
      default:
        copy<float>(memory, made.values);
    }
    return made;
  }

  void write(const Descriptor& operation, int name, Tensor made) {
    const Descriptor& tensor = described(operation, name);
    const std::int64_t id = number(tensor, stowage::CUDNN_ATTR_TENSOR_UNIQUE_ID);
    if (number(tensor, stowage::CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0) {
      virtual_[id] = std::move(made);
      return;
    }
    void* const memory = memory_.at(id);
    switch (number(tensor, stowage::CUDNN_ATTR_TENSOR_DATA_TYPE)) {
      case stowage::CUDNN_DATA_HALF:
        return copy<stowage::body::Half>(made.values, memory);
      case stowage::CUDNN_DATA_BFLOAT16:
        return copy<stowage::body::Bfloat16>(made.values, memory);
      default:
        return copy<float>(made.values, memory);
    }
  }

  void run(const Descriptor& operation) {
    switch (operation.type) {
      case stowage::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return multiply(operation);
      case stowage::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return apply(operation);
      case stowage::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduce(operation);
      case stowage::CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: {
        Tensor x = read(operation, stowage::CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
        Tensor y = shaped(described(operation, stowage::CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
        y.values = std::move(x.values);
        return write(operation, stowage::CUDNN_ATTR_OPERATION_RESHAPE_YDESC, std::move(y));
      }
      default:
        throw std::runtime_error("an operation that is not pretended");
    }
  }

  void multiply(const Descriptor& operation) {
    Tensor a = read(operation, stowage::CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    Tensor b = read(operation, stowage::CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    Tensor c = shaped(described(operation, stowage::CUDNN_ATTR_OPERATION_MATMUL_CDESC));
    const std::int64_t depth = a.shape[3];
    Sizes of_a = c.shape, of_b = c.shape;
    of_a[3] = of_b[2] = depth;
    if (b.shape[2] != depth) throw std::runtime_error("a product of other depths");
    each_place(c.shape, [&](const Sizes& place) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += double{a.at({place[0], place[1], place[2], k}, of_a)} *
               b.at({place[0], place[1], k, place[3]}, of_b);
      }
      c.at(place) = static_cast<float>(sum);
    });
    write(operation, stowage::CUDNN_ATTR_OPERATION_MATMUL_CDESC, std::move(c));
  }

  static float applied(std::int64_t mode, float x, float b) {
    switch (mode) {
      case stowage::CUDNN_POINTWISE_ADD:
        return x + b;
      case stowage::CUDNN_POINTWISE_MUL:
        return x * b;
      case stowage::CUDNN_POINTWISE_DIV:
        return x / b;
      case stowage::CUDNN_POINTWISE_SUB:
        return x - b;
      case stowage::CUDNN_POINTWISE_EXP:
        return std::exp(x);
      case stowage::CUDNN_POINTWISE_LOG:
        return std::log(x);
      case stowage::CUDNN_POINTWISE_IDENTITY:
        return x;
      case stowage::CUDNN_POINTWISE_CMP_GE:
        return x >= b ? 1 : 0;
      default:
        throw std::runtime_error("a function that is not pretended");
    }
  }

  void apply(const Descriptor& operation) {
    using namespace stowage;  // NOLINT: enumerators
    const Descriptor& function = described(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const std::int64_t mode = number(function, CUDNN_ATTR_POINTWISE_MODE);
    Tensor x = read(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    const bool two = inner(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC) != nullptr;
    const bool three = inner(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC) != nullptr;
    Tensor b = two ? read(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC) : x;
    Tensor t = three ? read(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC) : x;
    Tensor y = shaped(described(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    each_place(y.shape, [&](const Sizes& place) {
      const float of_x = x.at(place, y.shape), of_b = b.at(place, y.shape);
      if (mode == CUDNN_POINTWISE_GEN_INDEX) {
        const std::int64_t axis = number(function, CUDNN_ATTR_POINTWISE_AXIS);
        y.at(place) = static_cast<float>(place[static_cast<std::size_t>(axis)]);
      } else if (mode == CUDNN_POINTWISE_BINARY_SELECT) {
        y.at(place) = t.at(place, y.shape) != 0 ? of_x : of_b;
      } else {
        y.at(place) = applied(mode, of_x, of_b);
      }
    });
    write(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, std::move(y));
  }

  void reduce(const Descriptor& operation) {
    using namespace stowage;  // NOLINT: enumerators
    const Descriptor& how = described(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const bool largest = number(how, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
    Tensor x = read(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    Tensor y = shaped(described(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    for (float& value : y.values) value = largest ? -std::numeric_limits<float>::infinity() : 0;
    each_place(x.shape, [&](const Sizes& place) {
      float& to = y.at(place, x.shape);
      to = largest ? std::max(to, x.at(place)) : to + x.at(place);
    });
    write(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, std::move(y));
  }

  const Descriptor& graph_;
  std::map<std::int64_t, void*> memory_;
  std::map<std::int64_t, Tensor> virtual_;
};
