// ONNX and Keras files in place of MODEL, on the command line.
#include <doctest/doctest.h>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using testing::Outcome;
using testing::source_path;
using testing::stowage_program;

TEST_CASE("an ONNX file is sized as the description of its model") {
  const std::string file = source_path("/tests/onnx/resnet18.onnx");
  const std::vector<std::string> how{"--batch",   "64",    "--gpu-memory", "8GiB",
                                     "--runtime", "ideal", "--optimizer",  "adam"};
  std::vector<std::string> of_file{"check", file};
  std::vector<std::string> of_model{"check", "resnet18"};
  of_file.insert(of_file.end(), how.begin(), how.end());
  of_model.insert(of_model.end(), how.begin(), how.end());
  const Outcome read = stowage_program(of_file);
  const Outcome shipped = stowage_program(of_model);
  CHECK(read.exit_code == 0);
  const auto verdict = [](const Outcome& outcome) {
    return outcome.out.substr(outcome.out.rfind("fits:"));
  };
  CHECK(verdict(read) == verdict(shipped));
  CHECK(read.err.find("note: the file has no loss: cross_entropy of the output [batch, 1000] is "
                      "taken\n") != std::string::npos);
}

TEST_CASE("a Keras file is read from a pipe too") {
  const std::string file = source_path("/tests/keras/cnn.json");
  const Outcome named = stowage_program({"summary", file});
  const Outcome piped = testing::typed("cat " + file + " | stowage summary -");
  CHECK(named.exit_code == 0);
  CHECK(piped.out == named.out);
}

TEST_CASE("options of foreign formats are refused for descriptions") {
  const Outcome outcome = stowage_program({"summary", "resnet18", "--loss", "mse"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err ==
        "<command line>: error: --loss is for a model of another format, and 'resnet18' is a "
        "description\n"
        "  a description says its loss and its operators itself\n");
}

TEST_CASE("what a file leaves open is asked for by its option") {
  const Outcome outcome = testing::typed(
      R"(printf '{"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": )"
      R"({"batch_input_shape": [null, null, 3], "units": 2}}]}}' | stowage summary -)");
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err == "-: error: the input's sequence has no length\n  --seq N gives it one\n");
}

}  // namespace stowage
