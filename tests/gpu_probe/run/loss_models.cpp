#include "tests/gpu_probe/run/operator_models.hpp"

namespace stowage::test {
namespace {

constexpr const char* numbers = "shape: [batch, 4]";
constexpr const char* classes = "shape: [batch], dtype: int64";

constexpr LossModel losses[] = {
    {"mse", numbers, "", "  mse: {from: [head, target]}\n"},
    {"l1", numbers, "", "  l1: {from: [head, target]}\n"},
    {"bce", numbers, "  - sigmoid: {name: p}\n", "  bce: {from: [p, target]}\n"},
    {"bce_with_logits", numbers, "", "  bce_with_logits: {from: [head, target]}\n"},
    {"kl_div", numbers, "  - log_softmax: {name: logp, axis: 1}\n",
     "  kl_div: {from: [logp, target], reduction: batchmean}\n"},
    {"kl_div over all", numbers, "  - log_softmax: {name: logp, axis: 1}\n",
     "  kl_div: {from: [logp, target], weight: 0.5}\n"},
    {"cross_entropy", classes, "", "  cross_entropy: {from: [head, target]}\n"},
    {"cross_entropy, smoothed", classes, "",
     "  cross_entropy: {from: [head, target], label_smoothing: 0.2}\n"},
    {"nll", classes, "  - log_softmax: {name: logp, axis: 1}\n", "  nll: {from: [logp, target]}\n"},
    {"several", numbers, "  - sigmoid: {name: p}\n",
     "  - l1: {from: [head, target], weight: 0.3}\n  - bce: {from: [p, target]}\n"},
};

}  // namespace

std::span<const LossModel> loss_models() { return losses; }

std::string loss_description(const LossModel& model) {
  return std::string("model: ") + model.name + "\ninputs:\n  x: {shape: [batch, 5]}\n  target: {" +
         model.target + "}\nlayers:\n  - linear: {name: stem, from: x, features: 6}\n  - tanh\n" +
         "  - linear: {name: head, features: 4}\n" + model.layers + "loss:\n" + model.loss;
}

}  // namespace stowage::test
