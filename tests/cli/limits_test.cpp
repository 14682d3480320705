// Extreme sizes and batches: an answer or a clean refusal, never a hang or an overflow.
#include <doctest/doctest.h>

#include "tests/cli/program.hpp"
#include "tests/support/address_sanitizer.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

constexpr const char* runtime_names[] = {"pytorch", "tensorflow", "stowage", "ideal"};

}  // namespace

TEST_CASE("a step beyond what memory is counted in is refused by every runtime") {
  const TemporaryFolder folder;
  const std::string relu = folder.file("relu.yaml", R"(model: relu
inputs:
  x: {shape: [batch, 1000000000]}
layers:
  - relu
)");
  for (const std::string runtime : runtime_names) {
    for (const std::string batch : {"1000000", "150000000", "300000000"}) {
      CAPTURE(runtime);
      CAPTURE(batch);
      const Outcome outcome = stowage_program(
          {"check", relu, "--gpu", "rtx3090", "--batch", batch, "--runtime", runtime});
      if (batch == "1000000") {
        CHECK(outcome.exit_code == 1);
        CHECK(outcome.out.find("does not fit") != std::string::npos);
      } else {
        CHECK(outcome.exit_code == 2);
        CHECK(outcome.err == "error: batch " + batch +
                                 " makes 'x' (input) larger than 32.0 PiB\n"
                                 "  give a smaller --batch\n");
      }
    }
  }
}

TEST_CASE("where the search for a batch ends is said") {
  const TemporaryFolder folder;
  const std::string tiny = folder.file("tiny.yaml", R"(model: tiny
inputs:
  x: {shape: [batch, 2]}
layers:
  - linear: {name: only, features: 2}
loss:
  mse: {from: [only, x]}
)");
  const Outcome batch = stowage_program({"batch", tiny, "--gpu", "rtx3090"});
  CHECK(batch.exit_code == 0);
  CHECK(batch.out.find("no batch that was tried is too large; the search ends at 16,777,216\n") !=
        std::string::npos);
  const Outcome evaluated =
      stowage_program({"check", tiny, "--gpu", "rtx3090", "--batch", "4", "--eval-batch", "8"});
  CHECK(evaluated.exit_code == 0);
  CHECK(evaluated.out.find("the evaluation of 8 fits; so does one of 16,777,216") !=
        std::string::npos);
}

TEST_CASE("sizes on the command line go up to what any machine has") {
  for (const std::string option : {"--in-use", "--reserve", "--context"}) {
    for (const std::string runtime : runtime_names) {
      if (runtime == "ideal" && option == "--context") continue;  // it has none
      for (const std::string command : {"check", "batch"}) {
        CAPTURE(command);
        CAPTURE(option);
        CAPTURE(runtime);
        const auto with = [&](const std::string& size) {
          return stowage_program(
              {command, "mnist-cnn", "--gpu", "rtx3090", option, size, "--runtime", runtime});
        };
        CHECK(with("32768TiB").exit_code == 1);
        const Outcome refused = with("4194303TiB");
        CHECK(refused.exit_code == 2);
        CHECK(refused.err == "<command line>: error: " + option +
                                 ": '4194303TiB' is more than 32.0 PiB\n"
                                 "  no machine has that much memory\n");
      }
    }
  }
}

TEST_CASE("a budget goes up to what any machine has") {
  CHECK(stowage_program({"plan", "mlp", "--budget", "32768TiB"}).exit_code == 0);
  CHECK(stowage_program({"plan", "mlp", "--budget", "4194304TiB"}).err ==
        "<command line>: error: --budget: '4194304TiB' is more than 32.0 PiB\n"
        "  no machine has that much memory\n");
}

TEST_CASE("as many divisions as PyTorch reads are simulated") {
  const std::vector<std::string> words{"check",    "mnist-cnn", "--gpu",       "rtx3090",
                                       "--format", "json",      "--alloc-conf"};
  std::vector<std::string> most = words, none = words;
  most.emplace_back("roundup_power2_divisions:18014398509481984");
  none.emplace_back("roundup_power2_divisions:1");
  CHECK(stowage_program(most).exit_code == 0);
  CHECK(stowage_program(most).out == stowage_program(none).out);
}

TEST_CASE("a file that grows beyond ulimit -f is an error, and nothing is left of it") {
  const TemporaryFolder folder;
  const std::string plan = folder.path("plan.yaml");
  const Outcome written = stowage_program({"plan", "resnet18", "--budget", "1GiB", "-o", plan},
                                          {.largest_file = 16_KiB});
  CHECK(written.exit_code == 2);
  CHECK(written.err.ends_with("error: cannot write '" + plan + "': File too large\n"));
  CHECK(folder.names().empty());
  const Outcome shown =
      stowage_program({"check", "resnet18", "--gpu", "rtx3090"}, {.largest_file = 512_B});
  CHECK(shown.exit_code == 2);
}

TEST_CASE("a disk without room is an error, and nothing is left of the file") {
  const Outcome full = stowage_program({"plan", "mlp", "--budget", "1GiB", "-o", "/dev/full"});
  CHECK(full.exit_code == 2);
  CHECK(full.err.ends_with("error: cannot write '/dev/full': No space left on device\n"));
}

TEST_CASE("without memory for the answer the program says so") {
#if !STOWAGE_ADDRESS_SANITIZER  // which reserves terabytes
  const TemporaryFolder folder;
  const std::string deep = folder.file("deep.yaml", R"(model: deep
inputs:
  x: {shape: [batch, 8]}
layers:
  - linear: {features: 8, repeat: 20000}
)");
  const Outcome outcome =
      stowage_program({"check", deep, "--gpu", "rtx3090"}, {.address_space = 64_MiB});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err ==
        "error: out of memory: the answer takes more than this machine gives stowage\n");
#endif
}

}  // namespace stowage
