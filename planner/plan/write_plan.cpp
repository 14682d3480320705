#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "estimator/optimizer/optimizer_row.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {
namespace {

/// Whether a text can stand in a literal block and be read back byte for byte.
bool is_plain_text(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02X}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string_view name_of(Device device) { return device == Device::gpu ? "gpu" : "cpu"; }

class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan) {}

  std::string run() {
    line("# A stowage plan: docs/plan-file.md has the format, planner/plan/plan.hpp the meaning.");
    line("stowage_plan: 1");
    line("name: {}", quoted(plan_.name));
    inputs();
    totals();
    if (!plan_.remarks.empty()) line("remarks:");
    for (const std::string& remark : plan_.remarks) line("  - {}", quoted(remark));
    model_text();
    line("---");
    storages();
    nodes();
    residences("gpu", plan_.gpu);
    residences("host", plan_.host);
    transfers();
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
  }

  void inputs() {
    const PlanInputs& in = plan_.inputs;
    line("inputs:");
    line("  stowage_version: {}", quoted(in.stowage_version));
    line("  model_name: {}", quoted(in.model_name));
    line("  model_hash: {}", quoted(in.model_hash));
    line("  step_hash: {}", quoted(in.step_hash));
    line("  batch: {}", in.batch);
    if (!in.model_options.name.empty()) line("  variant: {}", quoted(in.model_options.name));
    if (in.lowering.kernels == KernelSet::pytorch) {
      line("  compute_capability: {}", in.lowering.compute_capability);
    }
    if (in.model_options.seq) line("  seq: {}", *in.model_options.seq);
    if (!in.model_options.arguments.empty()) line("  set:");
    for (const auto& [key, value] : in.model_options.arguments) {
      line("    {}: {}", quoted(key), quoted(value));
    }
    if (in.model_options.precision) {
      line("  precision: {}", to_string(*in.model_options.precision));
    }
    line("  kernels: {}", to_string(in.lowering.kernels));
    line("  mode: {}", to_string(in.lowering.mode));
    line("  micro_batches: {}", in.lowering.micro_batches);
    step_settings(in.lowering.step);
    convolution_settings(in.lowering);
    const OptimizerSettings& optimizer = in.lowering.optimizer;
    line("  optimizer:");
    line("    name: {}", quoted(optimizer.name));
    for (const OptimizerSetting& setting : setting_table()) {
      line("    {}: {}", setting.spec.name, to_string(value_of(optimizer, setting)));
    }
    line("    implementation: {}", to_string(optimizer.implementation));
    line("    master_weights: {}", to_string(optimizer.master_weights));
    line("  card: {}", quoted(in.card));
    line("  host: {}", quoted(in.host));
    rates(in.rates);
    line("  available_bytes: {}", in.available.count());
    line("  budget_bytes: {}", in.budget.count());
    line("  workspace_origin: {}", quoted(in.workspace_origin));
  }

  void step_settings(const StepSettings& step) {
    if (step == StepSettings{}) return;
    line("  step:");
    line("    zero_grad: {}", to_string(step.zero_grad));
    line("    augment: {}", step.augment);
    line("    prefetch: {}", step.prefetch);
    line("    layout: {}", to_string(step.layout));
  }

  void convolution_settings(const LoweringSettings& lowering) {
    if (lowering.kernels != KernelSet::pytorch) return;
    const ConvolutionSettings& settings = lowering.convolutions;
    line("  convolutions:");
    line("    tf32: {}", settings.tf32);
    line("    deterministic: {}", settings.deterministic);
    line("    benchmark: {}", settings.benchmark);
  }

  void rates(const Rates& rates) {
    line("  rates:");
    line("    gpu_flops: {}", rates.gpu_flops);
    line("    gpu_bandwidth: {}", rates.gpu_bandwidth);
    line("    gpu_launch: {}", rates.gpu_launch);
    line("    cpu_flops: {}", rates.cpu_flops);
    line("    cpu_bandwidth: {}", rates.cpu_bandwidth);
    line("    cpu_launch: {}", rates.cpu_launch);
    line("    h2d_bandwidth: {}", rates.h2d_bandwidth);
    line("    d2h_bandwidth: {}", rates.d2h_bandwidth);
    line("    link_latency: {}", rates.link_latency);
  }

  void totals() {
    const PlanTotals& totals = plan_.totals;
    line("totals:");
    line("  gpu_peak_bytes: {}", totals.gpu_peak.count());
    line("  arena_bytes: {}", totals.arena.count());
    line("  arena_lower_bound_bytes: {}", totals.arena_lower_bound.count());
    line("  host_peak_bytes: {}", totals.host_peak.count());
    line("  h2d_bytes: {}", totals.h2d.count());
    line("  d2h_bytes: {}", totals.d2h.count());
    line("  pcie_lower_bound_bytes: {}", totals.pcie_lower_bound.count());
    line("  cost_seconds: {}", totals.cost_seconds);
    line("  cost_lower_bound_seconds: {}", totals.cost_lower_bound_seconds);
    line("  all_gpu_cost_seconds: {}", totals.all_gpu_cost_seconds);
    line("  step_seconds: {}", totals.step_seconds);
    line("  all_gpu_step_seconds: {}", totals.all_gpu_step_seconds);
    line("  proved_optimal: {}", totals.proved_optimal);
  }

  /// A literal block keeps the description readable; its chomping says whether it ends in newlines.
  void model_text() {
    const std::string& text = plan_.inputs.model_text;
    if (text.empty() || !is_plain_text(text) || text.find_first_not_of('\n') == text.npos) {
      line("model: {}", quoted(text));
      return;
    }
    const bool ended = text.back() == '\n';
    line("model: |2{}", ended ? '+' : '-');
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view part = std::string_view(text).substr(begin, end - begin);
      part.empty() ? line("") : line("  {}", part);
      begin = end + 1;
    }
  }

  void storages() {
    line("storages: |");
    line("  # class bytes name");
    for (const PlannedStorage& storage : plan_.storages) {
      line("  {} {} {}", to_string(storage.storage_class), storage.bytes.count(), storage.name);
    }
  }

  void nodes() {
    line("nodes: |");
    line("  # device workspace workspace_offset name | engine");
    for (const PlannedNode& node : plan_.nodes) {
      line("  {} {} {} {}{}{}", name_of(node.device), node.workspace.count(),
           node.workspace_offset.count(), node.name, node.engine.empty() ? "" : " | ", node.engine);
    }
  }

  void residences(const char* table, const std::vector<Residence>& residences) {
    line("{}: |", table);
    line("  # begin end offset storage");
    for (const Residence& residence : residences) {
      line("  {} {} {} {}", residence.steps.begin, residence.steps.end, residence.offset.count(),
           storage_name(residence.storage));
    }
  }

  void transfers() {
    line("transfers: |");
    line("  # direction begin end storage");
    for (const Transfer& transfer : plan_.transfers) {
      line("  {} {} {} {}", transfer.direction == Direction::h2d ? "h2d" : "d2h", transfer.begin,
           transfer.end, storage_name(transfer.storage));
    }
  }

  [[nodiscard]] const std::string& storage_name(StorageId id) const {
    return plan_.storages[id.index()].name;
  }

  const Plan& plan_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string write_plan(const Plan& plan) { return Writer(plan).run(); }

}  // namespace stowage
