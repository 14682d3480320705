#include "tests/estimator/catalogue/operator_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "estimator/memory/lifetimes.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "tests/estimator/reference/reference_step.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::reference {

namespace {

using nlohmann::json;

/// One row's disagreements.
class RowComparison {
 public:
  explicit RowComparison(const json& row)
      : row_(row), batch_(row.at("batch").get<std::int64_t>()), model_(our_model(row)) {}

  std::string run() {
    compare(shapes_, "output shape",
            json(at_batch(model_.tensor(model_.output).type.shape, batch_)),
            row_.at("output_shape"));
    compare(shapes_, "parameters", our_parameters(false), sorted(row_.at("parameters")));
    compare(shapes_, "buffers", our_parameters(true), sorted(row_.at("buffers")));
    const LoweringSettings settings{
        .kernels = KernelSet::pytorch,
        .mode = row_.at("mode") == "train" ? Mode::train : Mode::inference,
        .optimizer = {.name = "sgd"},
        .step = model_.step};
    const auto graph = testing::lowered(model_, settings);
    auto sized = size_storages(graph, batch_);
    if (!sized) throw std::runtime_error(render(sized.error()));
    forget_what_kernels_hide(*sized);
    if (settings.mode == Mode::train) {
      compare(saved_, "saved", our_saved(*sized), sorted(row_.at("saved")));
    }
    for (const auto& [phase, bytes] : row_.at("peaks").items()) {
      compare(peaks_, "peak of " + phase, our_peak(*sized, phase), bytes);
    }
    LoweringSettings own = settings;
    own.kernels = KernelSet::stowage;
    own.step.layout = TensorLayout::contiguous;
    check_stowage(*testing::lowered(model_, own), *graph);
    return std::move(disagreements_);
  }

  [[nodiscard]] bool same_shapes() const { return shapes_; }
  [[nodiscard]] bool same_saved() const { return saved_; }
  [[nodiscard]] bool same_peaks() const { return peaks_; }

 private:
  static ModelGraph our_model(const json& row) {
    const auto source = std::make_shared<const SourceText>(
        SourceText{row.at("name").get<std::string>(), row.at("description").get<std::string>()});
    const ModelOptions options{.precision =
                                   parse_precision(row.at("precision").get<std::string>())};
    auto model = load_model(source, options);
    if (!model) throw std::runtime_error(render(model.error()));
    model->loss_in_model = true;  // the reference's loop has output and loss from one call
    return *std::move(model);
  }

  /// What a kernel allocates within itself, and cuDNN's reserves, the trace does not see.
  static void forget_what_kernels_hide(SizedStep& step) {
    for (std::size_t i = 0; i < step.storage_bytes.size(); ++i) {
      const Storage& storage = step.graph->storages[i];
      if (storage.storage_class == StorageClass::workspace || storage.name.ends_with(".reserve")) {
        step.storage_bytes[i] = Bytes();
      }
    }
  }

  static json sorted(json list) {
    std::sort(list.begin(), list.end(),
              [](const json& a, const json& b) { return a.dump() < b.dump(); });
    return list;
  }

  void compare(bool& same, std::string_view what, const json& ours, const json& theirs) {
    if (ours == theirs) return;
    same = false;
    say(fmt::format("{}: {}, PyTorch {}", what, ours.dump(), theirs.dump()));
  }
  void say(const std::string& text) {
    disagreements_ += fmt::format("{}: {}\n", row_.at("name").get<std::string>(), text);
  }

  [[nodiscard]] json our_parameters(bool buffers) const {
    json list = json::array();
    for (const Parameter& parameter : model_.parameters) {
      if (parameter.is_buffer != buffers) continue;
      list.push_back({at_batch(parameter.type.shape, batch_), to_string(parameter.type.type)});
    }
    return sorted(list);
  }

  [[nodiscard]] std::string kind_of(const Storage& storage) const {
    switch (storage.storage_class) {
      case StorageClass::parameter:
        return "parameter";
      case StorageClass::buffer:
        return "buffer";
      case StorageClass::input:
        return storage.name == "target" ? "target" : "input";
      default:
        return "other";
    }
  }

  [[nodiscard]] json our_saved(const SizedStep& step) const {
    std::map<std::pair<std::string, std::int64_t>, int> counts;
    std::set<StorageId> seen;
    for (const SavedTensor& saved : step.graph->saved) {
      const std::int64_t bytes = step.bytes(saved.storage).count();
      if (bytes == 0 || !seen.insert(saved.storage).second) continue;
      ++counts[{kind_of(step.graph->storage(saved.storage)), bytes}];
    }
    json list = json::array();
    for (const auto& [key, count] : counts) list.push_back({key.first, key.second, count});
    return sorted(list);
  }

  [[nodiscard]] static std::int64_t our_peak(const SizedStep& step, const std::string& phase) {
    const StepMemory memory = step_memory(step, {});
    const std::vector<Bytes> live = live_bytes(lifetimes(memory.uses, memory.steps), memory.steps);
    return phase_peak(step, live, phase);
  }

  void check_stowage(const StepGraph& ours, const StepGraph& pytorch) {
    std::set<StorageId> written;
    for (const KernelNode& node : ours.nodes) {
      for (const TensorView& view : node.reads) {
        const Storage& storage = ours.storage(view.storage);
        if (storage.persistence == Persistence::transient && !written.contains(view.storage)) {
          say(fmt::format("{} reads {} before it is written", node.name, storage.name));
        }
      }
      for (const TensorView& view : node.writes) written.insert(view.storage);
      for (const auto* views : {&node.reads, &node.writes}) {
        for (const TensorView& view : *views) check_whole(ours, node, view);
      }
    }
    for (std::size_t i = 0; i < ours.gradients.size(); ++i) {
      const bool there = ours.gradients[i].storage.valid();
      if (there != pytorch.gradients[i].storage.valid()) {
        say(fmt::format("only one kernel set has a gradient of {}", model_.parameters[i].name));
      } else if (there && ours.gradients[i].shape != model_.parameters[i].type.shape) {
        say(fmt::format("the gradient of {} has another shape", model_.parameters[i].name));
      }
    }
  }

  void check_whole(const StepGraph& graph, const KernelNode& node, const TensorView& view) {
    const Storage& storage = graph.storage(view.storage);
    if (is_contiguous(view) && view.offset == Affine(0) && byte_count(view) == storage.bytes) {
      return;
    }
    say(fmt::format("{} sees a part of {} ({})", node.name, storage.name, to_string(view.shape)));
  }

  const json& row_;
  std::int64_t batch_;
  ModelGraph model_;
  std::string disagreements_;
  bool shapes_ = true, saved_ = true, peaks_ = true;
};

void compare_rows(const std::filesystem::path& path, Comparison& comparison) {
  std::ifstream file(path);
  const json content = json::parse(file);
  for (const json& row : content.at("rows")) {
    ++comparison.compared;
    try {
      RowComparison of_row(row);
      comparison.disagreements += of_row.run();
      comparison.same_shapes += of_row.same_shapes() ? 1 : 0;
      comparison.same_saved += of_row.same_saved() ? 1 : 0;
      comparison.same_peaks += of_row.same_peaks() ? 1 : 0;
    } catch (const std::exception& error) {
      comparison.disagreements +=
          fmt::format("{}: {}\n", row.at("name").get<std::string>(), error.what());
    }
  }
}

}  // namespace

Comparison compare_operators(std::string_view family) {
  return compare_file(
      fmt::format("{}/tests/reference/operators/{}.json", testing::source_path(), family));
}

Comparison compare_file(const std::string& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry);
    std::sort(files.begin(), files.end());
  } else {
    files.emplace_back(path);
  }
  Comparison comparison;
  for (const std::filesystem::path& file : files) compare_rows(file, comparison);
  return comparison;
}

}  // namespace stowage::reference
