#include "tests/gpu_probe/kernels/device_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <thread>

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage::test {
namespace {

DeviceDistances distances;

struct Format {
  DataType type;
  std::size_t bytes;
  /// Relative to a result's largest value: some units in the last place of the type of the
  /// computation, or of the result's type.
  double tolerance;
  double DeviceDistances::*largest;
};
constexpr std::array formats{
    Format{DataType::float32, 4, 1e-5, &DeviceDistances::float32},
    Format{DataType::float64, 8, 1e-6,
           &DeviceDistances::float64},  // the host's libraries round to float32
    Format{DataType::float16, 2, 2e-3, &DeviceDistances::float16},
    Format{DataType::bfloat16, 2, 1.6e-2, &DeviceDistances::bfloat16}};

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t i, float value) {
  T element;
  body::narrow(value, element);
  std::memcpy(&bytes[i * sizeof element], &element, sizeof element);
}
template <class T>
float got(const std::vector<std::byte>& bytes, std::size_t i) {
  T element;
  std::memcpy(&element, &bytes[i * sizeof element], sizeof element);
  return static_cast<float>(body::widened(element));
}

std::vector<std::byte> in_format(const std::vector<float>& values, const Format& format) {
  std::vector<std::byte> bytes(values.size() * format.bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (format.type) {
      case DataType::float64:
        put<double>(bytes, i, values[i]);
        break;
      case DataType::float16:
        put<body::Half>(bytes, i, values[i]);
        break;
      case DataType::bfloat16:
        put<body::Bfloat16>(bytes, i, values[i]);
        break;
      default:
        put<float>(bytes, i, values[i]);
    }
  }
  return bytes;
}

std::vector<float> from_format(const std::vector<std::byte>& bytes, const Format& format) {
  std::vector<float> values(bytes.size() / format.bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = format.type == DataType::float64    ? got<double>(bytes, i)
                : format.type == DataType::float16  ? got<body::Half>(bytes, i)
                : format.type == DataType::bfloat16 ? got<body::Bfloat16>(bytes, i)
                                                    : got<float>(bytes, i);
  }
  return values;
}

std::vector<float> rounded(const std::vector<float>& values, const Format& format) {
  return from_format(in_format(values, format), format);
}

/// Whether the call is Adafactor, whose state the libraries keep in float32 for any format of the
/// parameter.
bool keeps_float32_state(const DeviceCall& call) {
  const KernelCall named{.kernel = call.kernel, .attributes = &call.attributes};
  return call.kernel == Kernel::optimizer_update &&
         kernels::text(named, "optimizer", "").starts_with("adafactor");
}

/// The tensors of a call, each once.
struct Tensors {
  std::vector<Tensor> all;
  std::vector<bool> in_float32;            // for every tried format
  std::vector<std::size_t> reads, writes;  // into `all`

  explicit Tensors(const DeviceCall& call) {
    std::vector<const Tensor*> seen;
    const auto index_of = [&](const Tensor* tensor) {
      const auto found = std::ranges::find(seen, tensor);
      const auto index = static_cast<std::size_t>(found - seen.begin());
      if (found == seen.end()) {
        seen.push_back(tensor);
        all.push_back(*tensor);
      }
      return index;
    };
    for (const Tensor* tensor : call.reads) reads.push_back(index_of(tensor));
    for (const Tensor* tensor : call.writes) writes.push_back(index_of(tensor));
    in_float32.resize(all.size(), false);
    for (std::size_t i = 2; keeps_float32_state(call) && i < reads.size(); ++i) {
      in_float32[reads[i]] = true;
    }
    // Attention's logsumexp.
    if (call.kernel == Kernel::attention_forward && writes.size() > 1) in_float32[writes[1]] = true;
    if (call.kernel == Kernel::attention_backward) in_float32[reads[5]] = true;
  }
  [[nodiscard]] const Format& format(std::size_t i, const Format& tried) const {
    return in_float32[i] ? formats.front() : tried;
  }
};

/// The host's results for the rounded arguments.
Tensors on_host(const DeviceCall& call, Tensors tensors, const Format& format) {
  for (std::size_t i = 0; i < tensors.all.size(); ++i) {
    tensors.all[i].floats = rounded(tensors.all[i].floats, tensors.format(i, format));
  }
  std::vector<TensorArgument> reads, writes;
  for (const std::size_t i : tensors.reads) reads.push_back(tensors.all[i].argument());
  for (const std::size_t i : tensors.writes) writes.push_back(tensors.all[i].argument());
  const auto done = run_host_kernel({.kernel = call.kernel,
                                     .device = Device::cpu,
                                     .attributes = &call.attributes,
                                     .reads = reads,
                                     .writes = writes,
                                     .engine = {},
                                     .workspace = nullptr,
                                     .workspace_bytes = {}});
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().front().message));
  return tensors;
}

void run_backwards(const kernels::Launch& launch) {
  for (std::int64_t i = launch.count; i-- > 0;) launch.run(launch.values.data(), i, i + 1);
}

void run_in_threads(const kernels::Launch& launch, body::Index threads) {
  body::Group::Shared shared(threads);
  std::vector<std::thread> group;
  for (body::Index rank = 0; rank < threads; ++rank) {
    group.emplace_back([&, rank] {
      const body::Group self(rank, threads, shared);
      for (std::int64_t i = 0; i < launch.count; ++i) {
        launch.run_in_group(launch.values.data(), i, self);
        self.synchronize();
      }
    });
  }
  for (std::thread& thread : group) thread.join();
}

/// The device's results: with one thread in a group, from the last index to the first; or with
/// several threads.
Tensors on_device(const DeviceCall& call, Tensors tensors, const Format& format,
                  body::Index threads) {
  std::vector<std::vector<std::byte>> stored;
  for (std::size_t i = 0; i < tensors.all.size(); ++i) {
    stored.push_back(in_format(tensors.all[i].floats, tensors.format(i, format)));
  }
  const auto argument = [&](std::size_t i) {
    TensorArgument result = tensors.all[i].argument();
    if (result.type == DataType::float32) result.data = stored[i].data();
    if (result.type == DataType::float32) result.type = tensors.format(i, format).type;
    return result;
  };
  std::vector<TensorArgument> reads, writes;
  for (const std::size_t i : tensors.reads) reads.push_back(argument(i));
  for (const std::size_t i : tensors.writes) writes.push_back(argument(i));
  const auto launches = kernels::launches_of({.kernel = call.kernel,
                                              .device = Device::gpu,
                                              .attributes = &call.attributes,
                                              .reads = reads,
                                              .writes = writes,
                                              .engine = {},
                                              .workspace = nullptr,
                                              .workspace_bytes = {}},
                                             kernels::Arithmetic::device);
  REQUIRE_MESSAGE(launches.has_value(), (launches ? "" : launches.error().front().message));
  for (const kernels::Launch& launch : *launches) {
    if (threads > 1 && launch.run_in_group != nullptr) {
      run_in_threads(launch, threads);
    } else {
      run_backwards(launch);
    }
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (tensors.all[i].type == DataType::float32) {
      tensors.all[i].floats = from_format(stored[i], tensors.format(i, format));
    }
  }
  return tensors;
}

/// The largest difference divided by the largest expected value. Equal infinities do not differ,
/// nor do two NaN.
double difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = actual[i], e = expected[i];
    if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    const double apart = std::abs(a - e);
    worst = std::isfinite(apart) ? std::max(worst, apart) : INFINITY;
  }
  return largest > 0 ? worst / largest : worst;
}

void compare(const DeviceCall& call, const Format& format, const Tensors& actual,
             const Tensors& expected) {
  for (std::size_t i = 0; i < expected.all.size(); ++i) {
    const Tensor &a = actual.all[i], &e = expected.all[i];
    INFO(std::string(to_string(call.kernel)), " in ", std::string(to_string(format.type)),
         ", tensor ", i);
    CHECK(a.integers == e.integers);
    CHECK(a.bytes == e.bytes);
    const double apart = difference(a.floats, rounded(e.floats, expected.format(i, format)));
    CHECK(apart <= format.tolerance);
    distances.*format.largest = std::max(distances.*format.largest, apart);
  }
}

}  // namespace

void check_as_device(const DeviceCall& call) {
  const Tensors tensors(call);
  for (const Format& format : formats) {
    const Tensors expected = on_host(call, tensors, format);
    for (const body::Index threads : {1, 4}) {
      compare(call, format, on_device(call, tensors, format, threads), expected);
    }
  }
  ++distances.calls;
}

const DeviceDistances& device_distances() { return distances; }

}  // namespace stowage::test
