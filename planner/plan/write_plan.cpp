#include <fmt/format.h>

#include "estimator/optimizer/optimizer_row.hpp"
#include "planner/plan/plan_fields.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/plan/section_writer.hpp"

namespace stowage {
namespace {

std::string_view name_of(Device device) { return device == Device::gpu ? "gpu" : "cpu"; }

class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan) {}

  std::string run() {
    out_.line(
        "# A stowage plan: docs/plan-file.md has the format, planner/plan/plan.hpp the meaning.");
    out_.line("stowage_plan: 2");
    out_.text("name", plan_.name);
    out_.line("pinned: {}", to_string(plan_.pinned));
    out_.section("inputs", [&] { inputs(); });
    out_.section("totals", [&] { total_fields(out_, plan_.totals); });
    if (!plan_.remarks.empty()) out_.line("remarks:");
    for (const std::string& remark : plan_.remarks) out_.line("  - {}", quoted(remark));
    out_.literal("model", plan_.inputs.model_text);
    out_.line("---");
    storages();
    nodes();
    residences("gpu", plan_.gpu);
    residences("host", plan_.host);
    transfers();
    return out_.written();
  }

 private:
  void inputs() {
    const PlanInputs& in = plan_.inputs;
    out_.text("stowage_version", in.stowage_version);
    out_.text("model_name", in.model_name);
    out_.text("model_hash", in.model_hash);
    out_.text("step_hash", in.step_hash);
    out_.line("batch: {}", in.batch);
    if (!in.model_options.name.empty()) out_.text("variant", in.model_options.name);
    if (in.lowering.kernels == KernelSet::pytorch) {
      out_.real("compute_capability", in.lowering.compute_capability);
    }
    if (in.model_options.seq) out_.line("seq: {}", *in.model_options.seq);
    if (!in.model_options.arguments.empty()) {
      out_.section("set", [&] {
        for (const auto& [key, value] : in.model_options.arguments) out_.text(quoted(key), value);
      });
    }
    if (in.model_options.precision) {
      out_.line("precision: {}", to_string(*in.model_options.precision));
    }
    out_.line("kernels: {}", to_string(in.lowering.kernels));
    out_.line("mode: {}", to_string(in.lowering.mode));
    out_.line("micro_batches: {}", in.lowering.micro_batches);
    step_settings(in.lowering.step);
    convolution_settings(in.lowering);
    out_.section("optimizer", [&] { optimizer(in.lowering.optimizer); });
    out_.section("card", [&] { card(in.card); });
    out_.section("host", [&] { host_fields(out_, in.host); });
    out_.section("rates", [&] { rate_fields(out_, in.rates); });
    out_.bytes("available_bytes", in.available);
    out_.bytes("budget_bytes", in.budget);
    out_.text("workspace_origin", in.workspace_origin);
  }

  void step_settings(const StepSettings& step) {
    if (step == StepSettings{}) return;
    out_.section("step", [&] {
      out_.line("zero_grad: {}", to_string(step.zero_grad));
      out_.line("augment: {}", step.augment);
      out_.line("prefetch: {}", step.prefetch);
      out_.line("layout: {}", to_string(step.layout));
    });
  }

  void convolution_settings(const LoweringSettings& lowering) {
    if (lowering.kernels != KernelSet::pytorch) return;
    const ConvolutionSettings& settings = lowering.convolutions;
    out_.section("convolutions", [&] {
      out_.boolean("tf32", settings.tf32);
      out_.boolean("deterministic", settings.deterministic);
      out_.boolean("benchmark", settings.benchmark);
    });
  }

  void optimizer(const OptimizerSettings& settings) {
    out_.text("name", settings.name);
    for (const OptimizerSetting& setting : setting_table()) {
      out_.line("{}: {}", setting.spec.name, to_string(value_of(settings, setting)));
    }
    out_.line("implementation: {}", to_string(settings.implementation));
    out_.line("master_weights: {}", to_string(settings.master_weights));
  }

  void card(const Card& card) {
    card_fields(out_, card);
    if (card.measurements.empty()) return;
    out_.section("measurements", [&] {
      for (const ProcessMeasurement& measurement : card.measurements) {
        out_.item([&] { measurement_fields(out_, measurement); });
      }
    });
  }

  void storages() {
    out_.line("storages: |");
    out_.line("  # class bytes name");
    for (const PlannedStorage& storage : plan_.storages) {
      out_.line("  {} {} {}", to_string(storage.storage_class), storage.bytes.count(),
                storage.name);
    }
  }

  void nodes() {
    out_.line("nodes: |");
    out_.line("  # device workspace workspace_offset name | engine");
    for (const PlannedNode& node : plan_.nodes) {
      out_.line("  {} {} {} {}{}{}", name_of(node.device), node.workspace.count(),
                node.workspace_offset.count(), node.name, node.engine.empty() ? "" : " | ",
                node.engine);
    }
  }

  void residences(const char* table, const std::vector<Residence>& residences) {
    out_.line("{}: |", table);
    out_.line("  # begin end offset storage");
    for (const Residence& residence : residences) {
      out_.line("  {} {} {} {}", residence.steps.begin, residence.steps.end,
                residence.offset.count(), storage_name(residence.storage));
    }
  }

  void transfers() {
    out_.line("transfers: |");
    out_.line("  # direction begin end storage");
    for (const Transfer& transfer : plan_.transfers) {
      out_.line("  {} {} {} {}", transfer.direction == Direction::h2d ? "h2d" : "d2h",
                transfer.begin, transfer.end, storage_name(transfer.storage));
    }
  }

  [[nodiscard]] const std::string& storage_name(StorageId id) const {
    return plan_.storages[id.index()].name;
  }

  const Plan& plan_;
  SectionWriter out_;
};

}  // namespace

std::string write_plan(const Plan& plan) { return Writer(plan).run(); }

}  // namespace stowage
