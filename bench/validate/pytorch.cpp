#include "bench/validate/pytorch.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

namespace stowage::validate_bench {

namespace {

std::string in_quotes(const std::string& word) {
  std::string text = "'";
  for (const char letter : word)
    text += letter == '\'' ? std::string("'\\''") : std::string{letter};
  return text + "'";
}

std::string first_line_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 256> line{};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return {};
  return line.data();
}

}  // namespace

std::string pytorch_seconds(const PytorchStep& step) {
  if (step.python.empty()) return "-";
  std::string command =
      fmt::format("{} {} {} {} --mode {}", in_quotes(step.python),
                  in_quotes(STOWAGE_SOURCE_DIR "/bench/validate/pytorch_step.py"),
                  in_quotes(step.model), step.batch, step.offload ? "offload" : "resident");
  if (step.seq) command += fmt::format(" --seq {}", *step.seq);
  if (step.memory) command += fmt::format(" --memory {}", step.memory->count());
  std::istringstream words(first_line_of(command));
  std::string status, rest;
  double seconds = 0;
  words >> status;
  if (status == "ok" && words >> seconds) return fmt::format("{:.4f} s", seconds);
  words >> rest;
  return status.empty() ? "-" : rest.empty() ? status : status + " " + rest;
}

}  // namespace stowage::validate_bench
