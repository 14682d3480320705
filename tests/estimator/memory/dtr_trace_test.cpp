// The recorded traces themselves are not in the repository: bench/dtr_traces.cpp takes their
// folder.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/support/operator_trace.hpp"

using namespace stowage;

namespace {

// y = relu(conv(x)) in place, a view of y, and its release while another name still holds it.
constexpr const char* small_trace = R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"x1"}
{"INSTRUCTION":"MEMORY","MEMORY":"100","NAME":"x1"}
{"INSTRUCTION":"COPY","DST":"x2","SRC":"x1"}
{"INSTRUCTION":"CALL","ARGS":["x2"],"NAME":"conv","RESULT":["x3"],"TIME":"10"}
{"INSTRUCTION":"MEMORY","MEMORY":"40","NAME":"x3"}
{"INSTRUCTION":"ALIAS","ALIAS":"-1","NAME":"x3"}
{"INSTRUCTION":"RELEASE","NAME":"x1"}
{"INSTRUCTION":"MUTATE","ARGS":["x3"],"MUTATE":[0],"NAME":"relu_","TIME":"5"}
{"INSTRUCTION":"CALL","ARGS":["x3"],"NAME":"view","RESULT":["x4"],"TIME":"1"}
{"INSTRUCTION":"MEMORY","MEMORY":"40","NAME":"x4"}
{"INSTRUCTION":"ALIAS","ALIAS":"0","NAME":"x4"}
{"INSTRUCTION":"RELEASE","NAME":"x3"}
{"INSTRUCTION":"RELEASE","NAME":"x2"}
{"INSTRUCTION":"CALL","ARGS":["x4"],"NAME":"mean","RESULT":["x5"],"TIME":"1"}
{"INSTRUCTION":"MEMORY","MEMORY":"4","NAME":"x5"}
{"INSTRUCTION":"ALIAS","ALIAS":"-1","NAME":"x5"}
{"INSTRUCTION":"RELEASE","NAME":"x4"}
)";

}  // namespace

TEST_CASE("a trace's storages live from their making to the release of their last name") {
  std::istringstream input(small_trace);
  const OperatorTrace trace = read_operator_trace(input);
  REQUIRE(trace.steps == 18);
  const auto live = live_bytes(lifetimes(trace.uses, trace.steps), trace.steps);
  std::vector<std::int64_t> counts;
  for (const Bytes bytes : live) counts.push_back(bytes.count());
  CHECK(counts == std::vector<std::int64_t>{0, 100, 100, 100, 100, 100, 140, 140, 140, 140, 140,
                                            140, 140, 40, 40, 40, 44, 4});
  CHECK(peak(live).bytes == 140_B);
  CHECK(peak(live).step == 6);
}

TEST_CASE("a trace that names what it never made is refused") {
  std::istringstream input(R"({"INSTRUCTION":"RELEASE","NAME":"x9"})");
  CHECK_THROWS_AS((void)read_operator_trace(input), std::out_of_range);
}
