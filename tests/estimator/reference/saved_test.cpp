// Parameters, output shapes and every tensor saved for backward, against PyTorch. One subcase a
// file: -sc="densenet*".
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "estimator/model/operator_row.hpp"
#include "tests/estimator/reference/known_differences.hpp"

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

std::map<std::string, Multiset> by_kind(const std::vector<SavedStorages>& saved) {
  std::map<std::string, Multiset> result;
  for (const SavedStorages& row : saved) result[row.kind][row.bytes] += row.count;
  return result;
}

/// Modules of PyTorch and the operators that stand for them here.
const std::map<std::string, std::string> operators{{"Conv2d", "conv2d"},
                                                   {"ConvTranspose2d", "conv_transpose2d"},
                                                   {"Linear", "linear"},
                                                   {"NonDynamicallyQuantizableLinear", "linear"},
                                                   {"Conv1D", "linear"},
                                                   {"BatchNorm2d", "batch_norm"},
                                                   {"LayerNorm", "layer_norm"},
                                                   {"MaxPool2d", "max_pool2d"},
                                                   {"AdaptiveAvgPool2d", "adaptive_avg_pool2d"},
                                                   {"Embedding", "embedding"}};

/// Where PyTorch calls a function too, which is no module; or has a module in another layout:
/// torchvision's LayerNorm2d, whose channels are not last.
bool also_otherwise(const std::string& model, const std::string& op) {
  const bool has_written_attention = model.starts_with("swin_") || model.starts_with("vit_b_") ||
                                     model.starts_with("vit_l_") || model.starts_with("vit_h_");
  return (has_written_attention && op == "linear") ||
         ((model == "t5-small" || model == "opt-125m" || model == "whisper-small") &&
          op == "embedding") ||
         (model == "inception_v3" && op.ends_with("pool2d")) ||
         (model == "googlenet" && op == "adaptive_avg_pool2d") ||
         (model.starts_with("convnext_") && op == "layer_norm") ||
         // Positions and scaled embeddings are classes of their own.
         (model.starts_with("small-") && op == "embedding") ||
         // Falcon's linear layers and the routers of experts are classes of their own.
         ((model.find("-falcon") != std::string::npos ||
           model.find("mixtral") != std::string::npos || model.ends_with("-moe") ||
           model.ends_with("gpt-oss")) &&
          op == "linear");
}

/// Elements and the last axis: vocabulary logits are [batch, seq, vocabulary] there and flattened
/// here.
using OutputSize = std::pair<std::int64_t, std::int64_t>;

OutputSize output_size(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) elements *= dimension;
  return {elements, shape.empty() ? 1 : shape.back()};
}

}  // namespace

TEST_CASE("parameters and buffers are PyTorch's, to the byte") {
  int compared = 0;
  for (const ReferenceModel& reference : reference_models()) {
    if (!is_plain(reference)) continue;
    CAPTURE(reference.file);
    const ModelGraph model = our_model(reference);
    CHECK(parameter_count(model) == reference.parameters);
    CHECK(bytes_of(model, false) == reference.parameter_bytes);
    CHECK(bytes_of(model, true) == reference.buffer_bytes);
    ++compared;
  }
  CHECK(compared >= 80);
}

TEST_CASE("what is saved for backward is what PyTorch saves on CUDA, storage by storage") {
  for (const ReferenceModel& reference : reference_models()) {
    if (!is_plain(reference)) continue;
    SUBCASE(reference.file.c_str()) {
      const ModelGraph model = our_model(reference);
      const SizedStep step = our_step(model, reference, {});
      const auto ours = ours_by_kind(model, step);
      const AccountedSaved accounted = accounted_saved(reference);
      CHECK(accounted.without_effect == "");
      const auto theirs = by_kind(accounted.saved);
      for (const std::string kind : {"other", "parameter", "buffer", "input", "target"}) {
        CAPTURE(kind);
        const Multiset mine = ours.count(kind) ? ours.at(kind) : Multiset{};
        const Multiset them = theirs.count(kind) ? theirs.at(kind) : Multiset{};
        CHECK(surplus(mine, them) == "");
        CHECK(surplus(them, mine) == "");
      }
    }
  }
}

TEST_CASE("output shapes are PyTorch's, module by module") {
  for (const ReferenceModel& reference : reference_models()) {
    if (!is_plain(reference)) continue;
    SUBCASE(reference.file.c_str()) {
      const ModelGraph model = our_model(reference);
      std::map<std::string, std::vector<OutputSize>> ours;
      std::map<std::string, std::vector<OutputSize>> theirs;
      for (const Operator& op : model.operators) {
        ours[std::string(op.row->name)].push_back(
            output_size(at_batch(model.tensor(op.outputs.front()).type.shape, reference.batch)));
      }
      for (const LayerShapes& layer : reference.layers) {
        const auto found = operators.find(layer.type);
        if (found == operators.end() || also_otherwise(reference.model, found->second)) continue;
        std::vector<OutputSize>& sizes = theirs[found->second];
        sizes.insert(sizes.end(), static_cast<std::size_t>(layer.count), output_size(layer.shape));
      }
      // Of a mixture of experts all modules are of classes of their own.
      CHECK((!theirs.empty() || reference.model.starts_with("small-")));
      for (auto& entry : theirs) {
        const std::string& name = entry.first;
        std::vector<OutputSize>& sizes = entry.second;
        CAPTURE(name);
        std::vector<OutputSize>& mine = ours[name];
        if (!reference.layers_in_order) {
          std::sort(mine.begin(), mine.end());
          std::sort(sizes.begin(), sizes.end());
        }
        REQUIRE(mine.size() == sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          CAPTURE(i);
          CHECK(mine[i].first == sizes[i].first);
          CHECK(mine[i].second == sizes[i].second);
        }
      }
    }
  }
}

}  // namespace stowage::reference
