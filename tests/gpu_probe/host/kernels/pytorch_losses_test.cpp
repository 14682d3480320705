// Compares losses and optimizers with PyTorch's values, and checks that every operator of the
// reference is tested.
#include "tests/gpu_probe/host/kernels/checked_case.hpp"
#include "tests/gpu_probe/kernels/device_run.hpp"

namespace stowage::test {
namespace {

const Attributes of_no_loss;

}  // namespace

TEST_CASE("losses agree with PyTorch") {
  for (Case& c : cases_of("cross_entropy")) {
    Checked checked(c);
    Tensor &x = c.inputs[0], &target = c.inputs[1];
    Tensor loss = unwritten({}), logsumexp = unwritten(target.shape);
    run(Kernel::cross_entropy_forward, c.attributes, {&x, &target}, {&loss, &logsumexp});
    checked.output(loss);
    c.attributes.set("scale", 1.0);
    checked.input(0, result(Kernel::cross_entropy_backward, c.attributes, {&x, &target, &logsumexp},
                            x.shape));
  }
  for (Case& c : cases_of("mse")) {
    Checked checked(c);
    Tensor &x = c.inputs[0], &target = c.inputs[1];
    checked.output(result(Kernel::mse_forward, of_no_loss, {&x, &target}, {}));
    checked.input(
        0, result(Kernel::mse_backward, attributes_of({{"scale", 1.0}}), {&x, &target}, x.shape));
  }
}

TEST_CASE("optimizers agree with PyTorch over three updates") {
  for (OptimizerCase& c : optimizer_cases()) {
    Tensor p = c.parameter;
    const Tensor zero = tensor(p.shape, std::vector<float>(p.floats.size(), 0));
    const bool adam = c.op != "sgd";
    std::vector<Tensor> state(c.steps[0].state.size(), zero);
    CHECK(state.size() == (adam ? 2U : c.attributes.has("momentum") ? 1U : 0U));
    for (std::size_t step = 0; step < c.steps.size(); ++step) {
      OptimizerStep& expected = c.steps[step];
      c.attributes.set("step", static_cast<std::int64_t>(step + 1));
      std::vector<Tensor*> reads{&p, &expected.gradient}, writes{&p};
      for (Tensor& s : state) {
        reads.push_back(&s);
        writes.push_back(&s);
      }
      run(adam ? Kernel::adam_update : Kernel::sgd_update, c.attributes, reads, writes);
      CHECK_MESSAGE(distance(p, expected.parameter) <= tolerance, c.name, ", step ", step + 1);
      for (std::size_t i = 0; i < state.size(); ++i) {
        CHECK_MESSAGE(distance(state[i], expected.state[i].second) <= tolerance, c.name, ", ",
                      expected.state[i].first);
      }
    }
  }
}

TEST_CASE("no operator of the reference is left out") {
  const std::vector<std::string> tested{"adaptive_avg_pool2d",
                                        "add",
                                        "avg_pool2d",
                                        "batch_norm",
                                        "concat",
                                        "conv2d",
                                        "conv_transpose2d",
                                        "cross_entropy",
                                        "dropout",
                                        "embedding",
                                        "flatten",
                                        "gelu",
                                        "layer_norm",
                                        "linear",
                                        "matmul",
                                        "max_pool2d",
                                        "mse",
                                        "mul",
                                        "relu",
                                        "reshape",
                                        "scaled_dot_product_attention",
                                        "softmax",
                                        "transpose"};
  CHECK(reference_operators() == tested);
  MESSAGE("largest relative distance from PyTorch: ", worst_distance());
  const DeviceDistances& device = device_distances();
  CHECK(device.calls > 0);
  MESSAGE("as a device runs them, ", device.calls, " calls, from the host: float32 ",
          device.float32, ", float64 ", device.float64, ", float16 ", device.float16, ", bfloat16 ",
          device.bfloat16);
}

}  // namespace stowage::test
