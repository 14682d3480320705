// The validator of plans for PyTorch: every plan that is made passes, what each check refuses, and
// that it names the place.
#include "planner/validate_pytorch/recount.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/adapt/adapt.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/planner/validate_pytorch/planned.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

using testing::failed_checks;
using testing::proposal_of;
using testing::recount_text;
using testing::request_for;

namespace {

using Names = std::vector<std::string>;

/// All proposals of the request pass; returns their names.
Names validated(const PytorchRequest& request) {
  const auto workspaces = rule_workspace_source(request.plan.card.compute_capability);
  const auto plans = make_pytorch_plans(request, *workspaces);
  if (!plans) FAIL(render(plans.error()));
  Names names;
  for (const PytorchProposal& proposal : *plans) {
    CAPTURE(proposal.name);
    const auto validation = recount_text(request, write_pytorch_plan(proposal.plan));
    REQUIRE(validation.has_value());
    CHECK(failed_checks(*validation) == Names{});
    CHECK(validation->passed());
    names.push_back(proposal.name);
  }
  return names;
}

bool has(const Names& names, const std::string& part) {
  return std::ranges::any_of(
      names, [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

/// The failed checks of a plan with a change.
template <typename Change>
Names failed_after(const PytorchRequest& request, PytorchPlan plan, const Change& change) {
  change(plan);
  const auto validation = recount_text(request, write_pytorch_plan(plan));
  if (!validation) FAIL(render(validation.error()));
  return failed_checks(*validation);
}

/// The place in the text of the plan at which `line` stands, and how far behind its begin: "7:12".
std::string place_of(const std::string& text, const std::string& found) {
  const std::size_t at = text.find(found);
  REQUIRE(at != std::string::npos);
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::size_t begin = text.rfind('\n', at) + 1;
  return "p.json:" + std::to_string(lines + 1) + ":" + std::to_string(at - begin + 1);
}

PytorchRequest small_training() { return request_for(testing::small_blocks(), 128, 516_MiB); }

}  // namespace

TEST_CASE("every plan for PyTorch of a training step is what the validator counts") {
  const Names names = validated(small_training());
  for (const char* name : {"offload", "checkpoint-1-of-4", "cpu-optimizer-offload", "early-update-",
                           "checkpoint-all", "micro-batch-2"}) {
    CAPTURE(name);
    CHECK(has(names, name));
  }
  CHECK(has(validated(request_for(testing::shipped("resnet18"), 32, 600_MiB)), "checkpoint-"));
  CHECK(has(validated(request_for(testing::shipped("gpt2"), 1, 1500_MiB)), "cpu-optimizer-"));
  CHECK(has(validated(request_for(testing::wide_layers(), 8, 116_MiB)), "-of-98"));
  const Names recorded = validated(testing::recorded_stages(128, 256_MiB));
  CHECK(has(recorded, "checkpoint-6-of-7"));
  CHECK(has(recorded, "checkpoint-nested"));
  CHECK(validated(request_for(testing::small_blocks(), 128, 4_GiB)) == Names{"as-is"});
}

TEST_CASE("every plan for PyTorch of an inference is what the validator counts") {
  CHECK(has(validated(request_for(testing::shipped("gpt2"), 1, 700_MiB, Mode::inference)),
            "stream-"));
  const Names names =
      validated(request_for(testing::shipped("resnet18"), 96, 220_MiB, Mode::inference));
  CHECK(has(names, "chunk-"));
  CHECK(has(validated(request_for(testing::shipped("resnet18"), 96, 320_MiB, Mode::inference)),
            "-stream-"));
}

TEST_CASE("plans with a frozen base and with expandable segments are what the validator counts") {
  const auto source = find_model("gpt2", testing::source_path("/configs/models"));
  REQUIRE(source.has_value());
  const auto adapted =
      load_adapted(source->source, {.fine_tuning = {.lora = "r=4,targets=c_attn"}});
  if (!adapted) FAIL(render(adapted.error()));
  CHECK(has(validated(request_for(*adapted, 1, 1880_MiB)), "stream-12-of-12-offload"));
  CHECK(has(validated(request_for(*adapted, 1, 1380_MiB)), "checkpoint-all-stream-"));
  CHECK(has(validated(request_for(testing::shipped("bert-base"), 4, 2500_MiB)), "-expandable"));
}

TEST_CASE("what is let go has to be one storage's, whole, and free then") {
  const PytorchRequest request = small_training();
  const PytorchPlan plan = proposal_of(request, "offload");
  const std::string text = write_pytorch_plan(plan);
  REQUIRE(plan.offload.size() >= 2);
  const OffloadedStorage& first = plan.offload.front();
  const std::string& key = first.saved.front().key;
  const std::string at = place_of(text, "\"" + key + "\"");

  CHECK(failed_after(request, plan,
                     [](PytorchPlan& changed) { changed.offload.front().bytes.slope += 4; }) ==
        Names{"saved tensors: " + place_of(text, "[0, ") + ": the storage of '" + key + "' has " +
              first.bytes.to_string() + " bytes, not " +
              Affine(0, first.bytes.slope + 4).to_string()});
  CHECK(failed_after(request, plan,
                     [](PytorchPlan& changed) {
                       changed.offload.front().saved.front().type = DataType::float64;
                     })
            .front()
            .starts_with("saved tensors: p.json:"));
  CHECK(failed_after(request, plan,
                     [&](PytorchPlan& changed) {
                       changed.offload.front().saved.front().key = "nowhere#0";
                       if (changed.offload.front().start == key)
                         changed.offload.front().start = "nowhere#0";
                     })
            .front()
            .starts_with("saved tensors: " + at + ": the step saves no tensor 'nowhere#0'"));
  // A weight, which the model holds as well.
  const Names held = failed_after(request, plan, [](PytorchPlan& changed) {
    OffloadedStorage& weight = changed.offload.front();
    weight = {.saved = {{"head#weight", DataType::float32, {10, 65536}}},
              .bytes = Affine(4LL * 10 * 65536),
              .start = "head#weight"};
  });
  REQUIRE(held.size() == 2);
  CHECK(held.front().starts_with("freed memory: p.json:"));
  CHECK(held.back().ends_with("the storage is written after the copy begins"));
  CHECK(held.front().ends_with(
      ": 'head#weight' lies in 'head.weight', which the model or its optimizer holds"));
}

TEST_CASE("copies begin, and memory comes and goes, in an order that keeps every value") {
  const PytorchRequest request = small_training();
  const PytorchPlan plan = proposal_of(request, "offload");
  const auto only = [&](const auto& change) {
    const Names failed = failed_after(request, plan, change);
    REQUIRE(failed.size() == 1);
    return failed.front();
  };
  const std::string start = plan.offload.front().start;
  CHECK(only([&](PytorchPlan& changed) {
          changed.offload.front().release = start;
        }).ends_with(": '" + start + "' is not saved between the copy's begin and backward"));
  CHECK(only([](PytorchPlan& changed) {
          changed.offload.front().release = "x#0";
        }).ends_with(": the step saves no tensor 'x#0'"));
  CHECK(only([](PytorchPlan& changed) {
          changed.offload.front().fetch = "x#0";
        }).ends_with(": backward asks for no tensor 'x#0'"));
  // What backward asks for last comes too late for the others.
  const auto last = std::ranges::find_if(plan.offload, [&](const OffloadedStorage& storage) {
    return storage.start != plan.offload.front().start;
  });
  REQUIRE(last != plan.offload.end());
  const std::size_t i = static_cast<std::size_t>(last - plan.offload.begin());
  CHECK(only([&](PytorchPlan& changed) {
          changed.offload[i].fetch = start;
        }).ends_with("uses the storage before it is fetched"));
}

TEST_CASE("modules that run again exist, and none is part of another") {
  const PytorchRequest request = small_training();
  const PytorchPlan plan = proposal_of(request, "checkpoint-all");
  const auto only = [&](const auto& change) {
    const Names failed = failed_after(request, plan, change);
    REQUIRE(failed.size() == 1);
    return failed.front();
  };
  CHECK(only([](PytorchPlan& changed) {
          changed.checkpoint.front() = "block.7";
        }).ends_with(": the step has no module 'block.7'"));
  CHECK(only([](PytorchPlan& changed) {
          changed.checkpoint.push_back(changed.checkpoint.front());
        }).ends_with("runs again as part of another module already"));
  // Those that lie in another one run again within its second run.
  const Names nested = failed_after(
      request, plan, [](PytorchPlan& changed) { changed.checkpoint.front() = "block"; });
  REQUIRE(nested.size() == 2);
  CHECK(nested.front().starts_with("allocator: "));
  CHECK(nested.back().starts_with("step time: "));
  CHECK(only([](PytorchPlan& changed) {
          changed.checkpoint.push_back("flat");
        }).ends_with(": 'flat' does not run in one piece") == false);
}

TEST_CASE("streamed parameters exist, are frozen, and fill their piece") {
  const PytorchRequest request = request_for(testing::shipped("gpt2"), 1, 700_MiB, Mode::inference);
  const auto workspaces = rule_workspace_source(request.plan.card.compute_capability);
  const auto plans = make_pytorch_plans(request, *workspaces);
  REQUIRE(plans.has_value());
  const PytorchPlan& plan = plans->front().plan;
  REQUIRE(plan.stream.size() >= 2);
  const auto only = [&](const auto& change) {
    const Names failed = failed_after(request, plan, change);
    REQUIRE(failed.size() == 1);
    return failed.front();
  };
  CHECK(only([](PytorchPlan& changed) {
          changed.stream.front().bytes += 512_B;
        }).find("streamed parameters: p.json:") == 0);
  CHECK(only([](PytorchPlan& changed) {
          changed.stream.front().uploads = 2;
        }).ends_with("come once a pass, not twice"));
  CHECK(only([](PytorchPlan& changed) {
          changed.stream.front().parameters.front() = "w";
        }).find("'w' is no parameter of the step") != std::string::npos);
  CHECK(only([](PytorchPlan& changed) {
          std::swap(changed.stream[0], changed.stream[1]);
        }).find("does not run behind") != std::string::npos);
}

TEST_CASE("a plan of another step is not checked further") {
  const PytorchRequest request = small_training();
  PytorchPlan plan = proposal_of(request, "offload");
  const std::string hash = plan.step_hash;
  plan.step_hash = std::string(hash.size(), '0');
  const std::string text = write_pytorch_plan(plan);
  const auto validation = recount_text(request, text);
  REQUIRE(validation.has_value());
  CHECK_FALSE(validation->passed());
  CHECK(failed_checks(*validation) == Names{"step hash: " + place_of(text, "\"" + plan.step_hash) +
                                            ": the plan is of another step than '' has now: " +
                                            hash + ", not " + plan.step_hash});
  CHECK(validation->checks.back().detail == "not checked: 'step hash' failed");
}

TEST_CASE("totals are counted anew, and each is named that is not the plan's") {
  const PytorchRequest request = small_training();
  const PytorchPlan plan = proposal_of(request, "offload");
  const std::string text = write_pytorch_plan(plan);
  const auto only = [&](const auto& change) {
    const Names failed = failed_after(request, plan, change);
    REQUIRE(failed.size() == 1);
    return failed.front();
  };
  const Bytes peak = plan.totals.peak_reserved;
  CHECK(only([](PytorchPlan& changed) { changed.totals.peak_reserved += 512_B; }) ==
        "allocator: " + place_of(text, std::to_string(peak.count()) + ", \"device_bytes\"") +
            ": 'peak_reserved_bytes' is " + std::to_string(peak.count() + 512) + ", counted are " +
            std::to_string(peak.count()));
  CHECK(only([](PytorchPlan& changed) {
          changed.totals.step_seconds *= 1.01;
        }).find("step time: p.json:") == 0);
  CHECK(only([&](PytorchPlan& changed) {
          changed.totals.pcie_lower_bound = plan.totals.to_host * 3;
        }).ends_with("bytes, fewer than its bound"));
}

}  // namespace stowage
