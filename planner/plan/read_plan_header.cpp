#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "estimator/model/mistakes.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/text/yaml_document.hpp"
#include "planner/plan/plan_fields.hpp"
#include "planner/plan/plan_header.hpp"
#include "planner/plan/section.hpp"

namespace stowage {
namespace {

void read_optimizer(const YamlNode& node, Mistakes& mistakes, OptimizerSettings& optimizer) {
  Section section(node, "'optimizer'", mistakes);
  section.text("name", optimizer.name);
  for (const OptimizerSetting& setting : setting_table()) {
    if (const auto* flag = std::get_if<bool OptimizerSettings::*>(&setting.member)) {
      section.boolean(setting.spec.name, optimizer.*(*flag));
    } else {
      section.real(setting.spec.name,
                   optimizer.*std::get<double OptimizerSettings::*>(setting.member));
    }
  }
  using enum OptimizerImplementation;
  section.choice("implementation", std::array{usual, for_loop, foreach, fused},
                 optimizer.implementation);
  section.choice(
      "master_weights",
      std::array{MasterWeights::none, MasterWeights::weights, MasterWeights::weights_and_gradients},
      optimizer.master_weights);
  section.finish();
}

/// A mapping that is a list of fields, as plan_fields.hpp has it.
template <typename Record, typename Fields>
void read_record(const YamlNode* node, std::string name, Mistakes& mistakes, Record& record,
                 const Fields& fields) {
  if (node == nullptr) return;
  Section section(*node, std::move(name), mistakes);
  fields(section, record);
  section.finish();
}

void read_measurements(const YamlNode& list, Mistakes& mistakes, Card& card) {
  if (!list.is_sequence()) {
    mistakes.error(list.mark, fmt::format("'measurements' must be a list, not {}", describe(list)));
    return;
  }
  for (const YamlNode* item : list.items) {
    ProcessMeasurement& measurement = card.measurements.emplace_back();
    read_record(item, "a measurement", mistakes, measurement,
                [](Section& fields, ProcessMeasurement& of) { measurement_fields(fields, of); });
  }
}

void read_card_record(const YamlNode& node, Mistakes& mistakes, Card& card) {
  Section section(node, "'card'", mistakes);
  card_fields(section, card);
  if (const YamlNode* list = section.find("measurements", false)) {
    read_measurements(*list, mistakes, card);
  }
  section.finish();
}

void read_model_options(Section& section, Mistakes& mistakes, ModelOptions& options) {
  if (section.find("seq", false) != nullptr) {
    std::int64_t seq = 0;
    section.integer("seq", 1, most_plan_bytes, seq);
    options.seq = seq;
  }
  if (section.find("variant", false) != nullptr) section.text("variant", options.name);
  if (const YamlNode* precision = section.find("precision", false)) {
    options.precision = parse_precision(precision->is_scalar() ? precision->text : std::string());
    if (!options.precision) {
      mistakes.error(precision->mark,
                     fmt::format("'precision' must be one of {}, not {}",
                                 fmt::join(precision_names(), ", "), describe(*precision)));
    }
  }
  const YamlNode* set = section.find("set", false);
  if (set == nullptr) return;
  if (!set->is_mapping()) {
    mistakes.error(set->mark, fmt::format("'set' must be a mapping, not {}", describe(*set)));
    return;
  }
  for (std::size_t i = 0; i < set->entry_count(); ++i) {
    if (set->key(i).is_scalar() && set->value(i).is_scalar()) {
      options.arguments[set->key(i).text] = set->value(i).text;
    } else {
      mistakes.error(set->key(i).mark, "'set' holds pairs of a name and a text");
    }
  }
}

void read_step_settings(const YamlNode& node, Mistakes& mistakes, StepSettings& step) {
  constexpr std::int64_t most_copies = 1'000;
  Section section(node, "'step'", mistakes);
  section.choice("zero_grad", std::array{ZeroGrad::to_none, ZeroGrad::to_zero}, step.zero_grad);
  std::int64_t augment = 0, prefetch = 0;
  section.integer("augment", 0, most_copies, augment);
  section.integer("prefetch", 0, most_copies, prefetch);
  step.augment = static_cast<int>(augment);
  step.prefetch = static_cast<int>(prefetch);
  if (section.find("layout", false) != nullptr) {
    section.choice("layout", std::array{TensorLayout::contiguous, TensorLayout::channels_last},
                   step.layout);
  }
  section.finish();
}

void read_convolution_settings(const YamlNode& node, Mistakes& mistakes,
                               ConvolutionSettings& settings) {
  Section section(node, "'convolutions'", mistakes);
  section.boolean("tf32", settings.tf32);
  section.boolean("deterministic", settings.deterministic);
  section.boolean("benchmark", settings.benchmark);
  section.finish();
}

void read_inputs(const YamlNode& node, Mistakes& mistakes, PlanInputs& inputs) {
  Section section(node, "'inputs'", mistakes);
  section.text("stowage_version", inputs.stowage_version);
  section.text("model_name", inputs.model_name);
  section.text("model_hash", inputs.model_hash);
  section.text("step_hash", inputs.step_hash);
  section.integer("batch", 1, most_plan_bytes, inputs.batch);
  read_model_options(section, mistakes, inputs.model_options);
  section.choice("kernels", std::array{KernelSet::pytorch, KernelSet::stowage},
                 inputs.lowering.kernels);
  section.choice("mode", std::array{Mode::train, Mode::inference}, inputs.lowering.mode);
  if (section.find("compute_capability", false) != nullptr) {
    section.real("compute_capability", inputs.lowering.compute_capability);
  }
  std::int64_t micro_batches = 1;
  section.integer("micro_batches", 1, std::numeric_limits<int>::max(), micro_batches);
  inputs.lowering.micro_batches = static_cast<int>(micro_batches);
  if (const YamlNode* step = section.find("step", false)) {
    read_step_settings(*step, mistakes, inputs.lowering.step);
  }
  if (const YamlNode* convolutions = section.find("convolutions", false)) {
    read_convolution_settings(*convolutions, mistakes, inputs.lowering.convolutions);
  }
  if (const YamlNode* optimizer = section.find("optimizer")) {
    read_optimizer(*optimizer, mistakes, inputs.lowering.optimizer);
  }
  if (const YamlNode* card = section.find("card")) read_card_record(*card, mistakes, inputs.card);
  read_record(section.find("host"), "'host'", mistakes, inputs.host,
              [](Section& fields, Host& host) { host_fields(fields, host); });
  read_record(section.find("rates"), "'rates'", mistakes, inputs.rates,
              [](Section& fields, Rates& rates) { rate_fields(fields, rates); });
  section.bytes("available_bytes", inputs.available);
  section.bytes("budget_bytes", inputs.budget);
  section.text("workspace_origin", inputs.workspace_origin);
  section.finish();
}

void read_remarks(const YamlNode& node, Mistakes& mistakes, std::vector<std::string>& remarks) {
  if (!node.is_sequence()) {
    mistakes.error(node.mark, fmt::format("'remarks' must be a list, not {}", describe(node)));
    return;
  }
  for (const YamlNode* item : node.items) {
    if (item->is_scalar()) {
      remarks.push_back(item->text);
    } else {
      mistakes.error(item->mark, fmt::format("a remark must be a text, not {}", describe(*item)));
    }
  }
}

/// A plan of another version is not read any further.
bool check_version(const YamlNode& root, Mistakes& mistakes) {
  const YamlNode* version = root.is_mapping() ? root.find("stowage_plan") : nullptr;
  if (version == nullptr) {
    mistakes.error(root.mark, "this is not a plan: it lacks 'stowage_plan'");
    return false;
  }
  if (!version->is_scalar() || version->text != "2") {
    mistakes.error(version->mark,
                   fmt::format("this program reads plans of format 2, not {}", describe(*version)));
    return false;
  }
  return true;
}

}  // namespace

Result<Plan> read_plan_header(SourceTextPtr source) {
  const auto document = read_yaml(source);
  if (!document) return tl::unexpected(document.error());
  Mistakes mistakes(source);
  for (const Diagnostic& mistake : document->mistakes) mistakes.add(mistake);
  Plan plan;
  if (check_version(*document->root, mistakes)) {
    Section section(*document->root, "the plan", mistakes);
    section.find("stowage_plan");
    section.text("name", plan.name);
    if (const YamlNode* inputs = section.find("inputs")) {
      read_inputs(*inputs, mistakes, plan.inputs);
    }
    section.choice("pinned", std::array{Pinned::nothing, Pinned::computation, Pinned::all_nodes},
                   plan.pinned);
    read_record(section.find("totals"), "'totals'", mistakes, plan.totals,
                [](Section& fields, PlanTotals& totals) { total_fields(fields, totals); });
    if (const YamlNode* remarks = section.find("remarks", false)) {
      read_remarks(*remarks, mistakes, plan.remarks);
    }
    section.text("model", plan.inputs.model_text);
    section.finish();
  }
  if (mistakes.any_errors()) return tl::unexpected(std::move(mistakes).in_order());
  return plan;
}

}  // namespace stowage
