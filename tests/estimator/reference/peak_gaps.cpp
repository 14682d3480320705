#include "tests/estimator/reference/peak_gaps.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

namespace stowage::reference {

namespace {

// Of Llama with few words, whose peaks lie within a layer: hidden states of 128 tokens that
// variables hold, and the position ids. They are the embeddings (LlamaModel.forward's
// inputs_embeds), the layer's input (the loop's hidden_states) and the feed-forward network's input
// (the layer's hidden_states), where nothing saves them; checkpointed, the last alone.
constexpr Bytes state(524288), wide_state(1048576), states_of_4(2097152), positions(1024);
constexpr PeakGap at_peak(Bytes gap) { return {gap, gap, gap}; }
constexpr PeakGap in_second_run(Bytes forward) {
  return {forward, states_of_4, states_of_4, states_of_4};
}

/// By the reference's file. At most 2.1 percent of a phase's peak; in all but those of few
/// words and the last the step's peak lies in backward or in the update, and is equal. 656 bytes of
/// a decoder that classifies are its search for the last token that is no padding: a mask, places
/// and their product of 4 bytes a token or a place, and the argmax, where our step takes the last
/// token's logits. 768 of OPT are its position_ids and the mask that it makes them of.
const std::pair<std::string_view, PeakGap> peak_gaps[] = {
    {"small-classifier-falcon-b2", {Bytes(32)}},
    {"small-classifier-falcon-b2-amp-bf16", {Bytes(8224)}},
    {"small-classifier-falcon-b2-bf16", {Bytes(32)}},
    {"small-classifier-gpt-neox-b2-amp-bf16", {Bytes(656)}},
    {"small-classifier-llama-b2", {Bytes(632)}},
    {"small-classifier-llama-b2-amp-bf16", {Bytes(656)}},
    {"small-classifier-opt-b2", {Bytes(768)}},
    {"small-classifier-opt-b2-amp-bf16", {Bytes(768)}},
    {"small-classifier-opt-b2-bf16", {Bytes(768)}},
    {"small-clip-b2-amp-bf16", {Bytes(4)}},
    {"small-vit-b2-amp-bf16", {Bytes(32)}},
    {"llama-3.2-1b-few-words-b1-bf16-int8-lora-all", {state + positions}},
    {"llama-3.2-1b-few-words-b1-bf16-lora-ranks",  // not told apart
     {Bytes(2100224), Bytes(524800), Bytes(394232)}},
    {"llama-3.2-1b-few-words-b1-bf16-nf4-lora-all", at_peak(state + state + state + positions)},
    {"llama-3.2-1b-few-words-b4-bf16-nf4-lora-all-dropout-checkpoint", in_second_run(Bytes())},
    {"llama-3.2-1b-few-words-b1-dora-all", at_peak(wide_state + positions)},
    {"llama-3.2-1b-few-words-b1-dora-all-dropout", at_peak(wide_state + wide_state + positions)},
    {"llama-3.2-1b-few-words-b1-amp-bf16-dora-all", at_peak(wide_state + wide_state + positions)},
    {"llama-3.2-1b-few-words-b1-amp-bf16-dora-all-dropout",
     at_peak(wide_state + wide_state + positions)},
    {"llama-3.2-1b-few-words-b1-bf16-dora-all", at_peak(state + state + state + positions)},
    {"llama-3.2-1b-few-words-b1-bf16-dora-all-dropout", at_peak(state + state + state + positions)},
    {"llama-3.2-1b-few-words-b1-bf16-nf4-dora-all", at_peak(state + state + state + positions)},
    {"llama-3.2-1b-few-words-b1-bf16-int8-dora-all", at_peak(state + state + positions)},
    {"llama-3.2-1b-few-words-b4-bf16-chunks-3-lora-all-checkpoint", in_second_run(states_of_4)},
    {"llama-3.2-1b-few-words-b4-bf16-dora-all-checkpoint", in_second_run(states_of_4)},
    {"llama-3.2-1b-few-words-b4-bf16-nf4-dora-all-dropout-checkpoint", in_second_run(states_of_4)},
    {"llama-3.2-1b-2layers-b4-bf16-nf4-dora-all-dropout-checkpoint", in_second_run(Bytes())},
    {"small-swin-padded-b2-amp-bf16", {Bytes(58384), Bytes(59392), Bytes(58384)}},
};

}  // namespace

PeakGap peak_gap(const ReferenceModel& reference) {
  const auto* const found = std::ranges::find(peak_gaps, std::string_view(reference.file),
                                              &std::pair<std::string_view, PeakGap>::first);
  return found == std::end(peak_gaps) ? PeakGap{} : found->second;
}

}  // namespace stowage::reference
