// Compares recurrent layers as a device runs them, with products by a pretended cuBLAS and cells of
// our own, with the host's: forward and backward, each also on the reserve of the other side.
// Nothing here runs on a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "estimator/step/rnn_reserve.hpp"
#include "estimator/step/rnn_scratch.hpp"
#include "gpu_probe/cuda/cublas.hpp"
#include "gpu_probe/host/host_kernels.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"
#include "gpu_probe/kernels/rows/rnn_work.hpp"
#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

/// A tensor with its own bytes, which are NaN at first and do not move.
struct Held {
  Held(Sizes shape, DataType type)
      : bytes(elements(shape) * static_cast<std::size_t>(element_size(type)), std::byte{0xFF}),
        argument{bytes.data(), type, std::move(shape)} {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  Held(Held&&) = default;
  Held& operator=(Held&&) = default;
  ~Held() = default;

  std::vector<std::byte> bytes;
  TensorArgument argument;

  void draw(int& seed) {
    const body::Floats to = kernels::any_floats(argument);
    for (std::size_t i = 0; i < elements(argument.shape); ++i) {
      seed = (seed * 37 + 11) % 101;
      to.set(static_cast<body::Index>(i), (seed - 50) / 80.0);
    }
  }
};
using AllHeld = std::vector<Held>;

std::vector<TensorArgument> arguments_of(const AllHeld& tensors) {
  std::vector<TensorArgument> arguments;
  for (const Held& tensor : tensors) arguments.push_back(tensor.argument);
  return arguments;
}

struct RnnCase {
  const char* cell;
  std::int64_t gates, layers, directions, seq, batch, in, hidden;
  bool has_bias, batch_first;
  double dropout;
  DataType type;
  [[nodiscard]] std::size_t states() const { return gates == 4 ? 2 : 1; }
};

Attributes attributes_of_case(const RnnCase& c) {
  return attributes_of({{"cell", std::string(c.cell)},
                        {"layers", c.layers},
                        {"bidirectional", c.directions == 2},
                        {"batch_first", c.batch_first},
                        {"dropout", c.dropout},
                        {"seed", std::int64_t{5}}});
}

Sizes sequence_shape(const RnnCase& c, std::int64_t width) {
  return c.batch_first ? Sizes{c.batch, c.seq, width} : Sizes{c.seq, c.batch, width};
}

/// x, the first states, the weights.
AllHeld first_reads(const RnnCase& c) {
  AllHeld tensors;
  tensors.emplace_back(sequence_shape(c, c.in), c.type);
  for (std::size_t i = 0; i < c.states(); ++i) {
    tensors.emplace_back(Sizes{c.layers * c.directions, c.batch, c.hidden}, c.type);
  }
  for (std::int64_t lane = 0; lane < c.layers * c.directions; ++lane) {
    const std::int64_t rows = c.gates * c.hidden;
    const std::int64_t in = lane < c.directions ? c.in : c.directions * c.hidden;
    tensors.emplace_back(Sizes{rows, in}, c.type);
    tensors.emplace_back(Sizes{rows, c.hidden}, c.type);
    for (int bias = 0; c.has_bias && bias < 2; ++bias) tensors.emplace_back(Sizes{rows}, c.type);
  }
  return tensors;
}

std::int64_t value_bytes(const RnnCase& c) { return c.type == DataType::float64 ? 8 : 4; }

Held scratch_of(const RnnCase& c, bool forward) {
  RnnSizes sizes{.gates = c.gates,
                 .layers = c.layers,
                 .directions = c.directions,
                 .in = c.in,
                 .hidden = c.hidden,
                 .copies = element_size(c.type) == 2};
  const AllHeld tensors = first_reads(c);
  for (std::size_t i = 1 + c.states(); i < tensors.size(); ++i) {
    sizes.weights += static_cast<std::int64_t>(elements(tensors[i].argument.shape));
  }
  const RnnScratch wanted = forward ? rnn_forward_scratch(sizes) : rnn_backward_scratch(sizes);
  const std::int64_t values =
      c.seq * c.batch * wanted.of_position + c.batch * wanted.of_sequence + wanted.once;
  return {{values * value_bytes(c)}, DataType::uint8};
}

/// y, the last states, the reserve, the scratch.
AllHeld forward_results(const RnnCase& c) {
  AllHeld tensors;
  tensors.emplace_back(sequence_shape(c, c.directions * c.hidden), c.type);
  for (std::size_t i = 0; i < c.states(); ++i) {
    tensors.emplace_back(Sizes{c.layers * c.directions, c.batch, c.hidden}, c.type);
  }
  const std::int64_t kept = rnn_reserve_values(c.cell, c.layers, c.directions, c.hidden);
  tensors.emplace_back(Sizes{c.seq * c.batch * kept * value_bytes(c)}, DataType::uint8);
  tensors.push_back(scratch_of(c, true));
  return tensors;
}

void run_on_host(const KernelCall& call) {
  const auto done = run_host_kernel(call);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().front().message));
}

void run_as_device(const KernelCall& call) {
  const auto blas = Cublas::open({STOWAGE_FAKE_BLAS});
  REQUIRE(blas.has_value());
  for (const auto& work : kernels::rnn_work(call)) {
    if (const auto* const product = std::get_if<kernels::Product>(&work)) {
      REQUIRE((*blas)->run(*product, {}).has_value());
    } else {
      const auto& launch = std::get<kernels::Launch>(work);
      launch.run(launch.values.data(), 0, launch.count);
    }
  }
}

void run_case(void (*run)(const KernelCall&), const RnnCase& c, Kernel kernel, const AllHeld& reads,
              const AllHeld& writes) {
  const Attributes attributes = attributes_of_case(c);
  const auto read = arguments_of(reads), written = arguments_of(writes);
  run({.kernel = kernel,
       .device = Device::gpu,
       .attributes = &attributes,
       .reads = read,
       .writes = written,
       .engine = {},
       .workspace = nullptr,
       .workspace_bytes = {}});
}

/// The largest difference divided by the largest magnitude; all values must be finite.
double apart(const TensorArgument& actual, const TensorArgument& expected) {
  const body::Floats a = kernels::any_floats(actual), e = kernels::any_floats(expected);
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < elements(expected.shape); ++i) {
    const auto at = static_cast<body::Index>(i);
    REQUIRE(std::isfinite(a.at<double>(at)));
    largest = std::max(largest, std::abs(e.at<double>(at)));
    worst = std::max(worst, std::abs(a.at<double>(at) - e.at<double>(at)));
  }
  return worst == 0 ? 0 : worst / largest;
}

/// The reserve's values as a tensor.
TensorArgument values_kept(const RnnCase& c, const Held& reserve) {
  const DataType type = c.type == DataType::float64 ? DataType::float64 : DataType::float32;
  return {reserve.argument.data, type, {reserve.argument.shape[0] / value_bytes(c)}};
}

double tolerated(DataType type) {
  return type == DataType::float64    ? 1e-13
         : type == DataType::float32  ? 1e-5
         : type == DataType::bfloat16 ? 0x1p-7
                                      : 0x1p-10;
}

// Runs forward on both sides and compares results and reserves. Then runs backward on each side
// with the reserve of the other, and compares the gradients with the host's own.
void check_case(const RnnCase& c) {
  INFO(c.cell, ", ", c.layers, " layers, ", c.directions, " directions, ",
       std::string(to_string(c.type)));
  int seed = 3;
  AllHeld reads = first_reads(c);
  for (Held& tensor : reads) tensor.draw(seed);
  const AllHeld host = forward_results(c), device = forward_results(c);
  run_case(run_on_host, c, Kernel::rnn_forward, reads, host);
  run_case(run_as_device, c, Kernel::rnn_forward, reads, device);
  const std::size_t reserve = 1 + c.states();
  for (std::size_t i = 0; i < reserve; ++i) {
    CHECK(apart(device[i].argument, host[i].argument) <= tolerated(c.type));
  }
  CHECK(apart(values_kept(c, device[reserve]), values_kept(c, host[reserve])) <= 1e-5);

  Held dy(host[0].argument.shape, c.type);
  dy.draw(seed);
  AllHeld last;
  for (std::size_t i = 0; i < c.states(); ++i) {
    last.emplace_back(host[1].argument.shape, c.type).draw(seed);
  }
  const auto backward_of = [&](void (*run)(const KernelCall&), const AllHeld& forward) {
    AllHeld all, results;
    const auto give = [&](const Held& tensor) {
      all.emplace_back(tensor.argument.shape, tensor.argument.type).bytes = tensor.bytes;
      all.back().argument.data = all.back().bytes.data();
    };
    for (const Held& tensor : reads) give(tensor);
    give(forward[0]);
    give(forward[reserve]);
    give(dy);
    for (const Held& gradient : last) give(gradient);
    for (const Held& tensor : reads) results.emplace_back(tensor.argument.shape, c.type);
    results.push_back(scratch_of(c, false));
    run_case(run, c, Kernel::rnn_backward, all, results);
    return results;
  };
  const AllHeld expected = backward_of(run_on_host, host);
  for (const auto& [run, kept] :
       {std::pair(&run_as_device, &host), std::pair(&run_on_host, &device)}) {
    const AllHeld results = backward_of(run, *kept);
    for (std::size_t i = 0; i + 1 < results.size(); ++i) {
      INFO("gradient ", i);
      CHECK(apart(results[i].argument, expected[i].argument) <= tolerated(c.type));
    }
  }
}

}  // namespace

TEST_CASE("recurrent layers as a device runs them are the host's, with either side's reserve") {
  const DataType f32 = DataType::float32;
  for (const RnnCase& c : {RnnCase{"lstm", 4, 1, 1, 4, 3, 5, 6, true, false, 0, f32},
                           RnnCase{"lstm", 4, 2, 2, 4, 3, 5, 6, true, true, 0.3, f32},
                           RnnCase{"gru", 3, 2, 2, 4, 3, 7, 2, true, true, 0, f32},
                           RnnCase{"gru", 3, 1, 1, 1, 2, 3, 4, false, false, 0, f32},
                           RnnCase{"tanh", 1, 3, 2, 4, 2, 3, 4, true, false, 0.2, f32},
                           RnnCase{"relu", 1, 2, 1, 5, 1, 3, 4, false, true, 0, f32}}) {
    for (const DataType type : {f32, DataType::float64, DataType::float16, DataType::bfloat16}) {
      RnnCase in_type = c;
      in_type.type = type;
      check_case(in_type);
    }
  }
}

TEST_CASE("a device's recurrent layer without scratch, or with too little, is refused") {
  const RnnCase c{"lstm", 4, 1, 1, 4, 3, 5, 6, true, false, 0, DataType::float32};
  const AllHeld reads = first_reads(c);
  AllHeld writes = forward_results(c);
  const Attributes attributes = attributes_of_case(c);
  const auto refusal_of = [&] {
    const auto read = arguments_of(reads), written = arguments_of(writes);
    std::string text;
    try {
      static_cast<void>(kernels::rnn_work({.kernel = Kernel::rnn_forward,
                                           .device = Device::gpu,
                                           .attributes = &attributes,
                                           .reads = read,
                                           .writes = written,
                                           .engine = {},
                                           .workspace = nullptr,
                                           .workspace_bytes = {}}));
    } catch (const kernels::KernelError& refusal) {
      text = refusal.what();
    }
    return text;
  };
  CHECK(refusal_of() == "");
  writes.back().argument.shape[0] -= 4;
  CHECK(refusal_of() == "the scratch is too small by 1 values");
  writes.pop_back();
  CHECK(refusal_of() == "a GPU takes scratch for a recurrent layer, which the call lacks");
}

}  // namespace stowage::test
