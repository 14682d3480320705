#include "tests/estimator/reference/peak_gaps.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

namespace stowage::reference {

namespace {

/// By the reference's file. At most 2.1 percent of a phase's peak; in all but the last the step's
/// peak lies in backward or in the update, and is equal.
const std::pair<std::string_view, PeakGap> peak_gaps[] = {
    {"small-answers-bert-b2-amp-bf16", {Bytes(16384)}},
    {"small-classifier-bert-b2-amp-bf16", {Bytes(16384)}},
    {"small-classifier-distilbert-b2-amp-bf16", {Bytes(16384)}},
    {"small-classifier-falcon-b2", {Bytes(32)}},
    {"small-classifier-falcon-b2-amp-bf16", {Bytes(8224)}},
    {"small-classifier-falcon-b2-bf16", {Bytes(32)}},
    {"small-classifier-gpt-neox-b2-amp-bf16", {Bytes(656)}},
    {"small-classifier-llama-b2", {Bytes(632)}},
    {"small-classifier-llama-b2-amp-bf16", {Bytes(656)}},
    {"small-classifier-opt-b2", {Bytes(768)}},
    {"small-classifier-opt-b2-amp-bf16", {Bytes(768)}},
    {"small-classifier-opt-b2-bf16", {Bytes(768)}},
    {"small-classifier-roberta-b2-amp-bf16", {Bytes(16384)}},
    {"small-tokens-bert-b2", {Bytes(1544)}},
    {"small-tokens-bert-b2-amp-bf16", {Bytes(16384)}},
    {"small-tokens-bert-b2-bf16", {Bytes(772)}},
    {"small-vit-b2-amp-bf16", {Bytes(32)}},
    {"small-swin-padded-b2-amp-bf16", {Bytes(58384), Bytes(59392), Bytes(58384)}},
};

}  // namespace

PeakGap peak_gap(const ReferenceModel& reference) {
  const auto* const found = std::ranges::find(peak_gaps, std::string_view(reference.file),
                                              &std::pair<std::string_view, PeakGap>::first);
  return found == std::end(peak_gaps) ? PeakGap{} : found->second;
}

}  // namespace stowage::reference
