#include "gpu_probe/host/kernels/single_floats.hpp"

namespace stowage::host {
namespace {

bool is_short(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

template <class T>
std::vector<float> widened_from(const std::byte* data, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const T* const elements = reinterpret_cast<const T*>(data);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = body::widened(elements[i]);
  return values;
}

template <class T>
void store_rounded_to(const std::vector<float>& values, std::byte* data) {
  T* const elements = reinterpret_cast<T*>(data);
  for (std::size_t i = 0; i < values.size(); ++i) body::narrow(values[i], elements[i]);
}

}  // namespace

std::vector<float> widened(const std::byte* data, DataType type, std::int64_t count) {
  return type == DataType::float16 ? widened_from<body::Half>(data, count)
                                   : widened_from<body::Bfloat16>(data, count);
}

void store_rounded(const std::vector<float>& values, std::byte* data, DataType type) {
  if (type == DataType::float16) {
    store_rounded_to<body::Half>(values, data);
  } else {
    store_rounded_to<body::Bfloat16>(values, data);
  }
}

SingleFloats::SingleFloats(const TensorArgument& tensor)
    : tensor_(tensor), is_copy_(is_short(tensor.type)) {
  if (!is_copy_) {
    own_ = mutable_floats(tensor);
    return;
  }
  require_type(tensor, tensor.type);
  copy_ = widened(tensor.data, tensor.type, count(tensor.shape));
}

void SingleFloats::store() const {
  if (is_copy_) store_rounded(copy_, tensor_.data, tensor_.type);
}

void run_in_single_floats(const KernelCall& call, KernelFunction run) {
  std::vector<SingleFloats> reads, writes;
  std::vector<TensorArgument> read_arguments, written_arguments;
  const auto add = [](const TensorArgument& argument, std::vector<SingleFloats>& copies,
                      std::vector<TensorArgument>& arguments) {
    arguments.push_back(argument);
    if (!is_short(argument.type)) return;
    // A vector's elements keep their address when it is moved.
    float* const data = copies.emplace_back(argument).data();
    arguments.back().data = reinterpret_cast<std::byte*>(data);
    arguments.back().type = DataType::float32;
  };
  for (const TensorArgument& argument : call.reads) add(argument, reads, read_arguments);
  for (const TensorArgument& argument : call.writes) add(argument, writes, written_arguments);
  KernelCall in_float32 = call;
  in_float32.reads = read_arguments;
  in_float32.writes = written_arguments;
  run(in_float32);
  for (const SingleFloats& written : writes) written.store();
}

}  // namespace stowage::host
