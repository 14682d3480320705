// Compares the host's optimizer updates with the numbers of PyTorch, timm and transformers, step by
// step: `values` of tests/reference/optimizers.json.
#include <algorithm>
#include <set>

#include "estimator/optimizer/optimizer_row.hpp"
#include "tests/gpu_probe/host/kernels/pytorch_case.hpp"

namespace stowage::test {
namespace {

constexpr double optimizer_tolerance = 1e-6;

Kernel kernel_of(const std::string& optimizer) {
  if (optimizer == "sgd") return Kernel::sgd_update;
  return optimizer == "adam" || optimizer == "adamw" ? Kernel::adam_update
                                                     : Kernel::optimizer_update;
}

/// The state that our kernels keep, in the row's order, all zeros.
std::vector<std::pair<std::string, Tensor>> initial_state(const OptimizerRow& row,
                                                          const OptimizerSettings& settings,
                                                          const OptimizerCase& c) {
  std::vector<std::pair<std::string, Tensor>> state;
  for (const StateTensor& tensor_row : row.state) {
    const UpdatedTensor parameter{.shape = c.parameter.shape};
    if (tensor_row.bookkeeping) continue;
    if (tensor_row.kept != nullptr && !tensor_row.kept(settings, parameter)) continue;
    const auto& steps = c.steps.front().state;
    const auto found = std::find_if(steps.begin(), steps.end(),
                                    [&](const auto& s) { return s.first == tensor_row.name; });
    REQUIRE_MESSAGE(found != steps.end(), c.name, " has no ", tensor_row.name);
    const Sizes& shape = found->second.shape;
    state.emplace_back(found->first, tensor(shape, std::vector<float>(elements(shape), 0.0F)));
  }
  CHECK_MESSAGE(state.size() == c.steps.front().state.size(), c.name);
  return state;
}

void check_updates(OptimizerCase& c) {
  const OptimizerRow& row = *find_optimizer(c.op);
  OptimizerSettings settings = default_settings(row);
  for (const auto& [name, value] : c.attributes.entries()) {
    set_value(settings, *find_setting(name), value);
  }
  Attributes attributes = attributes_of({{"optimizer", std::string(row.name)}});
  for (const SettingDefault& setting : row.settings) {
    attributes.set(setting.name, value_of(settings, *find_setting(setting.name)));
  }
  attributes.set("decoupled", row.decouples || settings.decoupled_weight_decay);

  Tensor p = c.parameter;
  auto state = initial_state(row, settings, c);
  for (std::size_t step = 0; step < c.steps.size(); ++step) {
    OptimizerStep& expected = c.steps[step];
    attributes.set("step", static_cast<std::int64_t>(step + 1));
    std::vector<Tensor*> reads{&p, &expected.gradient}, writes{&p};
    for (auto& [name, value] : state) {
      reads.push_back(&value);
      writes.push_back(&value);
    }
    run(kernel_of(c.op), attributes, reads, writes);
    CHECK_MESSAGE(distance(p, expected.parameter) <= optimizer_tolerance, c.name, ", step ",
                  step + 1);
    for (const auto& entry : state) {
      const std::string& name = entry.first;
      const auto found = std::find_if(expected.state.begin(), expected.state.end(),
                                      [&](const auto& s) { return s.first == name; });
      CHECK_MESSAGE(distance(entry.second, found->second) <= optimizer_tolerance, c.name, ", step ",
                    step + 1, ", ", name);
    }
  }
}

}  // namespace

TEST_CASE("every optimizer that our kernels run updates as its library does") {
  std::set<std::string> checked;
  for (OptimizerCase& c : table_optimizer_cases()) {
    check_updates(c);
    checked.insert(c.op);
  }
  for (const OptimizerRow& row : optimizer_table()) {
    CHECK_MESSAGE((checked.count(std::string(row.name)) == 1) == row.executable, row.name);
  }
}

TEST_CASE("a gradient of zeros moves nothing where there is no weight decay") {
  const Sizes shape{3, 4};
  for (const OptimizerRow& row : optimizer_table()) {
    if (!row.executable) continue;
    OptimizerSettings settings = default_settings(row);
    settings.weight_decay = 0;
    Attributes attributes = attributes_of({{"optimizer", std::string(row.name)}});
    for (const SettingDefault& setting : row.settings) {
      attributes.set(setting.name, value_of(settings, *find_setting(setting.name)));
    }
    const Tensor before = tensor(shape, std::vector<float>(12, 0.5F));
    Tensor p = before, g = tensor(shape, std::vector<float>(12, 0.0F));
    std::vector<Tensor> state;
    for (const StateTensor& kept : row.state) {
      if (kept.bookkeeping) continue;
      if (kept.kept != nullptr && !kept.kept(settings, {.shape = shape})) continue;
      const Sizes own = kept.shape == StateShape::rows      ? Sizes{3}
                        : kept.shape == StateShape::columns ? Sizes{4}
                                                            : shape;
      state.push_back(tensor(own, std::vector<float>(elements(own), 0.0F)));
    }
    std::vector<Tensor*> reads{&p, &g}, writes{&p};
    for (Tensor& value : state) {
      reads.push_back(&value);
      writes.push_back(&value);
    }
    run(kernel_of(std::string(row.name)), attributes, reads, writes);
    CHECK_MESSAGE(p.floats == before.floats, row.name);
  }
}

}  // namespace stowage::test
