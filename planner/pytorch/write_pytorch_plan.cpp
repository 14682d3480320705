#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "estimator/document/step_text.hpp"
#include "estimator/rewrite/update_on_host.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"

namespace stowage {

namespace {

using step_text::json_text;
using step_text::put;
using step_text::put_list;
using step_text::Text;

std::string dimension_text(const Affine& dimension) {
  if (dimension.is_constant()) return fmt::format("{}", dimension.constant);
  return json_text(dimension.to_string());
}

std::string key_or_null(const std::string& key) { return key.empty() ? "null" : json_text(key); }

class PytorchPlanWriter {
 public:
  explicit PytorchPlanWriter(const PytorchPlan& plan) : plan_(plan) {}

  std::string run() {
    put(text_, "{{\"format\": {}, \"version\": 1,\n", json_text(pytorch_plan_format));
    put(text_, "\"written_by\": {},\n",
        json_text(fmt::format("stowage {}", plan_.stowage_version)));
    put(text_, "\"model\": {}, \"names\": {}, \"batch\": {}, \"micro_batches\": {},\n",
        json_text(plan_.model), json_text(plan_.names_are_recorded ? "recorded" : "described"),
        plan_.batch * plan_.micro_batches, plan_.micro_batches);
    put(text_, "\"mode\": {}, \"precision\": {}, \"optimizer\": {}, \"step\": {},\n",
        json_text(plan_.trains ? "train" : "inference"), json_text(plan_.precision),
        json_text(plan_.optimizer), json_text(plan_.step_hash));
    put(text_, "\"gpu\": {{\"name\": {}, \"available_bytes\": {}}}, \"pytorch\": {},\n",
        json_text(plan_.card), plan_.available.count(), json_text(plan_.pytorch));
    question();
    if (plan_.expandable_segments) {
      put(text_, "\"allocator\": {},\n", json_text(expandable_conf));
    }
    put(text_, "\"passes\": {{\"saved\": {}}},\n", plan_.saved);
    put(text_, "\"offload\": ");
    put_list(text_, plan_.offload.size(), [&](std::size_t i) { offloaded(plan_.offload[i]); });
    put(text_, ",\n\"checkpoint\": ");
    put_list(text_, plan_.checkpoint.size(), [&](std::size_t i) {
      put(text_, "\n{{\"module\": {}}}", json_text(plan_.checkpoint[i]));
    });
    put(text_, ",\n\"stream\": ");
    put_list(text_, plan_.stream.size(), [&](std::size_t i) { streamed(plan_.stream[i]); });
    put(text_, ",\n\"chunks\": ");
    if (plan_.chunks) {
      chunks(*plan_.chunks);
    } else {
      put(text_, "null");
    }
    put(text_, ",\n\"optimizer_on_cpu\": ");
    if (plan_.optimizer_on_cpu) {
      put(text_, "{{\"gradients_in_flight\": {}", gradients_in_flight);
      if (!plan_.cpu_parameters.empty()) {
        put(text_, ", \"parameters\": ");
        put_list(text_, plan_.cpu_parameters.size(),
                 [&](std::size_t i) { put(text_, "{}", json_text(plan_.cpu_parameters[i])); });
      }
      put(text_, "}},\n");
    } else {
      put(text_, "null,\n");
    }
    if (plan_.early_updates) put(text_, "\"updates\": {},\n", json_text(early_updates_word));
    totals(plan_.totals);
    put(text_, "}}\n");
    return fmt::to_string(text_);
  }

 private:
  void question() {
    if (!plan_.question) return;
    put(text_, "\"question\": {{\"model\": {}, \"settings\": {{", json_text(plan_.question->model));
    std::string_view between = "";
    for (const auto& setting : plan_.question->settings) {
      put(text_, "{}{}: ", between, json_text(setting.first));
      put_list(text_, setting.second.size(),
               [&](std::size_t i) { put(text_, "{}", json_text(setting.second[i])); });
      between = ", ";
    }
    put(text_, "}}}},\n");
  }

  void offloaded(const OffloadedStorage& storage) {
    put(text_, "\n{{\"saved\": ");
    put_list(text_, storage.saved.size(), [&](std::size_t i) {
      const SavedName& name = storage.saved[i];
      put(text_, "{{\"key\": {}, \"dtype\": {}, \"shape\": ", json_text(name.key),
          json_text(to_string(name.type)));
      shape(name.shape);
      put(text_, "}}");
    });
    put(text_, ", \"bytes\": [{}, {}], \"start\": {}, \"release\": {}, \"fetch\": {}}}",
        storage.bytes.constant, storage.bytes.slope, json_text(storage.start),
        key_or_null(storage.release), key_or_null(storage.fetch));
  }

  void streamed(const StreamedModule& module) {
    put(text_, "\n{{\"module\": {}, \"parameters\": ", json_text(module.module));
    put_list(text_, module.parameters.size(),
             [&](std::size_t i) { put(text_, "{}", json_text(module.parameters[i])); });
    put(text_, ", \"bytes\": {}, \"uploads\": {}}}", module.bytes.count(), module.uploads);
  }

  void chunks(const InferenceChunks& chunks) {
    put(text_, "{{\"parts\": {}, \"inputs\": ", chunks.parts);
    put_list(text_, chunks.inputs.size(), [&](std::size_t i) { shape(chunks.inputs[i]); });
    put(text_, ", \"output\": ");
    shape(chunks.output);
    put(text_, "}}");
  }

  void shape(const Shape& of) {
    put_list(text_, of.size(),
             [&](std::size_t axis) { put(text_, "{}", dimension_text(of[axis])); });
  }

  void totals(const PytorchTotals& totals) {
    put(text_,
        "\"totals\": {{\"peak_allocated_bytes\": {}, \"peak_reserved_bytes\": {}, "
        "\"device_bytes\": {},\n",
        totals.peak_allocated.count(), totals.peak_reserved.count(), totals.device_bytes.count());
    put(text_, "  \"to_host_bytes\": {}, \"from_host_bytes\": {}, \"pinned_bytes\": {},\n",
        totals.to_host.count(), totals.from_host.count(), totals.pinned.count());
    put(text_,
        "  \"step_seconds\": {}, \"all_gpu_step_seconds\": {}, \"recomputed_seconds\": {},\n",
        step_text::written(totals.step_seconds), step_text::written(totals.all_gpu_step_seconds),
        step_text::written(totals.recomputed_seconds));
    put(text_, "  \"pcie_lower_bound_bytes\": {}, \"step_lower_bound_seconds\": {}}}",
        totals.pcie_lower_bound.count(),
        totals.step_lower_bound_seconds ? step_text::written(*totals.step_lower_bound_seconds)
                                        : "null");
  }

  const PytorchPlan& plan_;
  Text text_;
};

}  // namespace

std::string write_pytorch_plan(const PytorchPlan& plan) {
  std::string text = PytorchPlanWriter(plan).run();
  const auto read =
      read_pytorch_plan(std::make_shared<const SourceText>(SourceText{"the plan", text}));
  if (!read) {
    throw std::logic_error("a plan for PyTorch cannot be read: " + read.error().front().message);
  }
  if (!(*read == plan)) throw std::logic_error("a plan for PyTorch is read as another one");
  return text;
}

}  // namespace stowage
