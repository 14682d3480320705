// The file of a plan for PyTorch: what is written is read back, and what is not one is refused with
// its place.
#include "planner/pytorch/pytorch_plan_file.hpp"

#include <doctest/doctest.h>

#include <string>

namespace stowage {

namespace {

PytorchPlan small_plan() {
  PytorchPlan plan{
      .stowage_version = "1.2",
      .model = "net \"quoted\"",
      .names_are_recorded = true,
      .batch = 8,
      .micro_batches = 2,
      .precision = "amp-bf16",
      .optimizer = "adamw",
      .step_hash = "abc",
      .card = "a card",
      .available = 11_GiB,
      .pytorch = "2.15",
      .saved = 7,
      .checkpoint = {"h.0", "h.1"},
      .stream = {{"h.0", {"h.0.a", "h.0.b"}, Bytes(1024), 2}, {"h.1", {"h.1.a"}, Bytes(512), 1}},
      .optimizer_on_cpu = true,
      .cpu_parameters = {"h.2.a", "h.2.b"},
      .expandable_segments = true};
  plan.question =
      PlannedQuestion{"a \"file\".json",
                      {{"gpu_memory", {"8GiB"}}, {"deterministic", {}}, {"set", {"a=1", "b=2"}}}};
  plan.offload.push_back(
      {.saved = {{"conv1#0", DataType::float32, {batch_symbol, Affine(3, 2), 7, Affine(-5, 1)}},
                 {"conv2#1", DataType::bfloat16, {}}},
       .bytes = Affine(16, 400),
       .start = "conv2#1",
       .release = "bn#2"});
  plan.chunks = InferenceChunks{4, {{batch_symbol, 3}, {7}}, {batch_symbol, 10}};
  plan.totals = {.peak_allocated = 1_GiB,
                 .peak_reserved = 2_GiB,
                 .device_bytes = 3_GiB,
                 .to_host = 4_MiB,
                 .from_host = 4_MiB,
                 .pinned = 2_MiB,
                 .step_seconds = 0.125,
                 .all_gpu_step_seconds = 0.1,
                 .recomputed_seconds = 1e-9,
                 .pcie_lower_bound = 5_MiB,
                 .step_lower_bound_seconds = 0.11};
  return plan;
}

Result<PytorchPlan> read(const std::string& text) {
  return read_pytorch_plan(std::make_shared<const SourceText>(SourceText{"p.yaml", text}));
}

/// The message about the file with `what` replaced, and its place.
std::string refusal(const std::string& what, const std::string& with) {
  std::string text = write_pytorch_plan(small_plan());
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  const auto plan = read(text.replace(at, what.size(), with));
  REQUIRE_FALSE(plan.has_value());
  CHECK(render(plan.error()).find("p.yaml:") != std::string::npos);
  return plan.error().front().message;
}

}  // namespace

TEST_CASE("a plan for PyTorch is read back as it was written") {
  const PytorchPlan plan = small_plan();
  const std::string text = write_pytorch_plan(plan);
  CHECK(is_pytorch_plan(text));
  const auto back = read(text);
  if (!back) FAIL(render(back.error()));
  CHECK(*back == plan);
  CHECK(text.find("\"shape\": [\"batch\",\"2*batch+3\",7,\"batch-5\"]") != std::string::npos);
  PytorchPlan empty;
  empty.batch = 1;
  empty.trains = false;
  CHECK(read(write_pytorch_plan(empty)).value() == empty);
  CHECK_FALSE(is_pytorch_plan("stowage_plan: 2\n"));
  CHECK(text.find(R"("question": {"model": "a \"file\".json", "settings": )"
                  R"({"deterministic": [], "gpu_memory": ["8GiB"], "set": ["a=1","b=2"]}},)") !=
        std::string::npos);
  PytorchPlan early = plan;
  early.micro_batches = 1;
  early.early_updates = true;
  early.cpu_parameters.clear();
  const std::string of_early = write_pytorch_plan(early);
  CHECK(read(of_early).value() == early);
  CHECK(of_early.find("\"updates\": \"early\",\n") != std::string::npos);
  CHECK(text.find("\"allocator\": \"expandable_segments:True\",\n") != std::string::npos);
  CHECK(allocator_variable(plan) == "PYTORCH_ALLOC_CONF");
  CHECK(allocator_variable({.pytorch = "2.8"}) == "PYTORCH_CUDA_ALLOC_CONF");
}

TEST_CASE("what is no plan for PyTorch is refused with its place") {
  CHECK(refusal("\"stowage-pytorch-plan\"", "\"stowage-step\"") ==
        "'format' must be \"stowage-pytorch-plan\"");
  CHECK(refusal("\"version\": 1", "\"version\": 2") ==
        "this program reads version 1 of plans for PyTorch, not the number 2");
  CHECK(refusal("\"recorded\"", "\"guessed\"") == "'names' is \"recorded\" or \"described\"");
  CHECK(refusal("\"start\": \"conv2#1\"", "\"start\": \"bn#2\"") ==
        "'bn#2' is none of the storage's own saved tensors");
  CHECK(refusal("\"key\": \"conv2#1\"", "\"key\": \"conv1#0\"") == "'conv1#0' is in two storages");
  CHECK(refusal("\"batch\": 16", "\"batch\": 15") ==
        "2 micro-batches cannot share a batch of 15 equally");
  CHECK(refusal("\"bfloat16\"", "\"float13\"") == "no dtype is called 'float13'");
  CHECK(refusal("\"2*batch+3\"", "\"2*batch+\"") ==
        "a dimension is a number, \"batch\" or as \"2*batch+1\"");
  CHECK(refusal("\"gradients_in_flight\": 2", "\"gradients_in_flight\": 3") ==
        "'gradients_in_flight' must be an integer from 2 to 2, not the number 3");
  CHECK(refusal("[\"h.2.a\",\"h.2.b\"]", "[]") == "at least one parameter is updated on the CPU");
  CHECK(refusal("\"h.2.b\"", "\"h.2.a\"") == "'h.2.a' is updated twice");
  CHECK(refusal("\"totals\": ", "\"updates\": \"late\", \"totals\": ") ==
        "'updates' is \"early\", where it stands");
  CHECK(refusal("\"totals\": ", "\"updates\": \"early\", \"totals\": ") ==
        "updates cannot be early where the gradients of micro-batches add up");
  CHECK(refusal("\"mode\": \"train\"", "\"mode\": \"play\"") ==
        "'mode' is \"train\" or \"inference\"");
  CHECK(refusal("\"h.1.a\"", "\"h.0.b\"") == "'h.0.b' is streamed twice");
  CHECK(refusal("[\"h.1.a\"]", "[]") == "a streamed module has at least one parameter");
  CHECK(refusal("\"uploads\": 2", "\"uploads\": 3") ==
        "'uploads' must be an integer from 1 to 2, not the number 3");
  CHECK(refusal("\"parts\": 4", "\"parts\": 3") == "3 parts cannot share a batch of 8 equally");
  CHECK(refusal("\"parts\": 4", "\"parts\": 1") ==
        "the number of parts must be an integer from 2 to 1000000000, not the number 1");
  CHECK(refusal("\"expandable_segments:True\"", "\"max_split_size_mb:64\"") ==
        "'allocator' is \"expandable_segments:True\", where it stands");
  CHECK(refusal("[\"8GiB\"]", "\"8GiB\"") == "a setting's values must be a list, not a text");
  CHECK(refusal("[16, 400]", "[-17, 1]") ==
        "a storage has no -9 bytes, as it would at a batch of 8");
  CHECK(refusal("[16, 400]", "[0, 1152921504606846976]") ==
        "a storage has no 9223372036854775808 bytes, as it would at a batch of 8");
  CHECK(refusal("0.125", "-0.125") == "'step_seconds' is no time");
  CHECK_FALSE(read("").has_value());
  CHECK_FALSE(read("[]").has_value());
  CHECK_FALSE(read("{\"format\": \"stowage-pytorch-plan\"}").has_value());
}

}  // namespace stowage
