#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "estimator/model/mistakes.hpp"
#include "estimator/model/yaml_document.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "planner/plan/plan_header.hpp"

namespace stowage {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 62;

template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc() || stopped != end) return std::nullopt;
  return number;
}

/// One mapping: each key is asked for once; what was not asked for is unknown.
class Section {
 public:
  Section(const YamlNode& node, std::string name, Mistakes& mistakes)
      : node_(node), name_(std::move(name)), mistakes_(mistakes) {
    if (!node.is_mapping()) {
      mistakes_.error(node.mark,
                      fmt::format("{} must be a mapping, not {}", name_, describe(node)));
    }
  }

  const YamlNode* find(std::string_view key, bool required = true) {
    asked_.push_back(key);
    if (!node_.is_mapping()) return nullptr;
    const YamlNode* value = node_.find(key);
    if (value == nullptr && required) {
      mistakes_.error(node_.mark, fmt::format("{} lacks '{}'", name_, key));
    }
    return value;
  }

  void text(std::string_view key, std::string& target) {
    const YamlNode* value = find(key);
    if (value == nullptr) return;
    if (!value->is_scalar()) return refuse(*value, key, "a text");
    target = value->text;
  }

  void integer(std::string_view key, std::int64_t least, std::int64_t most, std::int64_t& target) {
    const YamlNode* value = find(key);
    if (value == nullptr) return;
    const auto number = value->is_scalar() && !value->quoted
                            ? parse_number<std::int64_t>(value->text)
                            : std::nullopt;
    if (!number || *number < least || *number > most) {
      return refuse(*value, key, fmt::format("an integer from {} to {}", least, most));
    }
    target = *number;
  }

  void bytes(std::string_view key, Bytes& target) {
    std::int64_t count = 0;
    integer(key, 0, most_bytes, count);
    target = Bytes(count);
  }

  void real(std::string_view key, double& target) {
    const YamlNode* value = find(key);
    if (value == nullptr) return;
    const auto number =
        value->is_scalar() && !value->quoted ? parse_number<double>(value->text) : std::nullopt;
    if (!number || !std::isfinite(*number) || *number < 0) {
      return refuse(*value, key, "a number that is not negative");
    }
    target = *number;
  }

  void boolean(std::string_view key, bool& target) {
    const YamlNode* value = find(key);
    if (value == nullptr) return;
    if (!value->is_scalar() || (value->text != "true" && value->text != "false")) {
      return refuse(*value, key, "true or false");
    }
    target = value->text == "true";
  }

  /// A word that `to_string` gives for one of `values`.
  template <typename Enum, std::size_t count>
  void choice(std::string_view key, const std::array<Enum, count>& values, Enum& target) {
    const YamlNode* value = find(key);
    if (value == nullptr) return;
    std::string expected;
    for (const Enum candidate : values) {
      if (value->is_scalar() && value->text == to_string(candidate)) {
        target = candidate;
        return;
      }
      expected += (expected.empty() ? "" : " or ") + std::string(to_string(candidate));
    }
    refuse(*value, key, expected);
  }

  void finish() {
    if (!node_.is_mapping()) return;
    const std::set<std::string_view> known(asked_.begin(), asked_.end());
    for (std::size_t i = 0; i < node_.entry_count(); ++i) {
      const YamlNode& key = node_.key(i);
      if (key.is_scalar() && known.contains(key.text)) continue;
      mistakes_.error(key.mark, fmt::format("{} has no '{}'", name_, key.text),
                      mistakes_.suggest(key.text, asked_));
    }
  }

 private:
  void refuse(const YamlNode& value, std::string_view key, std::string_view expected) {
    mistakes_.error(value.mark,
                    fmt::format("'{}' must be {}, not {}", key, expected, describe(value)));
  }

  const YamlNode& node_;
  std::string name_;
  Mistakes& mistakes_;
  std::vector<std::string_view> asked_;
};

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

void read_rates(const YamlNode& node, Mistakes& mistakes, Rates& rates) {
  Section section(node, "'rates'", mistakes);
  section.real("gpu_flops", rates.gpu_flops);
  section.real("gpu_bandwidth", rates.gpu_bandwidth);
  section.real("gpu_launch", rates.gpu_launch);
  section.real("cpu_flops", rates.cpu_flops);
  section.real("cpu_bandwidth", rates.cpu_bandwidth);
  section.real("cpu_launch", rates.cpu_launch);
  section.real("h2d_bandwidth", rates.h2d_bandwidth);
  section.real("d2h_bandwidth", rates.d2h_bandwidth);
  section.real("link_latency", rates.link_latency);
  section.finish();
}

void read_model_options(Section& section, Mistakes& mistakes, ModelOptions& options) {
  if (section.find("seq", false) != nullptr) {
    std::int64_t seq = 0;
    section.integer("seq", 1, most_bytes, seq);
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
  section.integer("batch", 1, most_bytes, inputs.batch);
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
  section.text("card", inputs.card);
  section.text("host", inputs.host);
  if (const YamlNode* rates = section.find("rates")) read_rates(*rates, mistakes, inputs.rates);
  section.bytes("available_bytes", inputs.available);
  section.bytes("budget_bytes", inputs.budget);
  section.text("workspace_origin", inputs.workspace_origin);
  section.finish();
}

void read_totals(const YamlNode& node, Mistakes& mistakes, PlanTotals& totals) {
  Section section(node, "'totals'", mistakes);
  section.bytes("gpu_peak_bytes", totals.gpu_peak);
  section.bytes("arena_bytes", totals.arena);
  section.bytes("arena_lower_bound_bytes", totals.arena_lower_bound);
  section.bytes("host_peak_bytes", totals.host_peak);
  section.bytes("h2d_bytes", totals.h2d);
  section.bytes("d2h_bytes", totals.d2h);
  section.bytes("pcie_lower_bound_bytes", totals.pcie_lower_bound);
  section.real("cost_seconds", totals.cost_seconds);
  section.real("cost_lower_bound_seconds", totals.cost_lower_bound_seconds);
  section.real("all_gpu_cost_seconds", totals.all_gpu_cost_seconds);
  section.real("step_seconds", totals.step_seconds);
  section.real("all_gpu_step_seconds", totals.all_gpu_step_seconds);
  section.boolean("proved_optimal", totals.proved_optimal);
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

/// Of another version nothing else can be said.
bool check_version(const YamlNode& root, Mistakes& mistakes) {
  const YamlNode* version = root.is_mapping() ? root.find("stowage_plan") : nullptr;
  if (version == nullptr) {
    mistakes.error(root.mark, "this is not a plan: it lacks 'stowage_plan'");
    return false;
  }
  if (!version->is_scalar() || version->text != "1") {
    mistakes.error(version->mark,
                   fmt::format("this program reads plans of format 1, not {}", describe(*version)));
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
    if (const YamlNode* totals = section.find("totals")) {
      read_totals(*totals, mistakes, plan.totals);
    }
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
