#include "estimator/card/card_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "estimator/card/card_rules.hpp"
#include "estimator/card/measurement_reader.hpp"
#include "estimator/text/field_reader.hpp"

namespace stowage {
namespace {

constexpr FieldWords card_file_words{
    .of = "the card", .file = "a card file", .refusal = FieldWords::Refusal::is_not};

void read_board(FieldReader& fields, Card& card) {
  const YamlNode* board = fields.find("board", Presence::optional);
  std::string text;
  if (board == nullptr || !fields.word("board", text, Presence::optional)) return;
  card.professional = text == "professional";
  if (card.professional || text == "consumer") return;
  fields.wrong(*board, fmt::format("'board' is professional or consumer, not '{}'", text));
}

/// Reads every field of a card file into `card`. A calibration may also have `host` and `measured`,
/// which are read elsewhere.
void read_fields(const YamlNode& node, bool is_calibration, Card& card, Mistakes& mistakes) {
  constexpr Presence optional = Presence::optional;
  FieldReader fields(node, card_file_words, mistakes);
  const auto size = [&](std::string_view key, Bytes& target) {
    fields.size(key, target, optional, "24576 MiB");
  };
  const auto bandwidth = [&](std::string_view key, double& target) {
    fields.quantity(key, target, byte_rate_units, optional, "a rate in GB/s");
  };
  const auto flops = [&](std::string_view key, double& target) {
    fields.quantity(key, target, flop_rate_units, optional, "a rate in TFLOP/s");
  };
  fields.word("name", card.name, optional);
  fields.word("architecture", card.architecture, optional);
  fields.real("compute_capability", card.compute_capability, optional, "a number such as 8.6", 1,
              99.9);
  read_board(fields, card);
  std::int64_t sm_count = card.sm_count;
  fields.integer("sm_count", 1, 100'000, sm_count, optional, "a count");
  card.sm_count = static_cast<int>(sm_count);
  size("memory", card.memory);
  size("nvml_total", card.nvml_total);
  size("cuda_total", card.cuda_total);
  fields.word("total_source", card.total_source, optional);
  size("context", card.context);
  fields.word("context_source", card.context_source, optional);
  bandwidth("memory_bandwidth", card.memory_bandwidth);
  flops("fp32", card.fp32_flops);
  flops("tf32", card.tf32_flops);
  flops("fp16", card.fp16_flops);
  fields.word("pcie", card.pcie, optional);
  bandwidth("h2d_bandwidth", card.h2d_bandwidth);
  bandwidth("d2h_bandwidth", card.d2h_bandwidth);
  bandwidth("pageable_bandwidth", card.pageable_bandwidth);
  fields.word("rate_source", card.rate_source, optional);
  fields.quantity("kernel_latency", card.kernel_latency, time_units, optional,
                  "a time such as 4 us");
  if (const YamlNode* list = fields.find("kernel_shares", optional)) {
    card.kernel_shares = read_kernel_shares(*list, mistakes);
  }
  fields.word("confidence", card.confidence, optional);
  fields.word("cudnn_device", card.cudnn_device_json, optional);
  if (const YamlNode* list = fields.find("measurements", optional)) {
    card.measurements = read_measurements(*list, mistakes);
  }
  if (const YamlNode* list = fields.find("observed_totals", optional)) {
    card.observed_totals = read_observed_totals(*list, mistakes);
  }
  // Measurements of the machine and of a run do not belong to the card; planner/problem reads them.
  if (is_calibration) {
    fields.find("host", optional);
    fields.find("measured", optional);
  }
  fields.finish();
}

void check_sense(const Card& card, const SourceTextPtr& source, Diagnostics& errors) {
  if (card.cuda_total <= Bytes(0) || card.memory_bandwidth <= 0 || card.fp32_flops <= 0 ||
      card.h2d_bandwidth <= 0 || card.d2h_bandwidth <= 0) {
    errors.push_back({.message = "cuda_total, memory_bandwidth, fp32, h2d_bandwidth and "
                                 "d2h_bandwidth must be above 0",
                      .span = {source, 0, 0, 1}});
  }
}

Result<YamlDocument> read_mapping(const SourceTextPtr& source, std::string_view what) {
  auto document = read_yaml(source);
  if (!document) return tl::unexpected(document.error());
  if (!document->root->is_mapping()) {
    return failure({.message = fmt::format("{} is a mapping of keys to values, not {}", what,
                                           describe(*document->root)),
                    .span = span_of(source, document->root->mark),
                    .hint = "configs/gpus/ has examples"});
  }
  return document;
}

/// Reads the mapping into `card`, and returns the mistakes in the order of the text.
Diagnostics mistakes_in(const YamlDocument& document, bool is_calibration, Card& card) {
  Mistakes mistakes(document.source);
  for (const Diagnostic& mistake : document.mistakes) mistakes.add(mistake);
  read_fields(*document.root, is_calibration, card, mistakes);
  return std::move(mistakes).in_order();
}

}  // namespace

Result<Card> read_card(const SourceTextPtr& source) {
  const auto document = read_mapping(source, "a card file");
  if (!document) return tl::unexpected(document.error());
  const YamlNode& root = *document->root;
  Card card;
  Diagnostics errors = mistakes_in(*document, false, card);
  GivenKeys given;
  for (std::size_t i = 0; i < root.entry_count(); ++i) given.insert(root.key(i).text);
  std::vector<std::string> missing;
  for (const char* key : {"name", "compute_capability"}) {
    if (!given.contains(key)) missing.push_back(fmt::format("'{}'", key));
  }
  const auto is_given = [&](const char* key) { return given.contains(key); };
  if (!is_given("memory") && !is_given("nvml_total") && !is_given("cuda_total")) {
    missing.emplace_back("'memory'");
  }
  if (!missing.empty()) {
    errors.push_back({.message = fmt::format("the card lacks {}", fmt::join(missing, ", ")),
                      .span = {source, 0, 0, 1}});
  }
  if (errors.empty()) {
    card = completed_by_rule(std::move(card), given);
    check_sense(card, source, errors);
  }
  if (!errors.empty()) return tl::unexpected(errors);
  return card;
}

Result<Card> read_calibration(const SourceTextPtr& source, const Card& of) {
  const auto document = read_mapping(source, "a calibration");
  if (!document) return tl::unexpected(document.error());
  const YamlNode& root = *document->root;
  Card card = of;
  card.measurements.clear();
  Diagnostics errors = mistakes_in(*document, true, card);
  if (const YamlNode* name = root.find("name"); name != nullptr && card.name != of.name) {
    errors.push_back(
        {.message = fmt::format("the calibration is of '{}', the card is '{}'", card.name, of.name),
         .span = span_of(source, name->mark)});
  }
  if (errors.empty()) check_sense(card, source, errors);
  if (!errors.empty()) return tl::unexpected(errors);
  std::erase_if(card.by_rule, [&](const std::string& key) { return root.find(key) != nullptr; });
  for (const char* rate : {"memory_bandwidth", "fp32", "tf32", "fp16"}) {
    if (root.find(rate) != nullptr) card.calibrated.emplace_back(rate);
  }
  for (ProcessMeasurement& measurement : card.measurements) measurement.calibrated = true;
  card.measurements.insert(card.measurements.end(), of.measurements.begin(), of.measurements.end());
  return card;
}

}  // namespace stowage
