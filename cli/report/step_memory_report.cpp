#include "cli/report/step_memory_report.hpp"

#include <fmt/format.h>

#include "cli/output/table.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

bool trains(const Footprint& footprint) { return footprint.graph->settings.mode == Mode::train; }

std::string peak_at(const Footprint& footprint) {
  const auto& nodes = footprint.graph->nodes;
  const auto step = static_cast<std::size_t>(footprint.step);
  return step < nodes.size() ? nodes[step].name : std::string();
}

}  // namespace

Result<Footprint> tensor_footprint(std::shared_ptr<const StepGraph> step, std::int64_t batch) {
  const auto sized = size_storages(std::move(step), batch);
  if (!sized) return tl::unexpected(sized.error());
  return peak_footprint(*sized, {.with_workspaces = false}, storage_touches(*sized->graph));
}

Json memory_json(const Footprint& footprint, std::int64_t batch) {
  Json::Object classes;
  for (int c = 0; c < storage_class_count; ++c) {
    classes.emplace_back(to_string(static_cast<StorageClass>(c)),
                         footprint.by_class[static_cast<std::size_t>(c)]);
  }
  const LoweringSettings& settings = footprint.graph->settings;
  return Json::Object{{"batch", batch},
                      {"mode", to_string(settings.mode)},
                      {"optimizer", trains(footprint) ? Json(settings.optimizer.name) : Json()},
                      {"peak_tensor_bytes", footprint.total},
                      {"at", peak_at(footprint)},
                      {"footprint", std::move(classes)}};
}

void say_memory(const Footprint& footprint, std::int64_t batch, Report& out) {
  const std::string step =
      trains(footprint)
          ? fmt::format("Training with {}", optimizer_text(footprint.graph->settings.optimizer))
          : std::string("Inference");
  out.say(fmt::format("\n{}, batch {}: live at the peak, while {} runs:", step,
                      grouped_digits(batch), peak_at(footprint)));
  Table table{.columns = {{"", "bytes"}, {"", "name"}}};
  for (int c = 0; c < storage_class_count; ++c) {
    const Bytes bytes = footprint.by_class[static_cast<std::size_t>(c)];
    if (bytes == Bytes()) continue;
    table.rows.push_back({{bytes, spaced(to_string(static_cast<StorageClass>(c)))}});
  }
  table.rows.push_back({{footprint.total, std::string("tensors")}, true});
  out.show(std::move(table));
}

}  // namespace stowage
