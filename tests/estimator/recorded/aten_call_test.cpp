// A recorded call says what its tensors are; one that says it wrongly is refused, with its node.
#include "estimator/recorded/aten_call.hpp"

#include <doctest/doctest.h>

#include "tests/estimator/recorded/raw_step.hpp"

namespace stowage {

namespace {

using testing::RawStep;

/// aten::mm of the tensors [batch, 4] and [4, 3], with other words for them.
std::string refusal_of_mm(const std::string& arguments, const std::string& results) {
  RawStep step;
  const TensorView a = step.given("a", {batch_symbol, 4}), b = step.given("b", {4, 3});
  step.call("aten::mm", arguments, {a, b}, results, {step.made("y", {batch_symbol, 3})});
  return testing::refusal_of(step);
}

}  // namespace

TEST_CASE("a call finds its tensors by the schema's names, lists among them") {
  RawStep step;
  const TensorView a = step.given("a", {2}), b = step.given("b", {3}), c = step.given("c", {4});
  const TensorView y = step.made("y", {9}), z = step.made("z", {1});
  Attributes attributes;
  attributes.set("dim", std::int64_t{0});
  attributes.set("scale", 0.5);
  step.call("aten::cat", "tensors:2,other", {a, b, c}, "1,other", {y, z}, attributes);
  const AtenCall call(step.graph().nodes[0]);
  REQUIRE(call.tensors("tensors").size() == 2);
  CHECK(call.tensors("tensors")[1] == b);
  CHECK(call.tensor("other", 1) == c);
  CHECK(call.find("bias") == nullptr);
  CHECK(call.result(1) == y);
  CHECK(call.find_result(0) == nullptr);
  CHECK(call.integers("dim") == std::vector<std::int64_t>{0});
  CHECK(call.real("scale", 1) == 0.5);
  CHECK(call.real("other_scale", 1) == 1);
  CHECK(call.boolean("train", true));
}

TEST_CASE("the schema's name is the kernel's without overload and underscore") {
  CHECK(schema_name("aten::add_.Tensor") == "aten::add");
  CHECK(schema_name("aten::_foreach_add_.List") == "aten::_foreach_add");
  CHECK(schema_name("aten::mm") == "aten::mm");
  CHECK(schema_name("aten::__and__.Tensor") == "aten::__and__");
}

TEST_CASE("arguments that are not those of the node are refused with its name") {
  CHECK(refusal_of_mm("self,mat2", "0") == "");
  CHECK(refusal_of_mm("self", "0") ==
        "node 'mm' calls aten::mm, whose arguments 'self' are not the 2 tensors that it reads");
  CHECK(refusal_of_mm("self,mat2,bias", "0") ==
        "node 'mm' calls aten::mm, whose arguments 'self,mat2,bias' are not the 2 tensors that it "
        "reads");
  CHECK(refusal_of_mm("self:9223372036854775807,mat2", "0") ==
        "node 'mm' calls aten::mm, whose arguments 'self:9223372036854775807,mat2' are not the 2 "
        "tensors that it reads");
  CHECK(refusal_of_mm("self:-1,mat2", "0") ==
        "node 'mm' calls aten::mm, whose attribute 'arguments' is not understood: 'self:-1'");
  CHECK(refusal_of_mm("self,other_name", "0") ==
        "node 'mm' calls aten::mm, and lacks the tensor 'mat2'");
  CHECK(refusal_of_mm("self:1,mat2", "0") ==
        "node 'mm' calls aten::mm, whose 'self' is a list of tensors");
  CHECK(refusal_of_mm("self,mat2", "") ==
        "node 'mm' calls aten::mm, whose results '' are not the 1 tensors that it writes");
  CHECK(refusal_of_mm("self,mat2", "0..0") == "");
  CHECK(
      refusal_of_mm("self,mat2", "0..9223372036854775807") ==
      "node 'mm' calls aten::mm, whose results '0..9223372036854775807' are not the 1 tensors that "
      "it writes");
  CHECK(refusal_of_mm("self,mat2", "1") == "node 'mm' calls aten::mm, and lacks its result 0");
}

TEST_CASE("a call of the table without the attribute that names its arguments is refused") {
  RawStep step;
  const TensorView a = step.given("a", {2, 2});
  step.call("aten::mm", "self,mat2", {a, a}, "0", {step.made("y", {2, 2})});
  step.graph().nodes[0].attributes = {};
  CHECK(testing::refusal_of(step) ==
        "node 'mm' calls aten::mm, and lacks the attribute 'arguments'");
}

}  // namespace stowage
