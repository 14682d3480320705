// Measured times, as a file and as a replacement of rates.
#include "planner/problem/measured_times.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "planner/problem/measured_times_file.hpp"
#include "planner/problem/rates.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

const std::string two_equal_layers = R"(model: network
inputs:
  x: {shape: [batch, 32]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: first, features: 32}
  - linear: {name: second, features: 32}
  - linear: {name: other, features: 8}
loss:
  cross_entropy: {from: [other, label]}
)";

SizedStep sized(std::int64_t batch) {
  return size_storages(testing::lowered(testing::described(two_equal_layers), {}), batch).value();
}

const KernelNode& node_named(const SizedStep& step, const std::string& name) {
  for (const KernelNode& node : step.graph->nodes) {
    if (node.name == name) return node;
  }
  throw std::runtime_error("there is no node " + name);
}

SourceTextPtr text_of(std::string words) {
  return std::make_shared<const SourceText>(SourceText{"here.yaml", std::move(words)});
}

MeasuredTimes times_of(const SizedStep& step, const std::string& node, double seconds) {
  const KernelNode& measured = node_named(step, node);
  return {
      .backend = "cuda: Lab",
      .card = "generic",
      .host = "a \"quoted\" CPU",
      .gpu = {{call_of(step, measured), "linear_forward", kernel_work(step, measured), seconds}},
      .cpu = {},
      .h2d = MeasuredLink{2e-6, 8e9},
      .d2h = std::nullopt};
}

}  // namespace

TEST_CASE("calls of one shape are one call, others are not") {
  const SizedStep step = sized(4);
  const std::string first = call_of(step, node_named(step, "first.forward"));
  CHECK(first.size() == 16);
  CHECK(first == call_of(step, node_named(step, "second.forward")));
  CHECK(first != call_of(step, node_named(step, "other.forward")));
  CHECK(first != call_of(step, node_named(step, "second.backward.data")));
  const SizedStep larger = sized(8);
  CHECK(first != call_of(larger, node_named(larger, "first.forward")));
}

TEST_CASE("a measured call takes what it took, one of its kernel the rates' time in proportion") {
  const SizedStep step = sized(4);
  const Card card = generic_card(24_GiB);
  const Host host{.cpu_flops = 1e10, .memory_bandwidth = 1e10};
  const Rates plain = make_rates(card, host);
  const auto by_rates = [&](const char* node) {
    return gpu_seconds(plain, step, node_named(step, node));
  };
  const double seconds = 3 * by_rates("first.forward");
  const MeasuredTimes times = times_of(step, "first.forward", seconds);
  const Rates rates = make_rates(card, host, &times);
  const auto measured = [&](const char* node) {
    return gpu_seconds(rates, step, node_named(step, node));
  };
  CHECK(measured("first.forward") == seconds);
  CHECK(measured("second.forward") == seconds);
  CHECK(measured("other.forward") == doctest::Approx(3 * by_rates("other.forward")));
  // Of a kernel that was not measured: in the proportion of all that were.
  CHECK(measured("update.first.weight") == doctest::Approx(3 * by_rates("update.first.weight")));
  // Nothing was measured on the CPU; of the links one.
  CHECK(cpu_seconds(rates, step, NodeId{0}) == cpu_seconds(plain, step, NodeId{0}));
  CHECK(h2d_seconds(rates, Bytes(8000)) == doctest::Approx(3e-6));
  CHECK(d2h_seconds(rates, Bytes(8000)) == d2h_seconds(plain, Bytes(8000)));
}

TEST_CASE("where the host stood in for the GPU both sides take its times") {
  const SizedStep step = sized(4);
  MeasuredTimes times = times_of(step, "first.forward", 0.5);
  times.backend = "host";
  const Rates rates =
      make_rates(generic_card(24_GiB), {.cpu_flops = 1e10, .memory_bandwidth = 1e10}, &times);
  NodeId first;
  for (std::size_t i = 0; i < step.graph->nodes.size(); ++i) {
    if (step.graph->nodes[i].name == "first.forward") first = NodeId::of(i);
  }
  CHECK(gpu_seconds(rates, step, first) == 0.5);
  CHECK(cpu_seconds(rates, step, first) == 0.5);
}

TEST_CASE("measured times read back as they were written") {
  const SizedStep step = sized(4);
  MeasuredTimes made = times_of(step, "first.forward", 1.0 / 3);
  const KernelNode& update = node_named(step, "update.first.weight");
  made.cpu.push_back({call_of(step, update), "sgd_update", kernel_work(step, update), 1e-5});
  const auto read = read_measured_times(
      text_of(measured_times_yaml(made, "3 steps of 'network', batch 4")), generic_card(8_GiB));
  if (!read) FAIL(render(read.error()));
  REQUIRE(*read != nullptr);
  CHECK((*read)->backend == made.backend);
  CHECK((*read)->host == made.host);
  CHECK((*read)->h2d == made.h2d);
  CHECK_FALSE((*read)->d2h.has_value());
  REQUIRE((*read)->gpu.size() == 1);
  REQUIRE((*read)->cpu.size() == 1);
  const MeasuredCall& call = (*read)->gpu.front();
  CHECK(call.call == made.gpu.front().call);
  CHECK(call.seconds == 1.0 / 3);
  CHECK(call.work.kind == KernelKind::product);
  CHECK(call.work.rows == made.gpu.front().work.rows);
  CHECK(call.work.depth == made.gpu.front().work.depth);
  CHECK(call.work.flops == made.gpu.front().work.flops);
  CHECK((*read)->cpu.front().kernel == "sgd_update");
  CHECK((*read)->cpu.front().work.rows == 0);
}

TEST_CASE("a calibration without measured times has none, and of another card they are refused") {
  const Card card = generic_card(8_GiB);
  const auto none = read_measured_times(text_of("host: {cpu_flops: 9 GFLOP/s}\n"), card);
  REQUIRE(none.has_value());
  CHECK(*none == nullptr);
  const auto other = read_measured_times(
      text_of("measured:\n  backend: host\n  card: lab card\n  host: here\n  calls: []\n"), card);
  REQUIRE_FALSE(other.has_value());
  CHECK(render(other.error()) ==
        "here.yaml:3:9: error: these times were measured for plans on 'lab card', and this one is "
        "on 'generic'\n"
        "    card: lab card\n"
        "          ^~~~~~~~\n");
}

TEST_CASE("mistakes in measured times are reported with their places") {
  const auto read = read_measured_times(
      text_of("measured:\n"
              "  backend: host\n"
              "  card: generic\n"
              "  host: here\n"
              "  h2d: {latency: 3}\n"
              "  calls:\n"
              "    - {call: aa, on: gpu, kernel: add, kind: pointwise, format: fp32, flops: 1, "
              "bytes: 1, seconds: 1}\n"
              "    - {call: aa, on: gpu, kernel: add, kind: pointwise, format: fp32, flops: 1, "
              "bytes: 1, seconds: -1}\n"
              "    - {call: bb, on: tpu, kernel: add, kind: pointwise, format: fp32, flops: 1, "
              "bytes: 1, seconds: 1}\n"),
      generic_card(8_GiB));
  REQUIRE_FALSE(read.has_value());
  std::string told;
  for (const Diagnostic& mistake : read.error()) {
    told += fmt::format("{}:{}: {}\n", mistake.span.line, mistake.span.column, mistake.message);
  }
  CHECK(told ==
        "5:18: 'latency' must be a time such as 2 us, not '3'\n"
        "8:7: the call 'aa' is there twice\n"
        "8:100: 'seconds' must be seconds, from 0 to 1000000, not '-1'\n"
        "9:22: 'on' must be gpu or cpu, not 'tpu'\n");
}

}  // namespace stowage
