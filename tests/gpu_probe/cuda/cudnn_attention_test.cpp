// Attention by cuDNN, on a pretended cuDNN that executes the graph that it gets, operation by
// operation. The graph and its tensors are right if the results are those of our own kernel.
// Nothing here runs on a GPU.
#include "gpu_probe/cuda/cudnn_attention.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "estimator/workspace/attention_workspace.hpp"
#include "gpu_probe/cuda/cuda_kernels.hpp"
#include "gpu_probe/driver/shared_library.hpp"
#include "gpu_probe/kernels/device_source.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"
#include "tests/gpu_probe/cuda/pretended_cuda.hpp"
#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

using I = std::int64_t;

const CudnnLibrary& pretended_library() {
  static const auto library = bind_cudnn(SharedLibrary(STOWAGE_FAKE_CUDNN));
  REQUIRE(library.has_value());
  return *library;
}

/// A tensor in a 16-bit format or, for statistics, in float32.
struct Stored {
  DataType type = DataType::bfloat16;
  Sizes shape;
  std::vector<std::byte> bytes;

  Stored(DataType of, Sizes with) : type(of), shape(std::move(with)) {
    bytes.resize(elements(shape) * static_cast<std::size_t>(element_size(type)), std::byte{0xff});
  }
  [[nodiscard]] TensorArgument argument() { return {bytes.data(), type, shape}; }

  template <class Element>
  void put(float phase) {
    for (std::size_t i = 0; i < elements(shape); ++i) {
      Element element;
      body::narrow(std::sin(static_cast<float>(i) * 1.3F + phase), element);
      std::memcpy(&bytes[i * sizeof element], &element, sizeof element);
    }
  }
  void fill(float phase) {
    return type == DataType::float16 ? put<body::Half>(phase) : put<body::Bfloat16>(phase);
  }
  template <class Element>
  [[nodiscard]] std::vector<float> got() const {
    std::vector<float> values(elements(shape));
    for (std::size_t i = 0; i < values.size(); ++i) {
      Element element;
      std::memcpy(&element, &bytes[i * sizeof element], sizeof element);
      values[i] = static_cast<float>(body::widened(element));
    }
    return values;
  }
  [[nodiscard]] std::vector<float> values() const {
    return type == DataType::float32   ? got<float>()
           : type == DataType::float16 ? got<body::Half>()
                                       : got<body::Bfloat16>();
  }
};

struct AttentionModel {
  DataType type = DataType::bfloat16;
  I images = 2, heads = 2, key_heads = 2, queries = 8, keys = 8, features = 8;
  bool causal = false;
  Sizes bias = {};
};

/// The tensors of a forward and a backward call, and the calls.
struct AttentionCalls {
  Stored q, k, v, bias, y, logsumexp, dy, dq, dk, dv;
  Attributes attributes;
  std::vector<TensorArgument> forward_reads, forward_writes, backward_reads, backward_writes;
  std::vector<std::byte> workspace = std::vector<std::byte>(1 << 14, std::byte{0x5a});
  Bytes allowed = Bytes(1 << 13);

  explicit AttentionCalls(const AttentionModel& m)
      : q(m.type, {m.images, m.heads, m.queries, m.features}),
        k(m.type, {m.images, m.key_heads, m.keys, m.features}),
        v(k),
        bias(m.type, m.bias),
        y(q),
        logsumexp(DataType::float32, {m.images, m.heads, m.queries}),
        dy(q),
        dq(q),
        dk(k),
        dv(k),
        attributes(attributes_of({{"causal", m.causal},
                                  {"dropout", 0.0},
                                  {"scale", 0.4},
                                  {"implementation", std::string("cudnn")}})) {
    float phase = 0;
    for (Stored* const tensor : {&q, &k, &v, &dy, &bias}) tensor->fill(phase++);
    forward_reads = {q.argument(), k.argument(), v.argument()};
    forward_writes = {y.argument(), logsumexp.argument()};
    backward_reads = {dy.argument(), q.argument(), k.argument(),
                      v.argument(),  y.argument(), logsumexp.argument()};
    backward_writes = {dq.argument(), dk.argument(), dv.argument()};
    if (m.bias.empty()) return;
    forward_reads.push_back(bias.argument());
    backward_reads.push_back(bias.argument());
  }

  [[nodiscard]] KernelCall call(bool forward) {
    return {.kernel = forward ? Kernel::attention_forward : Kernel::attention_backward,
            .device = Device::gpu,
            .attributes = &attributes,
            .reads = forward ? forward_reads : backward_reads,
            .writes = forward ? forward_writes : backward_writes,
            .engine = "cudnn 9.19.0 eng3 k2=1",
            .workspace = workspace.data(),
            .workspace_bytes = allowed};
  }
  [[nodiscard]] std::vector<std::vector<float>> results(bool forward) const {
    if (forward) return {y.values(), logsumexp.values()};
    return {dq.values(), dk.values(), dv.values()};
  }
};

void run_own(const KernelCall& call) {
  const auto launches = kernels::launches_of(call, kernels::Arithmetic::device);
  REQUIRE_MESSAGE(launches.has_value(), (launches ? "" : launches.error().front().message));
  for (const kernels::Launch& launch : *launches) {
    launch.run(launch.values.data(), 0, launch.count);
  }
}

void check_alike(const std::vector<std::vector<float>>& actual,
                 const std::vector<std::vector<float>>& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    double largest = 0, apart = 0;
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      largest = std::max<double>(largest, std::abs(expected[i][j]));
      const double difference = std::abs(actual[i][j] - expected[i][j]);
      apart = std::max(apart, std::isfinite(difference) ? difference : INFINITY);
    }
    INFO("result ", i);
    CHECK(largest > 0);
    CHECK(apart <= tolerance * largest);
  }
}

const AttentionModel models[] = {
    {},
    {.causal = true},
    {.type = DataType::float16, .queries = 4, .keys = 12},
    {.heads = 4, .key_heads = 2, .causal = true},
    {.bias = {2, 1, 1, 8}},
    {.type = DataType::float16, .heads = 4, .key_heads = 1, .bias = {8, 8}},
};

}  // namespace

TEST_CASE("cuDNN's graph of attention computes what our own kernel does") {
  pretended_cudnn() = {};
  pretended_cudnn().workspace = 64;
  const CudaDriver driver(STOWAGE_FAKE_LANES);
  {
    const CudnnHandle handle(pretended_library());
    CudnnAttention attention(handle, driver);
    for (const AttentionModel& model : models) {
      AttentionCalls asked(model), own(model);
      const double tolerance = model.type == DataType::float16 ? 2e-3 : 1.6e-2;
      for (const bool forward : {true, false}) {
        const KernelCall call = asked.call(forward);
        REQUIRE(CudnnAttention::suits(call));
        int stream = 0;  // backward fills memory, on a stream that the driver must know
        const auto taken = attention.run(call, forward ? &stream : nullptr);
        REQUIRE_MESSAGE(taken.has_value(), (taken ? "" : taken.error().front().message));
        CHECK(*taken);
        CHECK(pretended_cudnn().last_engine == 3);
        CHECK(pretended_cudnn().stream == (forward ? &stream : nullptr));
        run_own(own.call(forward));
        check_alike(asked.results(forward), own.results(forward), tolerance);
        CHECK(std::count(asked.workspace.begin() + asked.allowed.count(), asked.workspace.end(),
                         std::byte{0x5a}) ==
              static_cast<std::ptrdiff_t>(asked.workspace.size()) - asked.allowed.count());
      }
      // Forward by our own kernel, backward by cuDNN.
      AttentionCalls mixed(model);
      run_own(mixed.call(true));
      REQUIRE(attention.run(mixed.call(false), nullptr).value());
      check_alike(mixed.results(false), own.results(false), tolerance);
    }
    CHECK(attention.remarks().empty());
  }
  CHECK(pretended_cudnn().live == 0);
}

TEST_CASE("cuDNN's scratch lies behind the query's float32 gradient, which begins as zeros") {
  pretended_cudnn() = {};
  pretended_cudnn().workspace = 64;
  const CudaDriver driver(STOWAGE_FAKE_LANES);
  const CudnnHandle handle(pretended_library());
  CudnnAttention attention(handle, driver);
  AttentionCalls calls({.images = 1, .heads = 1, .key_heads = 1, .queries = 5, .keys = 5});
  run_own(calls.call(true));
  const KernelCall call = calls.call(false);
  const Bytes before = frontend_workspace(called_attention(call));
  CHECK(before == Bytes(180));   // 5 rows of 8 features and one number
  const Bytes needed(192 + 64);  // 180 rounded up to 16 bytes, and 64
  calls.allowed = needed - Bytes(1);
  CHECK_FALSE(attention.run(calls.call(false), nullptr).value());
  CHECK(attention.remarks() ==
        std::vector<std::string>{
            "cuDNN's attention takes 256 B here and the plan has 255 B: our own runs"});
  calls.allowed = needed;
  CHECK(attention.run(calls.call(false), nullptr).value());
  CHECK(pretended_cudnn().last_workspace == calls.workspace.data() + 192);
  CHECK(calls.workspace[256] == std::byte{0x5a});
}

TEST_CASE("attention that cuDNN does not have is left to our own kernel") {
  const auto suits = [](const AttentionModel& model, const AttributeList& more, bool forward) {
    AttentionCalls calls(model);
    for (const auto& [name, value] : more) calls.attributes.set(name, value);
    return CudnnAttention::suits(calls.call(forward));
  };
  CHECK(suits({}, {}, true));
  CHECK_FALSE(suits({}, {{"dropout", 0.1}}, true));
  CHECK_FALSE(suits({}, {{"implementation", std::string("own")}}, false));
  CHECK_FALSE(suits({.type = DataType::float32}, {}, true));
  AttentionCalls biased({.bias = {8, 8}});
  Stored dbias = biased.bias;
  biased.backward_writes.push_back(dbias.argument());
  CHECK_FALSE(CudnnAttention::suits(biased.call(false)));
}

TEST_CASE("whichever call of cuDNN fails in attention, our own runs or it is named") {
  const CudaDriver driver(STOWAGE_FAKE_LANES);
  AttentionCalls calls({.causal = true});
  long left = 0, named = 0;
  for (long n = 1;; ++n) {
    pretended_cudnn() = {};
    pretended_cudnn().fail_at = n;
    {
      const auto handle = CudnnHandle::open(pretended_library());
      if (handle) {
        CudnnAttention attention(**handle, driver);
        const auto taken = attention.run(calls.call(true), nullptr);
        if (taken && !*taken) {
          ++left;
          REQUIRE(attention.remarks().size() == 1);
          CHECK(attention.remarks().front().ends_with(": our own runs"));
        }
        if (!taken) {
          ++named;
          CHECK(taken.error().front().message.find("cuDNN: ") != std::string::npos);
        }
      }
    }
    CHECK(pretended_cudnn().live == 0);
    if (pretended_cudnn().calls < n) break;
  }
  CHECK(left > 20);
  CHECK(named > 2);
}

TEST_CASE("a device's kernels give attention to cuDNN, and without cuDNN run their own") {
  pretended_driver() = {};
  pretended_driver().run = [](const char*, unsigned, unsigned, void**) { return 0; };
  const CudaDriver driver(STOWAGE_FAKE_LANES);
  const OpenedDevice device{driver, 0, "Fake", 8, 6};
  AttentionCalls calls({});
  for (const bool there : {true, false}) {
    pretended_cudnn() = {};
    CudaKernels kernels({.nvrtc = {STOWAGE_FAKE_NVRTC},
                         .cublas = {},
                         .cudnn = [&]() -> Result<const CudnnLibrary*> {
                           if (there) return &pretended_library();
                           return failure("no cuDNN");
                         },
                         .cache_folder = ""},
                        device);
    const long before = pretended_driver().launches;
    for (const bool forward : {true, false}) {
      REQUIRE(kernels.launch(calls.call(forward), nullptr).has_value());
    }
    CHECK(pretended_cudnn().executed == (there ? 2 : 0));
    CHECK(pretended_driver().launches - before == (there ? 0 : 3));
    calls.attributes.set("dropout", 0.5);
    REQUIRE(kernels.launch(calls.call(true), nullptr).has_value());
    CHECK(pretended_cudnn().executed == (there ? 2 : 0));
    calls.attributes.set("dropout", 0.0);
  }
}

TEST_CASE("convolution and attention share one handle of cuDNN and set its stream for each call") {
  pretended_cudnn() = {};
  const CudaDriver driver(STOWAGE_FAKE_LANES);
  {
    CudaKernels kernels(
        {.cudnn = []() -> Result<const CudnnLibrary*> { return &pretended_library(); }},
        {driver, 0, "Fake", 8, 6});
    Stored image(DataType::float16, {1, 1, 4, 4}), filter(DataType::float16, {1, 1, 1, 1}),
        result(image);
    const std::vector<TensorArgument> reads{image.argument(), filter.argument()};
    const std::vector<TensorArgument> writes{result.argument()};
    const Attributes none;
    const KernelCall convolution{.kernel = Kernel::convolution_forward,
                                 .device = Device::gpu,
                                 .attributes = &none,
                                 .reads = reads,
                                 .writes = writes};
    AttentionCalls calls({});
    int first = 0, second = 0;
    REQUIRE(kernels.launch(convolution, &first).has_value());
    CHECK(pretended_cudnn().stream == &first);
    REQUIRE(kernels.launch(calls.call(true), &second).has_value());
    CHECK(pretended_cudnn().stream == &second);
    REQUIRE(kernels.launch(convolution, &first).has_value());
    CHECK(pretended_cudnn().stream == &first);
    CHECK(pretended_cudnn().executed == 3);
    CHECK(pretended_cudnn().handles == 1);
  }
  CHECK(pretended_cudnn().live == 0);
}

}  // namespace stowage::test
