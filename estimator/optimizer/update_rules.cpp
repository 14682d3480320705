// The variables that each implementation binds and drops, line for line as in torch/optim/*.py
// (PyTorch 2.15.0), timm/optim/{lion,lamb}.py (1.0.31) and transformers/optimization.py (5.23.0)
// do. In a for-loop `grad = grads[i]` lets go of the copy that the last turn may have left in
// `grad`.
#include "estimator/optimizer/update_script.hpp"

namespace stowage {

using Size = UpdateScript::Size;

void no_temporaries(UpdateScript&) {}

namespace {

// grad = grads[i]; if weight_decay: grad = grad + weight_decay * param
void take_gradient(UpdateScript& script, bool decays) {
  script.drop("grad");
  if (decays) script.make("grad");
}

void take_gradient(UpdateScript& script) { take_gradient(script, script.decays_gradient()); }

}  // namespace

void sgd_for_loop(UpdateScript& script) {
  take_gradient(script);
  if (script.settings().momentum == 0) return;
  if (script.settings().nesterov) {
    script.make("grad");
  } else {
    script.drop("grad");  // grad = buf
  }
}

void sgd_foreach(UpdateScript& script) {
  take_gradient(script);
  // Nesterov's sum is written into the gradients themselves.
  if (script.settings().momentum != 0 && !script.settings().nesterov) script.drop("grad");
}

void adam_for_loop(UpdateScript& script) {
  take_gradient(script);
  script.make("sqrt");
  script.make("denom");
  script.drop("sqrt");
}

void adam_foreach(UpdateScript& script) {
  take_gradient(script);
  script.drop("grad");
  script.make("exp_avg_sq_sqrt");
}

void adagrad_for_loop(UpdateScript& script) {
  take_gradient(script);
  script.make("std");
}

void adagrad_foreach(UpdateScript& script) {
  take_gradient(script);
  script.make("std");
  if (script.decays_gradient()) {
    script.name("numerator", "grad");
  } else {
    script.make("numerator");
  }
}

void rmsprop_for_loop(UpdateScript& script) {
  take_gradient(script);
  script.make("avg");
}

void rmsprop_foreach(UpdateScript& script) {
  take_gradient(script);
  script.make("avg");
}

void adadelta_for_loop(UpdateScript& script) {
  take_gradient(script);
  script.make("std");
  script.make("delta");
}

void adadelta_foreach(UpdateScript& script) {
  take_gradient(script);
  script.make("std");
  script.make("deltas");
}

void adamax_for_loop(UpdateScript& script) {
  take_gradient(script);
  script.make("abs");
  script.drop("abs");
}

void adamax_foreach(UpdateScript& script) {
  take_gradient(script);
  if (!script.decays_gradient()) script.make("grad");  // of absolute values
}

void nadam_for_loop(UpdateScript& script) {
  take_gradient(script);
  script.make("quotient");
  script.make("denom");
  script.drop("quotient");
}

void nadam_foreach(UpdateScript& script) {
  take_gradient(script);
  script.make("exp_avg_sq_sqrt");
}

// From the sixth step on, when the variance is rectified; earlier steps need less.
void radam_for_loop(UpdateScript& script) {
  take_gradient(script);
  script.make("bias_corrected_exp_avg");
  script.make("scaled");
  script.make("sqrt");
  script.make("reciprocal");
  script.make("adaptive");
  script.drop("sqrt");
  script.drop("reciprocal");
  script.make("product");
  script.drop("scaled");
  script.drop("adaptive");
  script.make("rectified");
  script.drop("product");
  script.drop("rectified");
}

void radam_foreach(UpdateScript& script) {
  take_gradient(script);
  script.drop("grad");
  script.make("buffer");
}

void adafactor_for_loop(UpdateScript& script) {
  if (script.has_matrices()) {
    script.make("row_mean", Size::rows);
    script.make("col_mean", Size::columns);
    script.make("var_estimate");
    script.make("row_var_mean", Size::leading);
    script.drop("row_var_mean");
  } else {
    script.make("grad_squared");
    script.make("var_estimate");
  }
  script.name("update", "var_estimate");
  script.make("norm", Size::each_one);
  script.drop("norm");
}

void adafactor_foreach(UpdateScript& script) {
  if (script.has_matrices()) {
    script.make("row_means", Size::rows);
    script.drop("row_means");
    script.make("col_means", Size::columns);
    script.drop("col_means");
    script.make("var_estimates");
    script.make("row_var_means", Size::leading);
    script.drop("row_var_means");
  } else {
    script.make("grads_squared");
    script.drop("grads_squared");
    script.make("var_estimates");
  }
  script.name("updates", "var_estimates");
  script.make("norm", Size::one);
  script.drop("norm");
}

void lion_for_loop(UpdateScript& script) { script.make("update"); }

void lion_foreach(UpdateScript& script) { script.make("updates"); }

namespace {

// _lamb_trust_ratio over `each` norms of parameters and updates.
void make_trust_ratio(UpdateScript& script, Size each) {
  script.make("trust_ratio", each);
  script.make("gradient_is_not_zero", each, DataType::boolean);
  script.make("weight_is_not_zero", each, DataType::boolean);
  script.make("one", Size::one);
  script.make("inner_where", each);
  script.drop("gradient_is_not_zero");
  script.drop("one");
  script.make("one", Size::one);
  script.make("outer_where", each);
  for (const char* variable : {"trust_ratio", "weight_is_not_zero", "one", "inner_where"}) {
    script.drop(variable);
  }
}

// The norm of all gradients, kept for the whole step.
void clip_gradients(UpdateScript& script) {
  if (script.settings().max_gradient_norm == 0) return;
  if (script.first_call()) script.make("clip_grad_norm", Size::one);
  script.make("grad");
}

}  // namespace

void lamb_for_loop(UpdateScript& script) {
  script.drop("grad");
  clip_gradients(script);
  script.make("sqrt");
  script.make("denom");
  script.drop("sqrt");
  script.make("update");
  if (script.settings().weight_decay == 0) return;
  script.make("w_norm", Size::one);
  script.make("g_norm", Size::one);
  make_trust_ratio(script, Size::one);
  for (const char* variable : {"w_norm", "g_norm", "outer_where"}) script.drop(variable);
}

void lamb_foreach(UpdateScript& script) {
  script.drop("grad");
  clip_gradients(script);
  script.make("denom");
  script.make("updates");
  if (script.settings().weight_decay == 0) return;
  script.make("w_norms", Size::each_one);
  script.make("g_norms", Size::each_one);
  script.make("w_stack", Size::each_one);
  script.make("g_stack", Size::each_one);
  script.make("g_scaled", Size::each_one);
  make_trust_ratio(script, Size::each_one);
  script.make("step_sizes", Size::each_one);
  for (const char* variable :
       {"w_norms", "g_norms", "w_stack", "g_stack", "g_scaled", "outer_where"}) {
    script.drop(variable);
  }
}

// Computes in float32: 16-bit gradients and parameters are copied.
void transformers_adafactor_for_loop(UpdateScript& script) {
  const auto make = [&](const char* variable, Size size = Size::parameter) {
    script.is_16_bit() ? script.make(variable, size, DataType::float32)
                       : script.make(variable, size);
  };
  script.drop("grad");
  if (script.is_16_bit()) make("grad");
  script.drop("p_data_fp32");
  if (script.is_16_bit()) make("p_data_fp32");
  make("lr", Size::one);
  make("squared");
  make("update");
  script.drop("squared");
  if (script.has_matrices()) {
    make("row_mean", Size::rows);
    script.drop("row_mean");
    make("col_mean", Size::columns);
    script.drop("col_mean");
    make("mean", Size::leading);
    make("r_factor", Size::rows);
    script.drop("mean");
    make("c_factor", Size::columns);
    make("update");
    script.drop("r_factor");
    script.drop("c_factor");
  } else {
    make("update");
  }
  make("norm", Size::one);
  make("rms", Size::one);
  script.drop("norm");
  script.drop("rms");
  if (script.settings().beta1 > 0) script.drop("update");  // update = exp_avg
  make("negated");
  script.drop("negated");
}

}  // namespace stowage
