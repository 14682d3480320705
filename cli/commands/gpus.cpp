#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/card/card.hpp"
#include "estimator/card/mig_slice.hpp"

namespace stowage {

namespace {

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

/// The cards that the filter's words name; a slice of a divided card, which the list has not.
Result<std::vector<Card>> listed_cards(const CatalogueRequest& request) {
  if (named_slice(request.filter)) {
    auto slice = find_card(request.filter, request.configs.gpus());
    if (!slice) return tl::unexpected(std::move(slice.error()));
    return std::vector<Card>{std::move(slice->card)};
  }
  auto cards = all_cards(request.configs.gpus());
  if (cards) {
    std::erase_if(*cards, [&](const Card& card) { return !has_words(card.name, request.filter); });
  }
  return cards;
}

}  // namespace

Result<RenderedAnswer> run_gpus(const CatalogueRequest& request) {
  const auto cards = listed_cards(request);
  if (!cards) return tl::unexpected(cards.error());

  RenderedAnswer answer;
  Report& report = answer.report;
  Table table{.columns = {{"nvidia-smi", "nvml_total_bytes"},
                          {"CUDA total", "cuda_total_bytes", true},
                          {"Context", "context_bytes"},
                          {"CC", "compute_capability"},
                          {"GB/s", "memory_gb_per_second"},
                          {"fp32 TFLOPS", "fp32_tflops"},
                          {"Link GB/s", "h2d_gb_per_second"},
                          {"PCIe", "pcie"},
                          {"Name", "name"}}};
  Json::Array rows;
  for (const Card& card : *cards) {
    table.rows.push_back(
        {{card.nvml_total, card.cuda_total, card.context, Number{card.compute_capability, 1},
          Number{card.memory_bandwidth / 1e9}, Number{card.fp32_flops / 1e12, 1},
          Number{card.h2d_bandwidth / 1e9, 1}, card.pcie, card.name}});
    rows.push_back(json_of(card));
  }
  if (rows.empty() && !request.filter.empty()) {
    return failure(command_line_error(fmt::format("no card has '{}' in its name", request.filter),
                                      "stowage gpus lists them all"));
  }
  report.json = {{"gpus", std::move(rows)}};
  report.listing = table;
  report.show(std::move(table));
  return answer;
}

}  // namespace stowage
