// Networks drawn at random: what must hold of their footprint, whatever they are.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include "estimator/check/check.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

class NoWorkspaces : public WorkspaceSource {
 public:
  WorkspaceAnswer engines(const ConvolutionQuery&) override {
    return {.engines = {{"none", Bytes(0)}}, .origin = WorkspaceOrigin::rule};
  }
};

/// A description of `layers` random layers over images, some with a residual sum.
std::string network(const std::vector<int>& layers) {
  std::string text =
      "model: drawn\n"
      "inputs:\n"
      "  image: {shape: [batch, 4, 16, 16]}\n"
      "  label: {shape: [batch], dtype: int64}\n"
      "layers:\n"
      "  - conv2d: {name: l0, from: image, channels: 4, kernel: 3, padding: 1}\n";
  int at = 0;
  bool result_kept = false;  // by the layer before, a relu: then none may overwrite it
  for (const int kind : layers) {
    const std::string common = fmt::format("name: l{}, from: l{}", at + 1, at);
    switch (kind % 7) {
      case 0:
        text += fmt::format("  - conv2d: {{{}, channels: 4, kernel: 3, padding: 1}}\n", common);
        break;
      case 1:
        text +=
            fmt::format("  - relu: {{{}, in_place: {}}}\n", common, kind % 2 == 0 && !result_kept);
        break;
      case 2:
        text += fmt::format("  - batch_norm: {{{}}}\n", common);
        break;
      case 3:
        text += fmt::format("  - dropout: {{{}, p: 0.25}}\n", common);
        break;
      case 4:
        text += fmt::format("  - gelu: {{{}, approximate: tanh_composite}}\n", common);
        break;
      case 5:
        text +=
            fmt::format("  - add: {{name: l{}, from: [l{}, l{}]}}\n", at + 1, at, kind % (at + 1));
        break;
      default:
        text += fmt::format("  - mul: {{name: l{}, from: [l{}, l{}]}}\n", at + 1, at, at);
    }
    ++at;
    result_kept = kind % 7 == 1;
  }
  return text + fmt::format(
                    "  - flatten: {{name: flat, from: l{}}}\n"
                    "  - linear: {{name: head, features: 10}}\n"
                    "loss:\n"
                    "  cross_entropy: {{from: [head, label]}}\n",
                    at);
}

}  // namespace

TEST_CASE("drawn networks: rows sum to the peak, bytes grow with the batch, phases are in order") {
  const bool held = rc::check("footprints", [] {
    const auto layers = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 700));
    const ModelGraph model = testing::described(network(layers));
    NoWorkspaces workspaces;
    const Card card = generic_card(80_GiB);
    for (const Runtime runtime : {Runtime::pytorch, Runtime::stowage}) {
      LoweringSettings settings{.kernels = kernel_set_of(runtime), .optimizer = {.name = "adam"}};
      const auto apart = testing::lowered(model, settings);
      settings.in_place = works_in_place(runtime);
      const auto graph = testing::lowered(model, settings);
      Bytes before;
      for (const int batch : {1, 2, 5}) {
        const auto step = size_step(graph, batch, workspaces);
        RC_ASSERT(step.has_value());
        const CheckReport report = check(*step, card, {.runtime = runtime});
        Bytes rows;
        for (const FootprintRow& row : report.footprint.rows) rows += row.bytes;
        RC_ASSERT(rows == report.tensor_bytes());
        RC_ASSERT(report.tensor_bytes() > before);
        RC_ASSERT(report.reserved_bytes() >= report.tensor_bytes());
        RC_ASSERT(report.phases[1].tensor_bytes <= report.phases[2].tensor_bytes);
        before = report.tensor_bytes();
        const auto roomy = size_step(apart, batch, workspaces);
        RC_ASSERT(roomy.has_value());
        RC_ASSERT(report.tensor_bytes() <=
                  check(*roomy, card, {.runtime = runtime}).tensor_bytes());
      }
    }
  });
  CHECK(held);
}

}  // namespace stowage
