#include "estimator/check/batch_search.hpp"

#include <doctest/doctest.h>

#include <set>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

Bytes operand_bytes(const ConvolutionQuery& query) {
  Bytes operands;
  for (const auto* shape : {&query.x, &query.w, &query.y}) {
    Bytes bytes(4);
    for (const std::int64_t dimension : *shape) bytes = bytes * dimension;
    operands += bytes;
  }
  return operands;
}

/// Engines that want more at some batches than at larger ones, as cuDNN's do.
class Capricious : public WorkspaceSource {
 public:
  WorkspaceAnswer engines(const ConvolutionQuery& query) override {
    const std::int64_t batch = query.x.front();
    const Bytes operands = operand_bytes(query);
    const Bytes least = batch % 7 == 3 ? 5 * operands : operands;
    return {.engines = {{"first", 3 * least}, {"least", least}}, .origin = WorkspaceOrigin::rule};
  }
};

/// Engines that want much from one batch to another, and as much as their operands elsewhere.
class Jumping : public WorkspaceSource {
 public:
  Jumping(std::int64_t from, std::int64_t to) : from_(from), to_(to) {}
  WorkspaceAnswer engines(const ConvolutionQuery& query) override {
    const std::int64_t batch = query.x.front();
    const Bytes operands = operand_bytes(query);
    const bool much = from_ <= batch && batch <= to_;
    return {.engines = {{"first", much ? 40 * operands : operands}, {"least", operands}},
            .origin = WorkspaceOrigin::rule};
  }

 private:
  std::int64_t from_, to_;
};

std::shared_ptr<const StepGraph> step_of(const std::string& model) {
  return testing::lowered(testing::shipped(model), {.kernels = KernelSet::pytorch});
}

bool fits(const std::shared_ptr<const StepGraph>& graph, std::int64_t batch, const Card& card,
          const CheckSettings& settings, WorkspaceSource& source) {
  const auto step = size_step(graph, batch, source);
  REQUIRE(step.has_value());
  return check(*step, card, settings).fits;
}

}  // namespace

TEST_CASE("the largest batch is the largest that check passes, engines being capricious") {
  Capricious source;
  const auto graph = step_of("mnist-cnn");
  for (const Bytes total : {420_MiB, 431_MiB, 437_MiB, 440_MiB, 452_MiB}) {
    CAPTURE(total.count());
    const Card card = generic_card(total);
    const auto report = find_batch(graph, card, {}, source);
    REQUIRE(report.has_value());
    REQUIRE(report->largest > 0);
    std::int64_t largest = 0, safe = 0;
    bool unbroken = true;
    for (std::int64_t batch = 1; batch <= report->ceiling + 20; ++batch) {
      const bool fit = fits(graph, batch, card, {}, source);
      unbroken = unbroken && fit;
      if (fit) largest = batch;
      if (unbroken) safe = batch;
    }
    CHECK(report->largest == largest);
    CHECK(report->largest_safe == safe);
    CHECK(report->recommended <= report->largest_safe);
    CHECK(report->at_recommended->fits);
    CHECK(report->curve.back().batch == largest);
    CHECK(report->all_tried);
    const auto quick = find_batch(graph, card, {.in_full = false}, source);
    REQUIRE(quick.has_value());
    CHECK(quick->largest == largest);
    CHECK(quick->recommended == report->recommended);
    CHECK(quick->keeps_margin == report->keeps_margin);
    CHECK(quick->largest_safe >= quick->recommended);
    CHECK(quick->largest_safe <= safe);
    CHECK(quick->all_tried);
  }
}

TEST_CASE("where not even one fits, the report says what takes the room") {
  Capricious source;
  const auto report = find_batch(step_of("vgg16"), generic_card(1_GiB), {}, source);
  REQUIRE(report.has_value());
  CHECK(report->largest == 0);
  CHECK(report->recommended == 0);
  REQUIRE(report->at_one.has_value());
  CHECK_FALSE(report->at_one->fits);
}

TEST_CASE("accumulation reaches the global batch exactly, over all GPUs") {
  Capricious source;
  for (const int gpus : {1, 4}) {
    const LoweringSettings lowering{.kernels = KernelSet::pytorch, .parallel = {.gpus = gpus}};
    LoweringSettings twice = lowering;
    twice.micro_batches = 2;
    const ModelGraph model = testing::shipped("mnist-cnn");
    BatchSettings settings;
    settings.global_batch = WholeBatch(384);
    settings.accumulating = testing::lowered(model, twice);
    const Bytes total = gpus == 1 ? 440_MiB : 440_MiB + 1311_MiB;  // and NCCL's buffers
    const auto report =
        find_batch(testing::lowered(model, lowering), generic_card(total), settings, source);
    REQUIRE(report.has_value());
    REQUIRE(report->accumulation.has_value());
    const Accumulation& found = *report->accumulation;
    CHECK(found.gpus == gpus);
    CHECK(found.micro_batch <= report->recommended);
    CHECK(found.micro_batch * found.steps * found.gpus == 384);
  }
}

TEST_CASE("a global batch that the GPUs cannot share is refused") {
  Capricious source;
  const auto graph = testing::lowered(testing::shipped("mlp"),
                                      {.kernels = KernelSet::pytorch, .parallel = {.gpus = 4}});
  const auto report =
      find_batch(graph, generic_card(4_GiB), {.global_batch = WholeBatch(1022)}, source);
  REQUIRE_FALSE(report.has_value());
  CHECK(render(report.error()) ==
        "error: a global batch of 1022 cannot be shared equally by 4 GPUs\n"
        "  the nearest below is 1020\n");
}

TEST_CASE("a batch is rounded where that costs at most a sixteenth") {
  using Batches = std::vector<std::int64_t>;
  CHECK(rounded_batches(15).empty());
  CHECK(rounded_batches(31) == Batches{30});
  CHECK(rounded_batches(60) == Batches{60, 60});
  CHECK(rounded_batches(67) == Batches{64, 64, 66});
  CHECK(rounded_batches(282) == Batches{280, 280, 282});
  CHECK(rounded_batches(1).empty());
}

TEST_CASE("batches at which engines want much do not hide larger ones that are calm") {
  const auto graph = step_of("mnist-cnn");
  const Card card = generic_card(1_GiB);
  Jumping steady(0, 0);
  const auto usual = find_batch(graph, card, {}, steady);
  REQUIRE(usual.has_value());
  REQUIRE(usual->recommended > 200);
  int over_a_jump = 0;
  for (std::int64_t percent = 60; percent < 95; percent += 5) {
    CAPTURE(percent);
    const std::int64_t from = usual->recommended * percent / 100;
    Jumping source(from, from + usual->recommended / 20);
    const auto found = find_batch(graph, card, {}, source);
    REQUIRE(found.has_value());
    CHECK(found->keeps_margin);
    CHECK(found->at_recommended->headroom >= found->margin);
    CHECK(found->at_recommended->run.process().releases == 0);
    over_a_jump += found->recommended > from ? 1 : 0;
  }
  CHECK(over_a_jump == 7);
}

TEST_CASE("the recommended batch leaves the margin and never gives the cache back") {
  const auto source = rule_workspace_source(8.6);
  const auto graph = step_of("resnet18");
  Card card = generic_card(4_GiB);
  const auto usual = find_batch(graph, card, {}, *source);
  REQUIRE(usual.has_value());
  CHECK(usual->margin == 82_MiB);  // two percent; of the libraries 72 MiB are uncertain
  CHECK(usual->keeps_margin);
  CHECK(usual->at_recommended->headroom >= usual->margin);
  CHECK(usual->at_recommended->run.process().releases == 0);
  CHECK(usual->recommended > usual->largest / 2);
  const auto wide = find_batch(graph, card, {.margin = 1_GiB}, *source);
  REQUIRE(wide.has_value());
  CHECK(wide->recommended < usual->recommended);
  CHECK(wide->at_recommended->headroom >= 1_GiB);
  const auto none = find_batch(graph, card, {.margin = 4_GiB}, *source);
  REQUIRE(none.has_value());
  CHECK_FALSE(none->keeps_margin);
  CHECK(none->at_recommended->run.process().releases == 0);
  card.by_rule = {"context", "cuda_total"};
  CHECK(usual_margin(*graph, card, {}) == 375_MiB);  // 72 + 80 + 223
  CHECK(usual_margin(*graph, card, {.context = 300_MiB}) == 295_MiB);
}

TEST_CASE("advice ends with its budget and says so") {
  /// Counts what it is asked; wants 32 MiB a sample, far more than the rule says.
  class Greedy : public WorkspaceSource {
   public:
    WorkspaceAnswer engines(const ConvolutionQuery& query) override {
      asked.insert(query);
      return {.engines = {{"greedy", 32_MiB * query.x.front()}}, .origin = WorkspaceOrigin::rule};
    }
    std::set<ConvolutionQuery> asked;
  };
  Greedy source;
  const Card card = generic_card(8_GiB);
  const auto few = look_for_largest(step_of("mnist-cnn"), card, {}, source);
  REQUIRE(few.has_value());
  CHECK(few->is_proven);
  CHECK(fits(step_of("mnist-cnn"), few->batch, card, {}, source));
  CHECK_FALSE(fits(step_of("mnist-cnn"), few->batch + 1, card, {}, source));
  source.asked.clear();
  const auto graph = step_of("densenet121");
  const auto many = look_for_largest(graph, card, {}, source);
  REQUIRE(many.has_value());
  CHECK(source.asked.size() < 800);  // the budget, and the trial that overdrew it
  CHECK((many->is_proven || many->batch == 0 || fits(graph, many->batch, card, {}, source)));
}

}  // namespace stowage
