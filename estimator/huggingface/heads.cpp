// The heads that families share, and the losses of transformers' loss_utils.py.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/huggingface/fragments.hpp"

namespace stowage {

namespace {

// GPT-2's, OPT's and the like compared the logits in their own format before 4.48.
bool upcasts_logits(const Network& network) {
  if (upcasts_all_logits(network.version)) return true;
  const std::string& type = network.config.type();
  return type != "gpt2" && type != "opt" && type != "gpt_neox" && type != "falcon";
}

// ForCausalLMLoss: the labels are padded at the end and moved by one place.
void padded_labels_loss(Network& network, std::int64_t vocabulary) {
  LayerLines& layers = network.text.layers();
  layers.add("pad: {name: padded_labels, from: labels, after: [1], value: -100}");
  layers.add("slice: {name: shift_labels, axis: 1, start: 1}");
  layers.add("contiguous: {name: moved_labels}");
  layers.add("reshape: {name: targets, shape: [batch * seq]}");
  layers.add(
      fmt::format("reshape: {{name: rows, from: logits, shape: [batch * seq, {}]}}", vocabulary));
  network.text.loss("cross_entropy: {from: [rows, targets], upcast: true}");
}

// Before 4.49: the logits but the last position's, copied.
void copied_logits_loss(Network& network, std::int64_t vocabulary) {
  LayerLines& layers = network.text.layers();
  if (upcasts_logits(network)) {
    layers.add("cast: {name: wide_logits, from: logits, dtype: float32}");
  } else {
    layers.add("identity: {name: wide_logits, from: logits}");
  }
  layers.add("slice: {name: earlier_logits, axis: 1, length: seq - 1}");
  layers.add("contiguous: {name: shift_logits}");
  layers.add("slice: {name: later_labels, from: labels, axis: 1, start: 1}");
  layers.add("contiguous: {name: shift_labels}");
  layers.add(fmt::format(
      "reshape: {{name: rows, from: shift_logits, shape: [batch * (seq - 1), {}]}}", vocabulary));
  layers.add("reshape: {name: targets, from: shift_labels, shape: [batch * (seq - 1)]}");
  network.text.loss("cross_entropy: {from: [rows, targets]}");
}

}  // namespace

void causal_lm_head(Network& network, std::string_view hidden, std::string_view name,
                    std::int64_t vocabulary, bool bias, std::string_view tied_to,
                    const LogitsChange& change) {
  LayerLines& layers = network.text.layers();
  const std::string tie =
      tied_to.empty() ? std::string() : fmt::format(", tie: {{weight: {}}}", tied_to);
  layers.add(fmt::format("linear: {{name: {}, from: {}, features: {}{}{}}}", name, hidden,
                         vocabulary, bias ? "" : ", bias: false", tie));
  if (change.divisor) {
    layers.add(fmt::format("scale: {{name: logits, factor: {:.17g}}}", 1 / *change.divisor));
  } else if (change.softcap > 0) {
    layers.add(fmt::format("scale: {{name: logits_lowered, factor: {:.17g}}}", 1 / change.softcap));
    layers.add("tanh: {name: logits_capped}");
    layers.add(fmt::format("scale: {{name: logits, factor: {:.17g}}}", change.softcap));
  } else {
    layers.add("identity: {name: logits}");
  }
  network.text.output("logits");
  if (!network.has_loss) return;
  network.text.input("labels", "{shape: [batch, seq], dtype: int64}");
  if (pads_labels(network.version)) {
    padded_labels_loss(network, vocabulary);
  } else {
    copied_logits_loss(network, vocabulary);
  }
}

void class_loss(Network& network, std::string_view logits) {
  const std::string problem = network.config.word("problem_type");
  if (problem == "regression" || (problem.empty() && network.labels == 1)) {
    network.text.input("labels", fmt::format("{{shape: [batch, {}]}}", network.labels));
    network.text.loss(fmt::format("mse: {{from: [{}, labels]}}", logits));
  } else if (problem == "multi_label_classification") {
    network.text.input("labels", fmt::format("{{shape: [batch, {}]}}", network.labels));
    network.text.loss(fmt::format("bce_with_logits: {{from: [{}, labels]}}", logits));
  } else if (problem.empty() || problem == "single_label_classification") {
    network.text.input("labels", "{shape: [batch], dtype: int64}");
    network.text.loss(fmt::format("cross_entropy: {{from: [{}, labels]}}", logits));
  } else {
    network.config.wrong("problem_type", fmt::format("'{}' is no problem type", problem),
                         "regression, single_label_classification or multi_label_classification");
  }
}

void last_token_head(Network& network, std::string_view hidden, std::string_view name) {
  LayerLines& layers = network.text.layers();
  layers.add(linear_line(name, hidden, network.labels, false));
  layers.add("slice: {name: last_token, axis: 1, start: -1}");
  // transformers takes it by indices, which copy.
  layers.add("contiguous: {name: last_logits}");
  layers.add(fmt::format("reshape: {{name: pooled_logits, shape: [batch, {}]}}", network.labels));
  class_loss(network, "pooled_logits");
}

void sequence_symbol(Network& network, std::int64_t positions, std::int64_t usual) {
  network.text.symbol("seq", fmt::format("{}", std::min(positions, usual)));
}

void token_input(Network& network) {
  network.text.input("tokens", "{shape: [batch, seq], dtype: int64}");
}

std::string_view to_string(Head head) {
  switch (head) {
    case Head::none:
      return "none";
    case Head::causal_lm:
      return "causal-lm";
    case Head::masked_lm:
      return "masked-lm";
    case Head::sequence_classification:
      return "sequence-classification";
    case Head::token_classification:
      return "token-classification";
    case Head::question_answering:
      return "question-answering";
    case Head::conditional_generation:
      return "conditional-generation";
    case Head::image_classification:
      return "image-classification";
  }
  return "";
}

}  // namespace stowage
