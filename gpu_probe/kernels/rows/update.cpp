// Updates of SGD, Adam and AdamW, as torch.optim defines them (PyTorch 2.x). The attributes are the
// fields of OptimizerSettings; `step` (default 1) counts updates from 1.
#include <cmath>

#include "gpu_probe/kernels/rows/update_call.hpp"

namespace stowage::kernels {

Launches sgd_update(const KernelCall& call, Arithmetic arithmetic) {
  require_update_in_place(call);
  const bool has_buffer = call.reads.size() == 3;
  require_states(call, has_buffer ? 1 : 0);
  const double rate = real(call, "learning_rate"), momentum = real(call, "momentum", 0),
               decay = real(call, "weight_decay", 0), dampening = real(call, "dampening", 0);
  const bool nesterov = boolean(call, "nesterov", false);
  // PyTorch's first update sets the buffer to the gradient itself, without dampening.
  const double share = integer(call, "step", 1) == 1 ? 1 : 1 - dampening;
  return update_launches(call, arithmetic, [&]<class Real>() {
    return body::Sgd<Real>{static_cast<Real>(rate),
                           static_cast<Real>(momentum),
                           static_cast<Real>(decay),
                           static_cast<Real>(share),
                           has_buffer,
                           nesterov};
  });
}

Launches adam_update(const KernelCall& call, Arithmetic arithmetic) {
  const bool amsgrad = boolean(call, "amsgrad", false);
  require_writes(call, amsgrad ? 4 : 3);
  require_update_in_place(call);
  require_states(call, amsgrad ? 3 : 2);
  const double rate = real(call, "learning_rate"), beta1 = real(call, "beta1"),
               beta2 = real(call, "beta2"), epsilon = real(call, "epsilon"),
               decay = real(call, "weight_decay", 0);
  const bool decoupled = boolean(call, "decoupled", false);
  const auto step = static_cast<double>(integer(call, "step", 1));
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = std::sqrt(1 - std::pow(beta2, step));
  return update_launches(call, arithmetic, [&]<class Real>() {
    const auto as = [](double value) { return static_cast<Real>(value); };
    return body::Adam<Real>{as(rate),        as(beta1),   as(1 - beta1), as(beta2),
                            as(1 - beta2),   as(epsilon), as(decay),     as(correction1),
                            as(correction2), decoupled,   amsgrad};
  });
}

}  // namespace stowage::kernels
