// Host files and measured times with changed bytes: each is read, or refused with diagnostics that
// can be shown; what is read gives usable rates. STOWAGE_MUTATIONS: how many to try.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "planner/problem/host.hpp"
#include "planner/problem/measured_times_file.hpp"
#include "planner/problem/rates.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

constexpr unsigned broken_machine_seed = 20271;

constexpr const char* a_run = R"(measured:
  backend: host
  card: generic
  host: "a CPU"
  h2d: {latency: 2 us, bandwidth: 8 GB/s}
  calls:
    - {call: aa, on: gpu, kernel: add, kind: pointwise, format: fp32, flops: 1, bytes: 1, seconds: 1}
    - {call: bb, on: cpu, kernel: add, kind: pointwise, format: fp32, flops: 1, bytes: 1, seconds: 2}
)";

SourceTextPtr machine_text(const std::string& bytes) {
  return std::make_shared<const SourceText>(SourceText{"broken", bytes});
}

std::string read_host_file(const std::string& bytes) {
  const auto host = load_host(machine_text(bytes));
  if (!host) return render(host.error());
  CHECK(host->pinned_limit <= host->memory);
  return "";
}

std::string read_times(const std::string& bytes) {
  const Card card = generic_card(8_GiB);
  const auto times = read_measured_times(machine_text(bytes), card);
  if (!times) return render(times.error());
  if (*times != nullptr) {
    CHECK(h2d_seconds(make_rates(card, Host{}, times->get()), 1_MiB) >= 0);
  }
  return "";
}

std::string with_words_changed(std::string bytes, std::mt19937& random) {
  for (unsigned edit = 0; edit <= random() % 3; ++edit) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.insert(at, 1 + random() % 20, "09-.:e"[random() % 6]);
        break;
      case 2:
        bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
        break;
      default:
        bytes.erase(at, 1 + random() % 20);
    }
    if (bytes.empty()) return "0";
  }
  return bytes;
}

void try_changed(const std::string& bytes, std::string (*read)(const std::string&)) {
  const char* const wish = std::getenv("STOWAGE_MUTATIONS");
  const int rounds = wish != nullptr ? std::atoi(wish) : 400;
  std::mt19937 random(broken_machine_seed);
  CHECK(read(bytes) == "");
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    refused += read(with_words_changed(bytes, random)).empty() ? 0 : 1;
  }
  CHECK(refused > 0);
}

}  // namespace

TEST_CASE("a host file with its bytes changed is an answer") {
  std::ifstream file(testing::source_path("/configs/hosts/generic.yaml"));
  try_changed({std::istreambuf_iterator<char>(file), {}}, read_host_file);
}

TEST_CASE("measured times with their bytes changed are an answer") {
  try_changed(a_run, read_times);
}

}  // namespace stowage
