// --runtime tensorflow as a user runs it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

std::string complaint(std::vector<std::string> options) {
  std::vector<std::string> words{"check", "mnist-cnn", "--gpu", "gtx-960-2gb"};
  words.insert(words.end(), options.begin(), options.end());
  const Outcome outcome = stowage_program(words);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  return outcome.err;
}

}  // namespace

TEST_CASE("the options of TensorFlow's pool are for its runtime, and for each other") {
  CHECK(complaint({"--memory-limit", "1GiB", "--memory-growth"}) ==
        "<command line>: error: --memory-limit is for --runtime tensorflow, not for pytorch\n"
        "<command line>: error: --memory-growth is for --runtime tensorflow, not for pytorch\n");
  CHECK(complaint(
            {"--runtime", "tensorflow", "--memory-limit", "1GiB", "--memory-fraction", "0.5"}) ==
        "<command line>: error: --memory-limit and --memory-fraction both say how large the pool "
        "is; give one\n");
  CHECK(complaint({"--runtime", "tensorflow", "--virtual-gpus", "2"}) ==
        "<command line>: error: --virtual-gpus needs --memory-limit, the size of each of them\n");
  CHECK(complaint({"--runtime", "tensorflow", "--gpus", "2", "--virtual-gpus", "2",
                   "--memory-limit", "256MiB"}) ==
        "<command line>: error: --gpus and --virtual-gpus cannot be combined\n"
        "  --gpus are cards, --virtual-gpus are logical devices of one card\n");
  CHECK(complaint({"--runtime", "tensorflow", "--gpus", "2", "--zero", "1"}) ==
        "<command line>: error: --zero is DeepSpeed's, and not of --runtime tensorflow\n");
}

TEST_CASE("on several cards gradients are packed and unpacked before the update") {
  const auto peak = [](std::vector<std::string> more) {
    std::vector<std::string> words{"check",      "mlp",     "--gpu", "gtx1080ti", "--runtime",
                                   "tensorflow", "--batch", "1",     "--format",  "json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = stowage_program(words);
    INFO(outcome.err);
    return json::parse(outcome.out);
  };
  const json one = peak({}), two = peak({"--gpus", "2"});
  // At batch 1 the update is the peak: parameters, state and gradients, and these once more.
  const std::int64_t gradients = one["footprint"]["gradient"];
  const std::int64_t pack = two["footprint"]["gradient"].get<std::int64_t>() - gradients;
  CHECK(pack >= gradients / 100 * 99);
  CHECK(pack <= gradients);
  CHECK(two["peak"]["tensor_bytes"].get<std::int64_t>() >
        one["peak"]["tensor_bytes"].get<std::int64_t>());
}

TEST_CASE("two virtual GPUs share the batch, and their pools add up") {
  const Outcome outcome = stowage_program(
      {"check", "mnist-cnn", "--gpu", "gtx-960-2gb", "--runtime", "tensorflow", "--memory-limit",
       "256MiB", "--virtual-gpus", "2", "--batch", "65", "--format", "json"});
  CHECK(outcome.exit_code == 0);
  const json report = json::parse(outcome.out);
  CHECK(report["settings"]["batch"] == 65);
  CHECK(report["peak"]["reserved_bytes"] == 512 * mebibyte);
  CHECK(report["tensorflow"] == json{{"memory_limit_bytes", 256 * mebibyte},
                                     {"memory_growth", false},
                                     {"memory_fraction", nullptr},
                                     {"virtual_gpus", 2}});
  CHECK(report["allocator"]["logical_devices"].size() == 2);
  const Outcome table =
      stowage_program({"check", "mnist-cnn", "--gpu", "gtx-960-2gb", "--runtime", "tensorflow",
                       "--memory-limit", "256MiB", "--virtual-gpus", "2", "--batch", "65"});
  CHECK(table.out.find("mnist-cnn, batch 65, training with adam, fp32, tensorflow runtime, "
                       "33 on each of 2 virtual GPUs\n") == 0);
}

TEST_CASE("a pool that leaves the libraries no room says how it fails and what would do") {
  const Outcome outcome =
      stowage_program({"check", "mnist-cnn", "--gpu-memory", "1GiB", "--runtime", "tensorflow",
                       "--memory-limit", "700MiB", "--context", "256MiB", "--batch", "64"});
  CHECK(outcome.exit_code == 1);
  const std::string verdict =
      "does not fit: 1.1 GiB wanted, 1.0 GiB available on a generic 1.0 GiB card, 60.0 MiB "
      "too much\n"
      "  cuBLAS finds no room beside what TensorFlow has taken, 700.0 MiB\n"
      "  in step 1, while fc1.forward runs: failed to create cublas handle: "
      "CUBLAS_STATUS_NOT_INITIALIZED (cuBLAS wants 64.0 MiB, and 4.0 MiB are left)\n"
      "  --memory-limit 638MiB or --memory-growth would do\n";
  INFO(outcome.out);
  CHECK(outcome.out.size() > verdict.size());
  CHECK(outcome.out.substr(outcome.out.find("does not fit")) == verdict);
}

TEST_CASE("a pool is no larger than the card, whether the step fits in it or not") {
  for (const char* const batch : {"64", "4096", "1000000"}) {
    CAPTURE(batch);
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{},
          {"--memory-growth"},
          {"--virtual-gpus", "2", "--memory-limit", "300MiB"}}) {
      std::vector<std::string> words{"check",     "mnist-cnn",  "--gpu-memory", "1GiB",
                                     "--runtime", "tensorflow", "--context",    "256MiB",
                                     "--batch",   batch};
      words.insert(words.end(), more.begin(), more.end());
      const Outcome table = stowage_program(words);
      words.insert(words.end(), {"--format", "json"});
      const Outcome outcome = stowage_program(words);
      REQUIRE(outcome.exit_code < 2);
      const json report = json::parse(outcome.out);
      std::int64_t pools = 0;
      for (const json& device : report["allocator"]["logical_devices"]) {
        CHECK(device["limit_bytes"] <= 768 * mebibyte);
        CHECK(device["used_bytes"] <= device["pool_bytes"]);
        CHECK(device["pool_bytes"] <= device["limit_bytes"]);
        pools += device["pool_bytes"].get<std::int64_t>();
      }
      CHECK(pools <= 768 * mebibyte);
      const bool failed = !report["allocator"]["failure"].is_null();
      CHECK(failed ==
            (table.out.find("TensorFlow's pools, when the step failed:\n") != std::string::npos));
    }
  }
}

TEST_CASE("batch counts the samples of all virtual GPUs") {
  const auto largest = [](std::vector<std::string> more) {
    std::vector<std::string> words{"batch",     "mlp",        "--gpu",          "gtx-960-2gb",
                                   "--runtime", "tensorflow", "--memory-limit", "64MiB",
                                   "--format",  "json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = stowage_program(words);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out)["largest"].get<std::int64_t>();
  };
  CHECK(largest({"--virtual-gpus", "3"}) == 3 * largest({}));
}

TEST_CASE("a pool that the card has no room for: what was asked for, and what there is") {
  const auto checked = [](const std::string& batch) {
    return stowage_program({"check", "mnist-cnn", "--gpu", "gtx-960-2gb", "--runtime", "tensorflow",
                            "--batch", batch, "--memory-limit", "3GiB"})
        .out;
  };
  for (const std::string batch : {"64", "8192"}) {
    CAPTURE(batch);
    const std::string text = checked(batch);
    CHECK(text.find("TensorFlow's pools, when the step failed:\n"
                    "    Asked for        Limit         Pool   In use  Device\n"
                    "  3,072.0 MiB  1,848.0 MiB  1,814.0 MiB  1.1 MiB  GPU:0\n") !=
          std::string::npos);
    const bool in_least =
        text.find("the least pool that holds them, not the card's") != std::string::npos;
    CHECK(in_least == (batch == "8192"));
  }
  const Outcome usual = stowage_program(
      {"check", "mnist-cnn", "--gpu", "gtx-960-2gb", "--runtime", "tensorflow", "--batch", "64"});
  CHECK(usual.out.find("Asked for") == std::string::npos);
}

}  // namespace stowage
