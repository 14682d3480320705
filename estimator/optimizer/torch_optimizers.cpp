// The rows of torch.optim (PyTorch 2.15).
#include "estimator/optimizer/rows.hpp"
#include "estimator/optimizer/update_script.hpp"

namespace stowage::optimizers {

namespace {

using enum OptimizerImplementation;

StateTensor step_counter() {
  return {.name = "step",
          .shape = StateShape::scalar,
          .type = StateType::float32,
          .place = StatePlace::host_unless_fused,
          .bookkeeping = true};
}

std::vector<SettingDefault> adam_settings(double learning_rate, double weight_decay) {
  return {{"learning_rate", learning_rate},
          {"beta1", 0.9},
          {"beta2", 0.999},
          {"epsilon", 1e-8},
          {"weight_decay", weight_decay}};
}

std::vector<SettingDefault> with(std::vector<SettingDefault> settings,
                                 std::vector<SettingDefault> more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

std::vector<StateTensor> adam_state() {
  return {step_counter(),
          {.name = "exp_avg"},
          {.name = "exp_avg_sq"},
          {.name = "max_exp_avg_sq",
           .when = "amsgrad",
           .kept = [](const OptimizerSettings& s, const UpdatedTensor&) { return s.amsgrad; }}};
}

OptimizerRow adam_row(std::string_view name, std::string_view doc, std::string_view source,
                      double weight_decay) {
  return {.name = name,
          .doc = doc,
          .source = source,
          .settings = with(adam_settings(0.001, weight_decay), {{"amsgrad", false}}),
          .state = adam_state(),
          .for_loop = adam_for_loop,
          .foreach = adam_foreach,
          .fused = no_temporaries,
          .flops_per_element = 14};
}

}  // namespace

OptimizerRow sgd() {
  return {.name = "sgd",
          .doc = "stochastic gradient descent, with momentum and Nesterov's if asked for",
          .source = "torch.optim.SGD",
          .settings = {{"learning_rate", 0.01},
                       {"momentum", 0.0},
                       {"nesterov", false},
                       {"weight_decay", 0.0},
                       {"dampening", 0.0}},
          .state = {{.name = "momentum_buffer",
                     .when = "momentum > 0",
                     .kept = [](const OptimizerSettings& s,
                                const UpdatedTensor&) { return s.momentum > 0; }}},
          .for_loop = sgd_for_loop,
          .foreach = sgd_foreach,
          .fused = no_temporaries,
          .makes_state_before_update = true,
          .flops_per_element = 4};
}

OptimizerRow adam() {
  return adam_row("adam", "Adam; weight decay goes by way of the gradient (L2)", "torch.optim.Adam",
                  0.0);
}

OptimizerRow adamw() {
  OptimizerRow row =
      adam_row("adamw", "Adam with decoupled weight decay", "torch.optim.AdamW", 0.01);
  row.decouples = true;
  return row;
}

OptimizerRow adagrad() {
  StateTensor step = step_counter(), sum{.name = "sum"};
  step.at_construction = sum.at_construction = true;
  return {.name = "adagrad",
          .doc = "Adagrad; its state is there before the first step",
          .source = "torch.optim.Adagrad",
          .settings = {{"learning_rate", 0.01},
                       {"learning_rate_decay", 0.0},
                       {"epsilon", 1e-10},
                       {"weight_decay", 0.0}},
          .state = {step, sum},
          .for_loop = adagrad_for_loop,
          .foreach = adagrad_foreach,
          .fused = no_temporaries,
          .flops_per_element = 7};
}

OptimizerRow rmsprop() {
  return {.name = "rmsprop",
          .doc = "RMSprop, with momentum and centered if asked for",
          .source = "torch.optim.RMSprop",
          .settings = {{"learning_rate", 0.01},
                       {"smoothing", 0.99},
                       {"epsilon", 1e-8},
                       {"weight_decay", 0.0},
                       {"momentum", 0.0},
                       {"centered", false}},
          .state = {step_counter(),
                    {.name = "square_avg"},
                    {.name = "momentum_buffer",
                     .when = "momentum > 0",
                     .kept = [](const OptimizerSettings& s,
                                const UpdatedTensor&) { return s.momentum > 0; }},
                    {.name = "grad_avg",
                     .when = "centered",
                     .kept = [](const OptimizerSettings& s,
                                const UpdatedTensor&) { return s.centered; }}},
          .for_loop = rmsprop_for_loop,
          .foreach = rmsprop_foreach,
          .flops_per_element = 9};
}

OptimizerRow adadelta() {
  return {.name = "adadelta",
          .doc = "Adadelta",
          .source = "torch.optim.Adadelta",
          .settings = {{"learning_rate", 1.0},
                       {"smoothing", 0.9},
                       {"epsilon", 1e-6},
                       {"weight_decay", 0.0}},
          .state = {step_counter(), {.name = "square_avg"}, {.name = "acc_delta"}},
          .for_loop = adadelta_for_loop,
          .foreach = adadelta_foreach,
          .flops_per_element = 13};
}

OptimizerRow adamax() {
  return {.name = "adamax",
          .doc = "Adam under the infinity norm",
          .source = "torch.optim.Adamax",
          .settings = adam_settings(0.002, 0.0),
          .state = {step_counter(), {.name = "exp_avg"}, {.name = "exp_inf"}},
          .for_loop = adamax_for_loop,
          .foreach = adamax_foreach,
          .flops_per_element = 9};
}

OptimizerRow nadam() {
  StateTensor product = step_counter();
  product.name = "mu_product";
  return {.name = "nadam",
          .doc = "Adam with Nesterov's momentum",
          .source = "torch.optim.NAdam",
          .settings = with(adam_settings(0.002, 0.0),
                           {{"momentum_decay", 0.004}, {"decoupled_weight_decay", false}}),
          .state = {step_counter(), product, {.name = "exp_avg"}, {.name = "exp_avg_sq"}},
          .for_loop = nadam_for_loop,
          .foreach = nadam_foreach,
          .flops_per_element = 16};
}

OptimizerRow radam() {
  return {.name = "radam",
          .doc = "Adam with its variance rectified",
          .source = "torch.optim.RAdam",
          .settings = with(adam_settings(0.001, 0.0), {{"decoupled_weight_decay", false}}),
          .state = {step_counter(), {.name = "exp_avg"}, {.name = "exp_avg_sq"}},
          .for_loop = radam_for_loop,
          .foreach = radam_foreach,
          .flops_per_element = 16};
}

OptimizerRow adafactor() {
  return {
      .name = "adafactor",
      .doc = "Adafactor, PyTorch's: no first moment, matrices' second moments as rows and columns",
      .source = "torch.optim.Adafactor",
      .settings = {{"learning_rate", 0.01},
                   {"decay_rate", 0.8},
                   {"clip_threshold", 1.0},
                   {"weight_decay", 0.0}},
      .state =
          {step_counter(),
           {.name = "row_var", .shape = StateShape::rows, .when = "matrices", .kept = is_matrix},
           {.name = "col_var", .shape = StateShape::columns, .when = "matrices", .kept = is_matrix},
           {.name = "variance", .when = "vectors", .kept = is_vector}},
      .for_loop = adafactor_for_loop,
      .foreach = adafactor_foreach,
      .usual = for_loop,
      .groups_by_rank = true,
      .flops_per_element = 14};
}

}  // namespace stowage::optimizers
