#include "tests/gpu/kernel_trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "estimator/step/kernel_table.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"

namespace stowage::test {
namespace {

using Buffer = std::vector<std::byte>;

constexpr std::size_t place_alignment = 256;

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T got(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void put_number(std::byte* at, DataType type, double value) {
  switch (type) {
    case DataType::float32:
      return put(at, static_cast<float>(value));
    case DataType::float64:
      return put(at, value);
    case DataType::float16: {
      body::Half half;
      body::narrow(static_cast<float>(value), half);
      return put(at, half);
    }
    case DataType::bfloat16: {
      body::Bfloat16 brain;
      body::narrow(static_cast<float>(value), brain);
      return put(at, brain);
    }
    case DataType::int64:
      return put(at, static_cast<std::int64_t>(value));
    case DataType::int32:
      return put(at, static_cast<std::int32_t>(value));
    case DataType::uint8:
    case DataType::boolean:
      return put(at, static_cast<std::uint8_t>(value));
  }
}

double number(const std::byte* at, DataType type) {
  switch (type) {
    case DataType::float32:
      return static_cast<double>(got<float>(at));
    case DataType::float64:
      return got<double>(at);
    case DataType::float16:
      return static_cast<double>(body::widened(got<body::Half>(at)));
    case DataType::bfloat16:
      return static_cast<double>(body::widened(got<body::Bfloat16>(at)));
    case DataType::int64:
      return static_cast<double>(got<std::int64_t>(at));
    case DataType::int32:
      return got<std::int32_t>(at);
    case DataType::uint8:
    case DataType::boolean:
      return got<std::uint8_t>(at);
  }
  return 0;
}

/// A tensor of the call, in the host's memory. In the arenas it lies at `offset`.
struct TrialTensor {
  DataType type;
  Sizes shape;
  DataType content = type;  ///< the type of its content: a uint8 tensor may hold kept values
  Buffer bytes = {};
  std::size_t offset = 0;
};

TrialTensor tensor_of(const SampleArgument& argument, DataType floating) {
  TrialTensor tensor{argument.floating ? floating : argument.type, argument.shape};
  if (argument.doubles) {
    const bool is_double = floating == DataType::float64;
    tensor.content = is_double ? DataType::float64 : DataType::float32;
    if (is_double) tensor.shape[0] *= 2;
  }
  tensor.bytes.assign(elements(tensor.shape) * static_cast<std::size_t>(element_size(tensor.type)),
                      std::byte{0xFF});
  return tensor;
}

void draw(TrialTensor& tensor, std::mt19937_64& random) {
  const DataType type = tensor.content;
  const bool is_mask = type == DataType::boolean || type == DataType::uint8;
  const auto size = static_cast<std::size_t>(element_size(type));
  for (std::size_t at = 0; at < tensor.bytes.size(); at += size) {
    const double value = is_floating_point(type)
                             ? std::uniform_real_distribution<double>(0.1, 0.9)(random)
                             : static_cast<double>((random() & 1) + (is_mask ? 0 : 1));
    put_number(&tensor.bytes[at], type, value);
  }
}

/// The scratch argument that only a device takes; nobody reads it. It is larger than the samples
/// need.
std::optional<SampleArgument> scratch_of(Kernel kernel) {
  const auto row = std::ranges::find(kernel_table(), kernel, &KernelRow::kernel);
  const auto writes = row->signature.writes.all();
  if (writes.empty() || writes.back().name != "scratch") return std::nullopt;
  constexpr std::int64_t bytes = 1 << 16;
  return SampleArgument{{bytes}, false, DataType::uint8, true};
}

/// The call's tensors, reads first. A result in place of an argument is the same tensor.
struct TrialCall {
  const KernelSample& sample;
  std::vector<TrialTensor> reads, writes;

  TrialCall(const KernelSample& of, DataType type) : sample(of) {
    std::mt19937_64 random(static_cast<std::uint64_t>(of.kernel) + 1);
    for (const SampleArgument& argument : of.reads) {
      reads.push_back(tensor_of(argument, type));
      draw(reads.back(), random);
    }
    for (const SampleArgument& argument : of.writes) writes.push_back(tensor_of(argument, type));
    if (const auto scratch = scratch_of(of.kernel)) writes.push_back(tensor_of(*scratch, type));
  }

  /// Places the tensors one behind the other. Returns the bytes that they take.
  std::size_t place() {
    std::size_t end = 0;
    const auto next = [&](TrialTensor& tensor) {
      tensor.offset = end;
      end += (tensor.bytes.size() / place_alignment + 1) * place_alignment;
    };
    for (TrialTensor& tensor : reads) next(tensor);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (i < sample.in_place.size()) {
        writes[i].offset = reads[sample.in_place[i]].offset;
        writes[i].bytes = reads[sample.in_place[i]].bytes;
      } else {
        next(writes[i]);
      }
    }
    return end;
  }

  /// Runs the call with its tensors at `base`.
  template <class Run>
  auto run(std::byte* base, Device device, Run run) const {
    std::vector<TensorArgument> read_arguments, write_arguments;
    for (const TrialTensor& tensor : reads) {
      read_arguments.push_back({base + tensor.offset, tensor.type, tensor.shape});
    }
    for (const TrialTensor& tensor : writes) {
      write_arguments.push_back({base + tensor.offset, tensor.type, tensor.shape});
    }
    const Attributes attributes = attributes_of(sample.attributes);
    return run(KernelCall{.kernel = sample.kernel,
                          .device = device,
                          .attributes = &attributes,
                          .reads = read_arguments,
                          .writes = write_arguments,
                          .engine = {},
                          .workspace = nullptr,
                          .workspace_bytes = {}});
  }
};

Result<void> run_on_host(TrialCall& call, std::size_t bytes) {
  Buffer arena(bytes);
  for (const auto* side : {&call.writes, &call.reads}) {
    for (const TrialTensor& tensor : *side) {
      std::ranges::copy(tensor.bytes, arena.begin() + static_cast<std::ptrdiff_t>(tensor.offset));
    }
  }
  auto ran = call.run(arena.data(), Device::cpu, run_host_kernel);
  if (!ran) return ran;
  for (TrialTensor& tensor : call.writes) {
    std::memcpy(tensor.bytes.data(), &arena[tensor.offset], tensor.bytes.size());
  }
  return {};
}

Result<void> run_on_backend(TrialCall& call, std::size_t size, Backend& backend) {
  const Bytes bytes(static_cast<std::int64_t>(size));
  if (auto ok = backend.allocate({.gpu = bytes, .host = bytes, .pinned = bytes}); !ok) return ok;
  std::byte* const base = backend.gpu_base();
  for (const auto* side : {&call.writes, &call.reads}) {
    for (const TrialTensor& tensor : *side) {
      auto ok = backend.write_gpu(base + tensor.offset, tensor.bytes.data(),
                                  Bytes(static_cast<std::int64_t>(tensor.bytes.size())));
      if (!ok) return ok;
    }
  }
  const auto ran =
      call.run(base, Device::gpu, [&](const KernelCall& kernel) { return backend.run(kernel); });
  if (!ran) return tl::unexpected(ran.error());
  if (auto ok = backend.synchronize(); !ok) return ok;
  for (TrialTensor& tensor : call.writes) {
    auto ok = backend.read_gpu(tensor.bytes.data(), base + tensor.offset,
                               Bytes(static_cast<std::int64_t>(tensor.bytes.size())));
    if (!ok) return ok;
  }
  return {};
}

/// The kernel whose result is this kernel's second argument, or the kernel itself.
Kernel forward_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::max_pool_backward:
      return Kernel::max_pool_forward;
    case Kernel::adaptive_max_pool_backward:
      return Kernel::adaptive_max_pool_forward;
    default:
      return kernel;
  }
}

/// Replaces drawn arguments by a forward kernel's result: a maximum's gradient needs the positions
/// of the maximum, and random numbers are not positions.
Result<void> put_forward_result(TrialCall& call, DataType type) {
  const Kernel forward = forward_of(call.sample.kernel);
  if (forward == call.sample.kernel) return {};
  TrialCall pooled(*std::ranges::find(kernel_samples(), forward, &KernelSample::kernel), type);
  pooled.reads[0].bytes = call.reads[0].bytes;
  const std::size_t bytes = pooled.place();
  if (auto ok = run_on_host(pooled, bytes); !ok) return ok;
  call.reads[1].bytes = pooled.writes[0].bytes;
  return {};
}

bool is_finite(const TrialTensor& tensor) {
  if (!is_floating_point(tensor.content)) return true;
  const auto size = static_cast<std::size_t>(element_size(tensor.content));
  for (std::size_t at = 0; at < tensor.bytes.size(); at += size) {
    if (!std::isfinite(number(&tensor.bytes[at], tensor.content))) return false;
  }
  return true;
}

double difference_of(const TrialTensor& actual, const TrialTensor& expected) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (actual.bytes == expected.bytes) return 0;
  if (!is_floating_point(actual.content)) return infinite;
  const auto size = static_cast<std::size_t>(element_size(actual.content));
  double apart = 0, largest = 0;
  for (std::size_t at = 0; at < actual.bytes.size(); at += size) {
    const double a = number(&actual.bytes[at], actual.content);
    const double b = number(&expected.bytes[at], expected.content);
    if (a == b) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return infinite;
    apart = std::max(apart, std::abs(a - b));
    largest = std::max(largest, std::abs(b));
  }
  if (apart == 0) return 0;
  return largest > 0 ? apart / largest : infinite;
}

}  // namespace

double kernel_tolerance(DataType type) {
  switch (type) {
    case DataType::float32:
      return 5e-5;
    case DataType::float64:
      return 1e-11;
    case DataType::float16:
      return 2e-3;
    case DataType::bfloat16:
      return 1.6e-2;
    default:
      return 0;
  }
}

TrialResult try_on(Backend& backend, const KernelSample& sample, DataType type) {
  TrialCall expected(sample, type);
  if (auto ok = put_forward_result(expected, type); !ok) return {0, ok.error().front().message};
  const std::size_t bytes = expected.place();
  TrialCall actual = expected;
  if (auto ok = run_on_host(expected, bytes); !ok) return {0, ok.error().front().message};
  if (auto ok = run_on_backend(actual, bytes, backend); !ok) {
    return {0, ok.error().front().message};
  }
  TrialResult result;
  for (std::size_t i = 0; i < sample.writes.size(); ++i) {  // scratch lies behind them
    if (!is_finite(expected.writes[i])) return {0, "the host's own result is not finite"};
    result.difference =
        std::max(result.difference, difference_of(actual.writes[i], expected.writes[i]));
  }
  return result;
}

}  // namespace stowage::test
