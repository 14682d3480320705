// Compares the host kernels with PyTorch's values, call by call: the cases of
// tests/reference/kernels.
//
// As in the tests of operators, the reference was computed in float64 and rounded to float32, and
// the tolerance is relative to the largest value of each tensor.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/gpu_probe/host/kernels/checked_case.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::test {
namespace {

using nlohmann::json;

Kernel kernel_named(const std::string& name) {
  for (int i = 0; i < kernel_count; ++i) {
    if (to_string(static_cast<Kernel>(i)) == name) return static_cast<Kernel>(i);
  }
  FAIL("no kernel ", name);
  return Kernel::copy;
}

/// A tensor of the reference. Null `values`: a result that PyTorch does not have.
Tensor reference_tensor(const json& value) {
  const auto shape = value["shape"].get<Sizes>();
  const auto type = parse_data_type(value.value("dtype", "float32"));
  REQUIRE(type.has_value());
  const bool known = value.contains("values");
  if (*type == DataType::float32) {
    return known ? tensor(shape, value["values"].get<std::vector<float>>()) : unwritten(shape);
  }
  if (*type == DataType::int64) {
    return integer_tensor(shape, value["values"].get<std::vector<std::int64_t>>());
  }
  Tensor bytes = mask(shape);
  bytes.type = *type;
  if (known) bytes.bytes = value["values"].get<std::vector<std::uint8_t>>();
  return bytes;
}

/// A tensor of the same shape with values that no kernel would compute.
Tensor spoilt(Tensor tensor) {
  std::fill(tensor.floats.begin(), tensor.floats.end(), __builtin_nanf(""));
  std::fill(tensor.integers.begin(), tensor.integers.end(), -7);
  std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::uint8_t{0xA5});
  return tensor;
}

void compare(const Tensor& actual, const Tensor& expected, const std::string& what) {
  INFO(what);
  if (expected.type == DataType::float32) {
    CHECK(distance(actual, expected) <= tolerance);
  } else {
    CHECK(actual.integers == expected.integers);
    CHECK(actual.bytes == expected.bytes);
  }
}

/// Runs the case's calls; a later one reads what an earlier one wrote.
void check_case(const json& entry) {
  const std::string name = entry["name"];
  std::map<std::string, Tensor> tensors;
  for (const auto& [key, value] : entry["tensors"].items()) tensors[key] = reference_tensor(value);
  const std::map<std::string, Tensor> expected = tensors;
  for (const json& call : entry["calls"]) {
    std::vector<Tensor*> reads, writes;
    for (const std::string key : call["reads"]) reads.push_back(&tensors.at(key));
    for (const std::string key : call["writes"]) {
      tensors.at(key) = spoilt(tensors.at(key));
      writes.push_back(&tensors.at(key));
    }
    INFO(name);
    const std::string kernel = call["kernel"];
    run(kernel_named(kernel), json_attributes(call["attributes"]), reads, writes);
    for (const std::string key : call["writes"]) {
      if (!entry["tensors"][key].contains("values")) continue;
      compare(tensors.at(key), expected.at(key), name + ", " + kernel + ", " + key);
    }
  }
}

void check_family(const char* family, std::size_t cases) {
  const auto content =
      json::parse(std::ifstream((testing::source_path("/tests/reference/kernels/")) + family));
  CHECK(content["cases"].size() == cases);
  for (const json& entry : content["cases"]) check_case(entry);
}

}  // namespace

TEST_CASE("functions of single elements agree with PyTorch") { check_family("pointwise.json", 55); }

TEST_CASE("losses, of elements and of log-probabilities, agree with PyTorch") {
  check_family("losses.json", 18);
}

TEST_CASE("sums over axes, padding and rolling agree with PyTorch") {
  check_family("shapes.json", 26);
}

TEST_CASE("group, RMS and local response normalisation agree with PyTorch") {
  check_family("normalisations.json", 12);
}

TEST_CASE("convolutions in one to three dimensions agree with PyTorch") {
  check_family("convolutions.json", 15);
}

TEST_CASE("pooling and resampling in one to three dimensions agree with PyTorch") {
  check_family("windows.json", 43);
}

TEST_CASE("extrema, variances, norms and running sums agree with PyTorch") {
  check_family("statistics.json", 26);
}

TEST_CASE("elements by index, comparisons, masks and windows as columns agree with PyTorch") {
  check_family("indexing.json", 31);
}

TEST_CASE("recurrent networks agree with PyTorch") { check_family("recurrent.json", 19); }

TEST_CASE("rotary embeddings agree with PyTorch") { check_family("positions.json", 3); }

}  // namespace stowage::test
