// Parameters, output shapes and every tensor saved for backward, against PyTorch.
#include <doctest/doctest.h>

#include <set>

#include "estimator/catalogue/operator_row.hpp"
#include "tests/estimator/reference/reference_model.hpp"

namespace stowage::reference {

namespace {

std::int64_t bytes_of(const ModelGraph& model, bool buffers) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : model.parameters) {
    if (parameter.is_buffer != buffers) continue;
    bytes += element_count(parameter.type.shape).constant * element_size(parameter.type.type);
  }
  return bytes;
}

std::string kind_of(const Storage& storage, const ModelGraph& model) {
  switch (storage.storage_class) {
    case StorageClass::parameter:
      return "parameter";
    case StorageClass::buffer:
      return "buffer";
    // The reference calls the last input, the one that the loss compares with, the target.
    case StorageClass::input:
      return storage.name == model.tensor(model.inputs.back()).name && model.inputs.size() > 1
                 ? "target"
                 : "input";
    default:
      return "other";
  }
}

std::map<std::string, Multiset> ours_by_kind(const ModelGraph& model, const SizedStep& step) {
  std::map<std::string, Multiset> result;
  std::set<StorageId> seen;
  for (const SavedTensor& saved : step.graph->saved) {
    if (!seen.insert(saved.storage).second) continue;
    const Storage& storage = step.graph->storage(saved.storage);
    ++result[kind_of(storage, model)][step.bytes(saved.storage).count()];
  }
  return result;
}

/// cuDNN batch norm's reserve space: its size is not known without a GPU, the reference has 0
/// bytes.
bool is_batch_norm_reserve(const nlohmann::json& saved) {
  return saved.at("storage_bytes") == 0 &&
         saved.at("saved_by").at(0).at("node") == "CudnnBatchNormBackward0" &&
         saved.at("saved_by").at(0).at("attribute") == "result3";
}

/// The loss of transformers' language models shifts the labels into a padded copy of its own and
/// saves that; our description compares with labels that are shifted already.
bool is_shifted_label(const nlohmann::json& saved) {
  return saved.at("kind") == "other" &&
         saved.at("saved_by").at(0).at("node") == "NllLossBackward0" &&
         saved.at("saved_by").at(0).at("attribute") == "target";
}

std::map<std::string, Multiset> theirs_by_kind(const nlohmann::json& reference) {
  std::map<std::string, Multiset> result;
  const std::int64_t batch = reference.at("batch").get<std::int64_t>();
  for (const nlohmann::json& saved : reference.at("saved_cuda")) {
    if (is_batch_norm_reserve(saved)) continue;
    if (is_shifted_label(saved)) {
      const auto seq = reference.at("settings").at("seq").get<std::int64_t>();
      ++result["target"][batch * seq * element_size(DataType::int64)];
      continue;
    }
    ++result[saved.at("kind").get<std::string>()][saved.at("storage_bytes").get<std::int64_t>()];
  }
  return result;
}

}  // namespace

TEST_CASE("parameters and buffers are PyTorch's, to the byte") {
  int compared = 0;
  for (const ReferenceModel& reference : reference_models()) {
    CAPTURE(reference.file);
    const ModelGraph model = our_model(reference);
    CHECK(parameter_count(model) == reference.json.at("parameters").get<std::int64_t>());
    CHECK(bytes_of(model, false) == reference.json.at("parameter_bytes").get<std::int64_t>());
    CHECK(bytes_of(model, true) == reference.json.at("buffer_bytes").get<std::int64_t>());
    ++compared;
  }
  CHECK(compared >= 20);
}

TEST_CASE("what is saved for backward is what PyTorch saves on CUDA, storage by storage") {
  int compared = 0;
  for (const ReferenceModel& reference : reference_models()) {
    CAPTURE(reference.file);
    const ModelGraph model = our_model(reference);
    const SizedStep step = our_step(model, reference, {});
    const auto ours = ours_by_kind(model, step);
    const auto theirs = theirs_by_kind(reference.json);
    for (const std::string kind : {"other", "parameter", "buffer", "input", "target"}) {
      CAPTURE(kind);
      const Multiset mine = ours.count(kind) ? ours.at(kind) : Multiset{};
      const Multiset them = theirs.count(kind) ? theirs.at(kind) : Multiset{};
      CHECK(surplus(mine, them) == "");
      CHECK(surplus(them, mine) == "");
    }
    ++compared;
  }
  CHECK(compared >= 20);
}

TEST_CASE("output shapes are PyTorch's, module by module") {
  // Modules of PyTorch and the operators that stand for them here.
  const std::map<std::string, std::string> operators{
      {"Conv2d", "conv2d"},          {"ConvTranspose2d", "conv_transpose2d"},
      {"Linear", "linear"},          {"Conv1D", "linear"},
      {"BatchNorm2d", "batch_norm"}, {"LayerNorm", "layer_norm"},
      {"MaxPool2d", "max_pool2d"},   {"AdaptiveAvgPool2d", "adaptive_avg_pool2d"},
      {"Embedding", "embedding"}};
  for (const ReferenceModel& reference : reference_models()) {
    CAPTURE(reference.file);
    const ModelGraph model = our_model(reference);
    std::map<std::string, std::vector<std::vector<std::int64_t>>> ours;
    std::map<std::string, std::vector<std::vector<std::int64_t>>> theirs;
    for (const Operator& op : model.operators) {
      ours[std::string(op.row->name)].push_back(
          at_batch(model.tensor(op.outputs.front()).type.shape, reference.batch));
    }
    for (const nlohmann::json& layer : reference.json.at("layers")) {
      const auto found = operators.find(layer.at("type").get<std::string>());
      if (found == operators.end()) continue;
      theirs[found->second].push_back(layer.at("output_shape").get<std::vector<std::int64_t>>());
    }
    CHECK(theirs.size() >= 1);
    for (auto& [name, shapes] : theirs) {
      CAPTURE(name);
      // Vocabulary logits are [batch, seq, vocabulary] there and flattened here.
      auto count = [](const std::vector<std::int64_t>& shape) {
        std::int64_t n = 1;
        for (const std::int64_t dimension : shape) n *= dimension;
        return n;
      };
      REQUIRE(ours[name].size() == shapes.size());
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        CAPTURE(i);
        CHECK(count(ours[name][i]) == count(shapes[i]));
        CHECK(ours[name][i].back() == shapes[i].back());
      }
    }
  }
}

}  // namespace stowage::reference
