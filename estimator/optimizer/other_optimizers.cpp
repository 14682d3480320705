// The rows of optimizers that PyTorch does not have: timm's (1.0.31), transformers' (5.23.0) and
// bitsandbytes'. The last have not been measured, since bitsandbytes needs a GPU: state as in
// bitsandbytes/optim/optimizer.py, Optimizer2State.init_state (blocks of 256 since 0.44).
#include "estimator/optimizer/rows.hpp"
#include "estimator/optimizer/update_script.hpp"

namespace stowage::optimizers {

namespace {

constexpr std::int64_t least_of_8_bits = 4096;  // elements; smaller tensors stay in float32
constexpr std::int64_t map_entries = 256;

bool has_8_bits(const UpdatedTensor& tensor) { return element_count(tensor) >= least_of_8_bits; }
bool keeps_8_bits(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return has_8_bits(tensor);
}
bool keeps_32_bits(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return !has_8_bits(tensor);
}

StateTensor moment(std::string_view name, bool in_8_bits) {
  return {.name = name,
          .type = in_8_bits ? StateType::uint8 : StateType::float32,
          .when = in_8_bits ? "4096 elements or more" : "fewer",
          .kept = in_8_bits ? keeps_8_bits : keeps_32_bits};
}

StateTensor scales(std::string_view name) {
  return {.name = name,
          .shape = StateShape::blocks,
          .type = StateType::float32,
          .when = "4096 elements or more",
          .kept = keeps_8_bits};
}

OptimizerRow in_8_bits(std::string_view name, std::string_view doc, std::string_view source,
                       double weight_decay) {
  return {.name = name,
          .doc = doc,
          .source = source,
          .settings = {{"learning_rate", 0.001},
                       {"beta1", 0.9},
                       {"beta2", 0.999},
                       {"epsilon", 1e-8},
                       {"weight_decay", weight_decay}},
          .state = {moment("state1", true), moment("state2", true), scales("absmax1"),
                    scales("absmax2"), moment("state1", false), moment("state2", false)},
          .shared = {{.name = "qmap1", .elements = map_entries, .kept = has_8_bits},
                     {.name = "qmap2", .elements = map_entries, .kept = has_8_bits}},
          .fused = no_temporaries,
          .usual = OptimizerImplementation::fused,
          .flops_per_element = 20,
          .executable = false};
}

}  // namespace

OptimizerRow lion() {
  return {.name = "lion",
          .doc = "Lion: one moment, steps of the sign",
          .source = "timm.optim.Lion",
          .settings = {{"learning_rate", 0.0001},
                       {"beta1", 0.9},
                       {"beta2", 0.99},
                       {"weight_decay", 0.0}},
          .state = {{.name = "exp_avg"}},
          .for_loop = lion_for_loop,
          .foreach = lion_foreach,
          .flops_per_element = 8};
}

OptimizerRow lamb() {
  return {.name = "lamb",
          .doc = "LAMB: Adam's step, scaled layer by layer; gradients clipped to a norm over all",
          .source = "timm.optim.Lamb",
          .settings = {{"learning_rate", 0.001},
                       {"beta1", 0.9},
                       {"beta2", 0.999},
                       {"epsilon", 1e-6},
                       {"weight_decay", 0.01},
                       {"max_gradient_norm", 1.0}},
          .state = {{.name = "exp_avg"}, {.name = "exp_avg_sq"}},
          .for_loop = lamb_for_loop,
          .foreach = lamb_foreach,
          .flops_per_element = 22};
}

OptimizerRow transformers_adafactor() {
  using enum StateShape;
  const StateType type = StateType::at_least_32;
  return {
      .name = "adafactor-transformers",
      .doc = "Adafactor, transformers': beta1 > 0 keeps a first moment; learning rate 0: relative",
      .source = "transformers.Adafactor",
      .settings = {{"learning_rate", 0.0},
                   {"beta1", 0.0},
                   {"decay_rate", 0.8},
                   {"clip_threshold", 1.0},
                   {"weight_decay", 0.0}},
      .state = {{.name = "exp_avg",
                 .type = type,
                 .when = "beta1 > 0",
                 .kept = [](const OptimizerSettings& s,
                            const UpdatedTensor&) { return s.beta1 > 0; }},
                {.name = "exp_avg_sq_row",
                 .shape = rows,
                 .type = type,
                 .when = "matrices",
                 .kept = is_matrix},
                {.name = "exp_avg_sq_col",
                 .shape = columns,
                 .type = type,
                 .when = "matrices",
                 .kept = is_matrix},
                {.name = "exp_avg_sq", .type = type, .when = "vectors", .kept = is_vector},
                {.name = "RMS", .shape = scalar, .type = type, .bookkeeping = true}},
      .for_loop = transformers_adafactor_for_loop,
      .usual = OptimizerImplementation::for_loop,
      .state_in_turn = true,
      .flops_per_element = 16};
}

OptimizerRow adam8bit() {
  return in_8_bits("adam8bit", "Adam with its moments in 8 bits, block by block",
                   "bitsandbytes.optim.Adam8bit", 0.0);
}

OptimizerRow adamw8bit() {
  OptimizerRow row = in_8_bits("adamw8bit", "AdamW with its moments in 8 bits, block by block",
                               "bitsandbytes.optim.AdamW8bit", 0.01);
  row.decouples = true;
  return row;
}

}  // namespace stowage::optimizers
