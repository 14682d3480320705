#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/skip.hpp"

namespace stowage::testing {

namespace {

std::vector<std::string>& skipped() {
  static std::vector<std::string> lines;
  return lines;
}

}  // namespace

void skip(const std::string& reason) {
  const doctest::TestCaseData* test = doctest::getContextOptions()->currentTest;
  skipped().push_back(std::string(test->m_name) + ": " + reason);
}

}  // namespace stowage::testing

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int status = context.run();
  const auto& lines = stowage::testing::skipped();
  if (context.shouldExit() || lines.empty()) return status;
  std::printf("SKIPPED, wholly or in part, %zu:\n", lines.size());
  for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
  return status == 0 ? stowage::testing::skipped_exit_code : status;
}
