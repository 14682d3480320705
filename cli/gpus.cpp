#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/config_directory.hpp"
#include "estimator/memory/card.hpp"

namespace stowage {

namespace {

std::string giga(double per_second) { return fmt::format("{:.0f}", per_second / 1e9); }
std::string tera(double per_second) { return fmt::format("{:.1f}", per_second / 1e12); }

Json json_of(const Card& card) {
  return Json::Object{{"name", card.name},
                      {"architecture", card.architecture},
                      {"compute_capability", card.compute_capability},
                      {"sm_count", card.sm_count},
                      {"nvml_total_bytes", card.nvml_total},
                      {"cuda_total_bytes", card.cuda_total},
                      {"total_source", card.total_source},
                      {"context_bytes", card.context},
                      {"context_source", card.context_source},
                      {"memory_bandwidth", card.memory_bandwidth},
                      {"fp32_flops", card.fp32_flops},
                      {"tf32_flops", card.tf32_flops},
                      {"fp16_flops", card.fp16_flops},
                      {"h2d_bandwidth", card.h2d_bandwidth},
                      {"d2h_bandwidth", card.d2h_bandwidth},
                      {"pcie", card.pcie},
                      {"rate_source", card.rate_source},
                      {"confidence", card.confidence},
                      {"workspace_source", card.cudnn_device_json.empty() ? "rule" : "cudnn"}};
}

}  // namespace

Result<Answer> run_gpus(const Arguments& arguments) {
  const auto configs = find_configs(arguments);
  if (!configs) return tl::unexpected(configs.error());
  const auto cards = all_cards(configs->gpus());
  if (!cards) return tl::unexpected(cards.error());

  Answer answer;
  Report& report = answer.report;
  Table table{.columns = {{"nvidia-smi", ""},
                          {"CUDA total", ""},
                          {"context", ""},
                          {"cc", ""},
                          {"GB/s", ""},
                          {"fp32 TFLOPS", ""},
                          {"PCIe", ""},
                          {"Name", ""}}};
  Table listing{.columns = {{"", "nvml_total_bytes"},
                            {"", "cuda_total_bytes"},
                            {"", "context_bytes"},
                            {"", "compute_capability"},
                            {"", "memory_bandwidth"},
                            {"", "fp32_flops"},
                            {"", "h2d_bandwidth"},
                            {"", "pcie"},
                            {"", "confidence"},
                            {"", "name"}}};
  Json::Array rows;
  for (const Card& card : *cards) {
    const std::string capability = fmt::format("{:.1f}", card.compute_capability);
    table.rows.push_back(
        {{card.nvml_total, card.cuda_total, card.context, capability, giga(card.memory_bandwidth),
          tera(card.fp32_flops), card.pcie, card.name}});
    listing.rows.push_back(
        {{card.nvml_total, card.cuda_total, card.context, capability,
          fmt::format("{}", card.memory_bandwidth), fmt::format("{}", card.fp32_flops),
          fmt::format("{}", card.h2d_bandwidth), card.pcie, card.confidence, card.name}});
    rows.push_back(json_of(card));
  }
  report.json = {{"gpus", std::move(rows)}};
  report.listing = std::move(listing);
  report.show(std::move(table));
  return answer;
}

}  // namespace stowage
