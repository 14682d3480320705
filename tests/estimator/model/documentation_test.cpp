// docs/model-description.md: its whole example is a model, without a warning.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "estimator/model/load_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

TEST_CASE("the example of the reference is a model") {
  std::ifstream stream(testing::source_path("/docs/model-description.md"));
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  const std::string fence = "```yaml\n";
  const std::size_t begin = page.find(fence);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = page.find("```", begin + fence.size());
  REQUIRE(end != std::string::npos);
  const auto model = load_model(std::make_shared<const SourceText>(
      SourceText{"example", page.substr(begin + fence.size(), end - begin - fence.size())}));
  if (!model) FAIL(render(model.error()));
  CHECK(render(model->warnings) == "");
  CHECK(model->name == "small-resnet");
  // stem 432; two blocks of 16: 2 * (2 * 2304 + 2 * 32); of 32: 4608 + 9216 + 512 + 128 and
  // 2 * 9216 + 128; the last layer 330.
  CHECK(parameter_count(*model) == 432 + 2 * 4672 + 14464 + 18560 + 330);
}

}  // namespace stowage
