// Optimizer updates, as torch.optim defines them (SGD, Adam, AdamW; PyTorch 2.x). Attributes are
// OptimizerSettings' fields; `step` (default 1) counts Adam's updates from 1.
#include <algorithm>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// All arguments of an update have the parameter's shape; the results are in place.
void require_in_place(const KernelCall& call) {
  require(call.writes.size() + 1 == call.reads.size(),
          "reads {} and writes {} tensors; all but the gradient are updated", call.reads.size(),
          call.writes.size());
  for (std::size_t i = 0; i < call.reads.size(); ++i) {
    require_same_shape(fmt::format("read {}", i), call.reads[i], call.reads[0]);
  }
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    require(call.writes[i].data == call.reads[i == 0 ? 0 : i + 1].data, "write {} is not in place",
            i);
    require_same_shape(fmt::format("write {}", i), call.writes[i], call.reads[0]);
  }
}

}  // namespace

void sgd_update(const KernelCall& call) {
  require_in_place(call);
  const double rate = real(call, "learning_rate"), momentum = real(call, "momentum", 0),
               decay = real(call, "weight_decay", 0), dampening = real(call, "dampening", 0);
  const bool nesterov = boolean(call, "nesterov", false);
  float* p = mutable_floats(call.writes[0]);
  const float* g = floats(call.reads[1]);
  float* m = call.reads.size() == 3 ? mutable_floats(call.writes[1]) : nullptr;
  // PyTorch's first update fills the buffer with the gradient itself, without dampening.
  const double share = integer(call, "step", 1) == 1 ? 1 : 1 - dampening;
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    double gradient = g[i] + decay * p[i];
    if (m != nullptr) {
      const double buffer = momentum * m[i] + share * gradient;
      m[i] = static_cast<float>(buffer);
      gradient = nesterov ? gradient + momentum * buffer : buffer;
    }
    p[i] = static_cast<float>(p[i] - rate * gradient);
  }
}

void adam_update(const KernelCall& call) {
  const bool amsgrad = boolean(call, "amsgrad", false);
  require_writes(call, amsgrad ? 4 : 3);
  require_in_place(call);
  const double rate = real(call, "learning_rate"), beta1 = real(call, "beta1"),
               beta2 = real(call, "beta2"), epsilon = real(call, "epsilon"),
               decay = real(call, "weight_decay", 0);
  const bool decoupled = boolean(call, "decoupled", false);
  const auto step = static_cast<double>(integer(call, "step", 1));
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = std::sqrt(1 - std::pow(beta2, step));
  float *p = mutable_floats(call.writes[0]), *m = mutable_floats(call.writes[1]),
        *v = mutable_floats(call.writes[2]);
  float* largest = amsgrad ? mutable_floats(call.writes[3]) : nullptr;
  const float* g = floats(call.reads[1]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    double value = p[i], gradient = g[i];
    if (decoupled) {
      value -= rate * decay * value;
    } else {
      gradient += decay * value;
    }
    const double first = beta1 * m[i] + (1 - beta1) * gradient;
    const double second = beta2 * v[i] + (1 - beta2) * gradient * gradient;
    m[i] = static_cast<float>(first);
    v[i] = static_cast<float>(second);
    double divisor = second;
    if (largest != nullptr) {
      divisor = std::max(static_cast<double>(largest[i]), second);
      largest[i] = static_cast<float>(divisor);
    }
    const double denominator = std::sqrt(divisor) / correction2 + epsilon;
    p[i] = static_cast<float>(value - rate / correction1 * first / denominator);
  }
}

}  // namespace stowage::host
