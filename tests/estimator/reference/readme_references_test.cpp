// The README counts what PyTorch was traced for.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/estimator/reference/reference_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::reference {

TEST_CASE("the counts of traces are those that are compared") {
  std::ifstream file(testing::source_path("/docs/evidence.md"));
  const std::string readme(std::istreambuf_iterator<char>(file), {});
  std::size_t jobs = 0;
  for (const ReferenceModel& reference : reference_models()) jobs += reference.traces.size();
  CHECK(readme.find(fmt::format("{} files of model, batch", reference_models().size())) !=
        std::string::npos);
  const std::string grouped =
      jobs < 1000 ? fmt::format("{}", jobs) : fmt::format("{},{:03}", jobs / 1000, jobs % 1000);
  CHECK(readme.find(fmt::format("CUDA path, {} jobs", grouped)) != std::string::npos);
}

}  // namespace stowage::reference
