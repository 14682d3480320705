// The fast figures of a choice against the step that is made of it, sized and evaluated.
#include "planner/recompute/recompute_model.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>

#include "estimator/rewrite/recompute.hpp"
#include "tests/planner/recompute/recomputed_steps.hpp"

namespace stowage {

using namespace testing;

TEST_CASE("a choice's figures are those of the step that recomputes it") {
  std::mt19937 random(3);
  for (const char* text : {branching_network, normalised_network}) {
    for (const int micro_batches : {1, 2}) {
      const SizedStep step = sized_step_of(text, micro_batches);
      CAPTURE(step.graph->model);
      CAPTURE(micro_batches);
      RecomputeModel model(step, usual_rates());
      const PlainFigures plain = plain_figures(step);
      for (int trial = 0; trial < 30; ++trial) {
        RecomputeChoice choice(model.decisions());
        for (std::size_t i = 0; i < choice.size(); ++i) {
          choice[i] = random() % (i < model.groups().size() ? 2 : 4) == 0;
        }
        const Bytes limit(plain.peak.count() / 2);
        const RecomputeOutcome outcome = model.outcome(choice, limit);
        REQUIRE(outcome.valid);
        const auto rewritten = with_recomputation(*step.graph, model.values(choice));
        REQUIRE(rewritten);
        const PlainFigures figures =
            plain_figures(sized(std::make_shared<const StepGraph>(*rewritten), step.batch));
        CHECK(outcome.peak == figures.peak);
        CHECK(outcome.extra_seconds ==
              doctest::Approx(figures.seconds - plain.seconds).epsilon(1e-6));
        double excess = 0;
        for (const Bytes live : figures.memory) {
          if (live > limit) excess += static_cast<double>((live - limit).count());
        }
        CHECK(outcome.excess == doctest::Approx(excess));
      }
    }
  }
}

TEST_CASE("a group whose results backward does not read costs nothing and is not named") {
  const SizedStep step = sized_step_of(branching_network);
  RecomputeModel model(step, usual_rates());
  const RecomputeChoice none(model.decisions(), false);
  CHECK(model.values(none).empty());
  CHECK(model.outcome(none, Bytes()).extra_seconds == 0);
  for (std::size_t g = 0; g < model.groups().size(); ++g) {
    RecomputeChoice one = none;
    one[g] = true;
    const bool runs_again = model.saved(g) > Bytes();
    CHECK(model.values(one).size() == (runs_again ? 1 : 0));
    CHECK((model.outcome(one, Bytes()).extra_seconds > 0) == runs_again);
  }
}

}  // namespace stowage
