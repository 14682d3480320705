#include "planner/problem/host.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "planner/problem/rates.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {
namespace {

SourceTextPtr text(std::string words) {
  return std::make_shared<const SourceText>(SourceText{"host.yaml", std::move(words)});
}

}  // namespace

TEST_CASE("host file: the generic desktop") {
  const std::string path = testing::source_path("/configs/hosts/generic.yaml");
  std::ifstream file(path);
  std::stringstream words;
  words << file.rdbuf();
  const Result<Host> host =
      load_host(std::make_shared<const SourceText>(SourceText{path, words.str()}));
  REQUIRE(host.has_value());
  CHECK(host->name == "generic desktop");
  CHECK(host->memory == 32_GiB);
  CHECK(host->pinned_limit == 16_GiB);
  CHECK(host->cpu_flops == 400e9);
  CHECK(host->memory_bandwidth == 40e9);
  CHECK(host->kernel_latency == doctest::Approx(2e-6));
  CHECK(host->link_latency == doctest::Approx(10e-6));
  CHECK(host->h2d_bandwidth == 0);
  CHECK(host->source == path);
}

TEST_CASE("host file: half of the memory may be pinned unless it says otherwise") {
  const Result<Host> host =
      load_host(text("name: small\n"
                     "memory: 8 GiB\n"
                     "cpu_flops: 0.1 TFLOP/s\n"
                     "memory_bandwidth: 20 GB/s\n"));
  REQUIRE(host.has_value());
  CHECK(host->pinned_limit == 4_GiB);
  CHECK(host->cpu_flops == doctest::Approx(100e9));
}

TEST_CASE("host file: all mistakes at once, each with its place") {
  const Result<Host> host =
      load_host(text("name: odd\n"
                     "memroy: 8 GiB\n"
                     "cpu_flops: 400\n"
                     "memory_bandwidth: [40 GB/s]\n"
                     "kernel_latency: -2 us\n"));
  REQUIRE_FALSE(host.has_value());
  CHECK(render(host.error()) ==
        "host.yaml:2:1: error: unknown key 'memroy' in a host file\n"
        "  memroy: 8 GiB\n"
        "  ^~~~~~\n"
        "  did you mean 'memory'?\n"
        "host.yaml:3:12: error: 'cpu_flops' takes a rate such as 400 GFLOP/s, not '400'\n"
        "  cpu_flops: 400\n"
        "             ^~~\n"
        "host.yaml:4:19: error: 'memory_bandwidth' takes a rate such as 40 GB/s, not a list\n"
        "  memory_bandwidth: [40 GB/s]\n"
        "                    ^\n"
        "host.yaml:5:17: error: 'kernel_latency' takes a time such as 2 us, not '-2 us'\n"
        "  kernel_latency: -2 us\n"
        "                  ^~~~~\n"
        "host.yaml: error: the host lacks 'memory'\n");
}

TEST_CASE("host file: no more can be pinned than there is") {
  const Result<Host> host =
      load_host(text("name: odd\n"
                     "memory: 8 GiB\n"
                     "pinned_limit: 9 GiB\n"
                     "cpu_flops: 400 GFLOP/s\n"
                     "memory_bandwidth: 40 GB/s\n"));
  REQUIRE_FALSE(host.has_value());
  CHECK(render(host.error()) ==
        "host.yaml:3:15: error: 'pinned_limit' is 9.0 GiB and 'memory' "
        "only 8.0 GiB\n"
        "  pinned_limit: 9 GiB\n"
        "                ^~~~~\n");
}

TEST_CASE("rates: the link is the host's where it knows, else the card's") {
  Card card;
  card.fp32_flops = 10e12;
  card.memory_bandwidth = 500e9;
  card.h2d_bandwidth = 25e9;
  card.d2h_bandwidth = 26e9;
  Host host;
  host.cpu_flops = 400e9;
  host.memory_bandwidth = 40e9;
  host.d2h_bandwidth = 6e9;
  const Rates rates = make_rates(card, host);
  CHECK(rates.h2d_bandwidth == 25e9);
  CHECK(rates.d2h_bandwidth == 6e9);
  CHECK(h2d_seconds(rates, Bytes(25'000'000)) == doctest::Approx(10e-6 + 1e-3));
  CHECK(d2h_seconds(rates, Bytes(6'000'000)) == doctest::Approx(10e-6 + 1e-3));
}

TEST_CASE("rates: a kernel takes the longer of its arithmetic and its memory traffic") {
  SizedStep step;
  step.flops = {10e9, 1};
  step.bytes_moved = {1, 5e9};
  Rates rates;
  rates.gpu_flops = 10e12;
  rates.gpu_bandwidth = 500e9;
  rates.cpu_flops = 100e9;
  rates.cpu_bandwidth = 50e9;
  CHECK(gpu_seconds(rates, step, NodeId{0}) == doctest::Approx(1e-3 + 5e-6));
  CHECK(gpu_seconds(rates, step, NodeId{1}) == doctest::Approx(10e-3 + 5e-6));
  CHECK(cpu_seconds(rates, step, NodeId{0}) == doctest::Approx(0.1 + 2e-6));
  CHECK(cpu_seconds(rates, step, NodeId{1}) == doctest::Approx(0.1 + 2e-6));
}

}  // namespace stowage
