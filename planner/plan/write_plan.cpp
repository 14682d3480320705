#include <fmt/format.h>

#include <utility>

#include "estimator/document/step_document.hpp"
#include "planner/plan/certificate_table.hpp"
#include "planner/plan/plan_fields.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/plan/section_writer.hpp"

namespace stowage {
namespace {

class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan), machine_(plan.machine) {}

  std::string run() {
    out_.line(
        "# A stowage plan: docs/plan-file.md has the format, planner/plan/plan.hpp the meaning.");
    out_.line("stowage_plan: 2");
    out_.text("name", plan_.name);
    out_.line("pinned: {}", to_string(plan_.pinned));
    out_.line("minimised: {}", to_string(plan_.minimised));
    if (!(plan_.levers == Levers{})) out_.text("placement", to_string(plan_.levers));
    out_.section("inputs", [&] { inputs(); });
    out_.section("machine", [&] { machine(); });
    out_.section("totals", [&] { total_fields(out_, plan_.totals); });
    if (!plan_.pins.empty()) {
      out_.section("pins", [&] {
        for (const PinReason& reason : plan_.pins.reasons) {
          out_.item([&] { pin_reason_fields(out_, reason); });
        }
      });
    }
    if (!plan_.remarks.empty()) out_.line("remarks:");
    for (const std::string& remark : plan_.remarks) out_.line("  - {}", yaml_quoted(remark));
    if (!plan_.inputs.model_text.empty()) out_.literal("model", plan_.inputs.model_text);
    out_.raw("---\n");
    nodes();
    windows();
    seconds();
    residences();
    transfers();
    if (!plan_.pins.empty()) pins();
    if (plan_.certificate) {
      out_.raw(write_certificate(*plan_.certificate, *plan_.step.graph));
    }
    out_.raw("---\n");
    StepDocument document = plan_.document;
    document.graph = plan_.step.graph;
    out_.raw(write_step(document));
    return out_.written();
  }

 private:
  void inputs() {
    const PlanInputs& in = plan_.inputs;
    out_.text("stowage_version", in.stowage_version);
    out_.text("model_name", in.model_name);
    out_.text("model_hash", in.model_hash);
    if (!in.model_options.name.empty()) out_.text("variant", in.model_options.name);
    if (in.model_options.seq) out_.line("seq: {}", *in.model_options.seq);
    if (!in.model_options.arguments.empty()) {
      out_.section("set", [&] {
        for (const auto& [key, value] : in.model_options.arguments)
          out_.text(yaml_quoted(key), value);
      });
    }
    fine_tuning(in.model_options.fine_tuning);
    if (in.model_options.precision) {
      out_.line("precision: {}", to_string(*in.model_options.precision));
    }
    out_.text("step_hash", in.step_hash);
    out_.line("batch: {}", whole_batch(plan_).samples);
    if (in.serving) out_.section("serving", [&] { serving(*in.serving); });
    out_.section("card", [&] { card(in.card); });
    out_.section("host", [&] { host_fields(out_, in.host); });
    out_.bytes("available_bytes", in.available);
    out_.bytes("budget_bytes", in.budget.bytes);
  }

  void serving(const ServingSettings& settings) {
    out_.line("context_length: {}", settings.context_length);
    out_.line("users: {}", settings.users);
    out_.line("cache: {}", to_string(settings.cache));
    out_.line("kv_dtype: {}", to_string(settings.format));
    out_.line("kv_block: {}", settings.block);
    if (settings.prefill_chunk) out_.line("prefill_chunk: {}", *settings.prefill_chunk);
  }

  void fine_tuning(const FineTuningTexts& texts) {
    if (texts.empty()) return;
    out_.section("fine_tuning", [&] {
      if (texts.lora) out_.text("lora", *texts.lora);
      if (texts.base) out_.text("base", *texts.base);
      if (texts.checkpoint) out_.text("checkpoint", *texts.checkpoint);
      if (texts.layer_dtype) out_.text("layer_dtype", *texts.layer_dtype);
      if (texts.chunked_loss) out_.text("chunked_loss", *texts.chunked_loss);
      if (texts.offload_activations) out_.text("offload_activations", *texts.offload_activations);
      if (texts.optimizer_in_backward) {
        out_.text("optimizer_in_backward", *texts.optimizer_in_backward);
      }
    });
  }

  void card(const Card& card) {
    card_fields(out_, card);
    if (card.memory > Bytes()) out_.bytes("memory_bytes", card.memory);
    if (card.professional) out_.boolean("professional", true);
    if (!card.observed_totals.empty()) {
      out_.section("observed_totals", [&] {
        for (const ObservedTotal& observed : card.observed_totals) {
          out_.item([&] { observed_total_fields(out_, observed); });
        }
      });
    }
    if (!card.by_rule.empty()) {
      out_.section("by_rule", [&] {
        for (const std::string& key : card.by_rule) out_.line("- {}", yaml_quoted(key));
      });
    }
    if (!card.calibrated.empty()) {
      out_.section("calibrated", [&] {
        for (const std::string& key : card.calibrated) out_.line("- {}", yaml_quoted(key));
      });
    }
    if (card.measurements.empty()) return;
    out_.section("measurements", [&] {
      for (const ProcessMeasurement& measurement : card.measurements) {
        out_.item([&] { measurement_fields(out_, measurement); });
      }
    });
  }

  void machine() {
    const auto memory = [&](const char* key, MemoryId id) {
      out_.name(key, machine_.memory(id).name);
    };
    out_.section("processors", [&] {
      for (const Processor& processor : machine_.processors) {
        out_.item([&] {
          processor_fields(out_, processor);
          memory("memory", processor.memory);
          if (processor.kernels) out_.section("kernels", [&] { kernels(*processor.kernels); });
        });
      }
    });
    out_.section("memories", [&] {
      for (const Memory& each : machine_.memories) out_.item([&] { memory_fields(out_, each); });
    });
    out_.section("links", [&] {
      for (const Link& link : machine_.links) {
        out_.item([&] {
          link_fields(out_, link);
          memory("from", link.from);
          memory("to", link.to);
        });
      }
    });
    if (!machine_.measured_on.empty()) out_.text("measured_on", machine_.measured_on);
  }

  void kernels(const KernelRates& rates) {
    kernel_fields(out_, rates);
    out_.section("formats", [&] {
      for (const MathFormat format : all_math_formats) {
        out_.real(to_string(format), rates.rate(format));
      }
    });
    out_.section("kinds", [&] {
      for (const KernelKind kind : all_kernel_kinds) {
        if (rates.share(kind) == KindShare{}) continue;
        out_.section(to_string(kind), [&] { kind_fields(out_, rates.share(kind)); });
      }
    });
  }

  /// Rows for the nodes that differ from most: not on the first processor, or with an engine.
  void nodes() {
    out_.line("nodes: |");
    out_.line("  # processor workspace workspace_offset node | engine");
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlannedNode& node = plan_.nodes[i];
      if (node.processor.value == 0 && node.engine.empty() && node.workspace == Bytes()) continue;
      const std::string& name = plan_.step.graph->nodes[i].name;
      const bool has_bar = !node.engine.empty() || name.find(" | ") != name.npos;
      out_.line("  {} {} {} {}{}{}", machine_.processor(node.processor).name,
                node.workspace.count(), node.workspace_offset.count(), name, has_bar ? " | " : "",
                node.engine);
    }
  }

  /// Rows for nodes with a window longer than their own step.
  void windows() {
    const auto runs_beside = [&](std::size_t i) {
      const StepRange& window = plan_.nodes[i].window;
      return !window.empty() && window != StepRange::single(static_cast<std::int32_t>(i));
    };
    bool any = false;
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (!runs_beside(i)) continue;
      if (!std::exchange(any, true)) {
        out_.line("windows: |");
        out_.line("  # begin end node");
      }
      const StepRange& window = plan_.nodes[i].window;
      out_.line("  {} {} {}", window.begin, window.end, plan_.step.graph->nodes[i].name);
    }
  }

  /// Measured seconds of nodes: of a processor for all nodes or for none.
  void seconds() {
    if (machine_.measured_on.empty()) return;
    out_.line("seconds: |");
    out_.line("  # processor seconds node");
    for (const Processor& processor : machine_.processors) {
      for (std::size_t i = 0; i < processor.node_seconds.size(); ++i) {
        out_.line("  {} {} {}", processor.name, processor.node_seconds[i],
                  plan_.step.graph->nodes[i].name);
      }
    }
  }

  void residences() {
    out_.line("residences: |");
    out_.line("  # memory begin end offset storage");
    for (std::size_t memory = 0; memory < plan_.residences.size(); ++memory) {
      for (const Residence& residence : plan_.residences[memory]) {
        out_.line("  {} {} {} {} {}", machine_.memories[memory].name, residence.steps.begin,
                  residence.steps.end, residence.offset.count(),
                  plan_.storage(residence.storage).name);
      }
    }
  }

  void transfers() {
    out_.line("transfers: |");
    out_.line("  # link begin end storage");
    for (const Transfer& transfer : plan_.transfers) {
      out_.line("  {} {} {} {}", machine_.link(transfer.link).name, transfer.begin, transfer.end,
                plan_.storage(transfer.storage).name);
    }
  }

  void pins() {
    out_.line("pins: |");
    out_.line("  # device reason kind name");
    const auto row = [&](const AppliedPin& applied, std::string_view kind, std::string_view name) {
      if (applied.pin == Pin::free) return;
      out_.line("  {} {} {} {}", applied.pin == Pin::cpu ? "cpu" : "gpu", applied.reason, kind,
                name);
    };
    for (std::size_t i = 0; i < plan_.pins.nodes.size(); ++i) {
      row(plan_.pins.nodes[i], "node", plan_.step.graph->nodes[i].name);
    }
    for (std::size_t i = 0; i < plan_.pins.storages.size(); ++i) {
      row(plan_.pins.storages[i], "storage", plan_.step.graph->storages[i].name);
    }
  }

  const Plan& plan_;
  const Machine& machine_;
  SectionWriter out_;
};

}  // namespace

std::string write_plan(const Plan& plan) { return Writer(plan).run(); }

}  // namespace stowage
