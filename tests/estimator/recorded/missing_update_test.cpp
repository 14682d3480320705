// Parameters that a recorded step does not update: what is said of them, and the update that is
// added. The files are the fuzzer's seeds, which tests/python/recorded_seeds.py records.
#include "estimator/recorded/missing_update.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

Result<StepDocument> read_text(const std::string& text) {
  return read_completed_step(std::make_shared<const SourceText>(SourceText{"s.json", text}));
}

std::string seed_text(const std::string& name) {
  return testing::file_text(testing::source_path("/tests/fuzz/step/" + name + ".json"));
}

StepDocument seed_document(const std::string& name) {
  auto document = read_text(seed_text(name));
  if (!document) FAIL(render(document.error()));
  return *std::move(document);
}

std::string refusal(const Result<StepDocument>& document) {
  return document ? "" : render(document.error());
}

std::string replaced(std::string text, const std::string& before, const std::string& after) {
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  return text.replace(at, before.size(), after);
}

std::vector<std::string> state_names(const StepDocument& document) {
  std::vector<std::string> names;
  for (const Storage& storage : document.graph->storages) {
    if (storage.storage_class == StorageClass::optimizer_state) names.push_back(storage.name);
  }
  return names;
}

}  // namespace

TEST_CASE("a recorded step says which parameters it does not update") {
  CHECK(missing_update(seed_document("no-update")) == MissingUpdate{4, Bytes(432), true});
  CHECK(missing_update(seed_document("part-update")) == MissingUpdate{2, Bytes(144), false});
  for (const std::string name : {"linear", "inference", "hooks"}) {
    CHECK_FALSE(missing_update(seed_document(name)).has_value());
  }
}

TEST_CASE("every recorded seed is read, and written so that it is read as the same") {
  const fs::path folder = testing::source_path("/tests/fuzz/step");
  std::size_t read = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    CAPTURE(entry.path().string());
    const StepDocument document = seed_document(entry.path().stem().string());
    const std::string written = write_step(document);
    const auto again = read_text(written);
    REQUIRE_MESSAGE(again.has_value(), refusal(again));
    CHECK(write_step(*again) == written);
    CHECK(again->not_updated == document.not_updated);
    ++read;
  }
  CHECK(read == 21);
}

TEST_CASE("the update that is added has the optimizer's state of these parameters alone") {
  const auto whole = with_update(seed_document("no-update"), *named_optimizer("momentum"));
  REQUIRE_MESSAGE(whole.has_value(), refusal(whole));
  CHECK(state_names(*whole) ==
        std::vector<std::string>{"0.weight.momentum_buffer", "0.bias.momentum_buffer",
                                 "1.weight.momentum_buffer", "1.bias.momentum_buffer"});
  CHECK(whole->graph->nodes.back().name == "optimizer.step");
  CHECK(whole->graph->settings.optimizer == *named_optimizer("momentum"));
  CHECK_FALSE(missing_update(*whole).has_value());

  const StepDocument recorded = seed_document("part-update");
  const auto part = with_update(recorded, *named_optimizer("momentum"));
  REQUIRE_MESSAGE(part.has_value(), refusal(part));
  std::vector<std::string> added = state_names(recorded);
  added.insert(added.end(), {"1.weight.momentum_buffer", "1.bias.momentum_buffer"});
  CHECK(state_names(*part) == added);
  CHECK(part->graph->settings.optimizer == recorded.graph->settings.optimizer);
  CHECK(part->graph->gradients == recorded.graph->gradients);
}

TEST_CASE("the added update writes the parameters and reads their gradients") {
  const auto document = with_update(seed_document("no-update"), *named_optimizer("adamw"));
  REQUIRE_MESSAGE(document.has_value(), refusal(document));
  const StepGraph& graph = *document->graph;
  const KernelNode& update = graph.nodes.back();
  CHECK(update.phase == Phase::update);
  for (std::size_t i = 0; i < document->parameters.size(); ++i) {
    const auto is_parameter = [&](const TensorView& view) {
      const Storage& storage = graph.storage(view.storage);
      return storage.storage_class == StorageClass::parameter &&
             storage.parameter == ParameterId::of(i) && storage.carries_over;
    };
    CHECK(std::ranges::any_of(update.writes, is_parameter));
    CHECK(std::ranges::find(update.reads, graph.gradients[i]) != update.reads.end());
  }
  CHECK(graph.host_state_bytes == 4 * 4);  // a counter of each parameter
}

TEST_CASE("names that the recorded step has already are not given twice") {
  std::string text = replaced(seed_text("no-update"), "[\"1.mm\",\"aten::mm\"",
                              "[\"optimizer.step\",\"aten::mm\"");
  text = replaced(text, "[\"1.mm\",\"activation_gradient\"",
                  "[\"0.weight.momentum_buffer\",\"activation_gradient\"");
  auto document = read_text(text);
  REQUIRE_MESSAGE(document.has_value(), refusal(document));
  const auto updated = with_update(*std::move(document), *named_optimizer("momentum"));
  REQUIRE_MESSAGE(updated.has_value(), refusal(updated));
  CHECK(updated->graph->nodes.back().name == "optimizer.step~2");
  CHECK(state_names(*updated).front() == "0.weight.momentum_buffer~2");
}

TEST_CASE("an update is not added where the file lacks what it takes") {
  StepDocument without = seed_document("no-update");
  StepGraph graph = *without.graph;
  graph.gradients[1] = {};
  without.graph = std::make_shared<const StepGraph>(graph);
  CHECK(refusal(with_update(without, *named_optimizer("adam"))) ==
        "error: no update of '0.bias' can be added: its gradient is not kept in .grad\n"
        "  record a function that updates it\n");
  CHECK(refusal(with_update(seed_document("in-turn"), *named_optimizer("adamw"))) ==
        "error: an optimizer's state of 'weight' is in the step already, from an earlier call that "
        "updated it\n"
        "  record a function that updates it in each call\n");
}

TEST_CASE("what 'not_updated' cannot be is refused with its place") {
  const auto mistake = [](const std::string& ids) {
    const auto read = read_text(
        replaced(seed_text("no-update"), "\"not_updated\": [0,1,2,3]", "\"not_updated\": " + ids));
    const std::string text = refusal(read);
    return text.substr(0, text.find('\n'));
  };
  CHECK(mistake("[0,1,2,3]").empty());
  CHECK(mistake("[]").empty());
  CHECK(mistake("null").empty());
  CHECK(mistake("{}") == "s.json:25:17: error: 'not_updated' must be a list, not an object");
  CHECK(mistake("[4]") ==
        "s.json:25:18: error: a parameter's number must be below 4, not the number 4");
  CHECK(mistake("[-1]") ==
        "s.json:25:18: error: a parameter's number must be below 4, not the number -1");
  CHECK(mistake("[1,1]") ==
        "s.json:25:20: error: parameters that are not updated are in ascending order, each once");
  const auto of_frozen =
      read_text(replaced(seed_text("no-update"), "[\"0.bias\",\"float32\",0,\"trained\"]",
                         "[\"0.bias\",\"float32\",0,\"frozen\"]"));
  CHECK(refusal(of_frozen).starts_with(
      "s.json:25:20: error: '0.bias' is not trained, so that nothing has to update it\n"));
  const auto of_inference = read_text(
      replaced(seed_text("inference"), "\"layers\":", "\"not_updated\": [0],\n \"layers\":"));
  CHECK(refusal(of_inference)
            .find("error: 'not_updated' is of a training step of PyTorch's kernels\n") !=
        std::string::npos);
}

}  // namespace stowage
