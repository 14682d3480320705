// What a batch search names is what check says, whatever the model, the card, the allocator and the
// optimizer. STOWAGE_BATCH_TRIALS=500 for more trials, STOWAGE_SEED for others.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <random>
#include <string>

#include "estimator/allocator/alloc_conf.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

std::int64_t number_from_environment(const char* name, std::int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

/// The rule's answers, with now and then a larger engine first and a batch that none serves well.
class Moody : public WorkspaceSource {
 public:
  WorkspaceAnswer engines(const ConvolutionQuery& query) override {
    WorkspaceAnswer answer = rule_->engines(query);
    const Bytes usual = answer.engines.front().workspace + 1_MiB;
    const std::int64_t batch = query.x.front();
    if (batch % 5 == 2) answer.engines.insert(answer.engines.begin(), {"large", 4 * usual});
    if (batch % 11 == 7) answer.engines = {{"bad", 3 * usual}};
    return answer;
  }

 private:
  std::unique_ptr<WorkspaceSource> rule_ = rule_workspace_source(8.6);
};

struct Draw {
  std::string model, optimizer, allocator;
  Runtime runtime = Runtime::pytorch;
  Bytes total;
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
  }
  template <std::size_t n>
  std::string one_of(const std::array<const char*, n>& words) {
    return words[static_cast<std::size_t>(below(n))];
  }

 private:
  std::mt19937_64 engine_;
};

Draw draw(Dice& dice) {
  constexpr std::array models{"mnist-cnn", "dcgan-generator", "dcgan-discriminator",
                              "alexnet",   "resnet18",        "squeezenet1_0",
                              "mlp",       "keras-deep-16x16"};
  constexpr std::array optimizers{"sgd", "momentum", "adam", "rmsprop"};
  constexpr std::array allocators{"",
                                  "expandable_segments:True",
                                  "max_split_size_mb:64",
                                  "roundup_power2_divisions:4",
                                  "garbage_collection_threshold:0.6",
                                  "expandable_segments:True,max_split_size_mb:128"};
  Draw drawn{.model = dice.one_of(models),
             .optimizer = dice.one_of(optimizers),
             .allocator = dice.one_of(allocators)};
  constexpr std::array runtimes{Runtime::pytorch, Runtime::pytorch, Runtime::pytorch,
                                Runtime::tensorflow, Runtime::stowage};
  drawn.runtime = runtimes[static_cast<std::size_t>(dice.below(std::ssize(runtimes)))];
  if (drawn.runtime != Runtime::pytorch) drawn.allocator = "";
  drawn.total = (700 + dice.below(3000)) * 1_MiB + dice.below(2048) * 1_KiB;
  return drawn;
}

void try_one(const Draw& drawn) {
  CAPTURE(drawn.model);
  CAPTURE(drawn.optimizer);
  CAPTURE(drawn.allocator);
  CAPTURE(std::string(to_string(drawn.runtime)));
  CAPTURE(drawn.total.count());
  LoweringSettings lowering{.kernels = kernel_set_of(drawn.runtime),
                            .in_place = works_in_place(drawn.runtime)};
  lowering.optimizer.name = drawn.optimizer == "momentum" ? "sgd" : drawn.optimizer;
  lowering.optimizer.momentum = drawn.optimizer == "momentum" ? 0.9 : 0;
  const auto graph = testing::lowered(testing::shipped(drawn.model), lowering);
  CheckSettings settings{.runtime = drawn.runtime};
  if (!drawn.allocator.empty()) {
    const auto conf = parse_alloc_conf(drawn.allocator, "<draw>");
    REQUIRE(conf.has_value());
    settings.allocator = conf->settings;
  }
  const Card card = generic_card(drawn.total);
  Moody source;
  const auto found = find_batch(graph, card, {.check = settings}, source);
  REQUIRE(found.has_value());
  const auto report_at = [&](std::int64_t batch) {
    const auto step = size_step(graph, batch, source);
    REQUIRE(step.has_value());
    return check(*step, card, settings);
  };
  CAPTURE(found->largest);
  CAPTURE(found->largest_safe);
  CAPTURE(found->recommended);
  CHECK(found->recommended <= found->largest_safe);
  CHECK(found->largest_safe <= found->largest);
  const auto quick = find_batch(graph, card, {.check = settings, .in_full = false}, source);
  REQUIRE(quick.has_value());
  CHECK(quick->largest == found->largest);
  CHECK(quick->recommended == found->recommended);
  CHECK(quick->largest_safe >= quick->recommended);
  CHECK(quick->largest_safe <= found->largest_safe);
  if (!found->unlimited) CHECK_FALSE(report_at(found->largest + 1).fits);
  if (found->largest == 0) return;
  CHECK(report_at(found->largest).fits);
  if (found->largest_safe > 0) {
    CHECK(report_at(found->largest_safe).fits);
    const CheckReport recommended = report_at(found->recommended);
    CHECK(recommended.fits);
    if (found->keeps_margin && drawn.runtime == Runtime::pytorch) {
      CHECK(recommended.run.process().releases == 0);
      CHECK(recommended.headroom >= found->margin);
    }
  }
}

}  // namespace

TEST_CASE("the batches that a search names fit, and the one above the largest does not") {
  const std::int64_t seed = number_from_environment("STOWAGE_SEED", 10);
  const std::int64_t trials = number_from_environment("STOWAGE_BATCH_TRIALS", 12);
  Dice dice(static_cast<std::uint64_t>(seed));
  for (std::int64_t i = 0; i < trials; ++i) {
    CAPTURE(seed);
    CAPTURE(i);
    try_one(draw(dice));
  }
}

TEST_CASE("a batch is recommended that fits where the search once named one that did not") {
  for (const auto& [model, optimizer, allocator, total] :
       {std::tuple{"dcgan-generator", "adam", "", 4_GiB},
        std::tuple{"alexnet", "momentum", "expandable_segments:True", 16130_MiB}}) {
    try_one({.model = model, .optimizer = optimizer, .allocator = allocator, .total = total});
  }
}

}  // namespace stowage
