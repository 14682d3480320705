#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "answers/question/version.hpp"
#include "cli/options/read_request.hpp"
#include "cli/options/read_subject.hpp"
#include "cli/options/serving_request.hpp"

namespace stowage {

namespace {

Result<PinRequest> read_pins_given(const Arguments& arguments) {
  PinRequest request{.soft_placement = !arguments.flag("no-soft-placement")};
  Diagnostics mistakes;
  const auto given = arguments.assignments("pin");
  if (given.size() > most_pins) {
    return failure(command_line_error(fmt::format("--pin is given more than {} times", most_pins)));
  }
  for (const auto& [pattern, side] : given) {
    auto pin = parse_device_pin(pattern, side, command_line_error("").span);
    if (pin) {
      pin->overrides = true;
      request.pins.push_back(*std::move(pin));
    } else {
      std::ranges::move(pin.error(), std::back_inserter(mistakes));
    }
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return request;
}

// What a plan that is made without a card would not look at.
Diagnostics options_of_a_card(const Arguments& arguments) {
  Diagnostics mistakes;
  for (const std::string_view option :
       {"in-use", "reserve", "context", "cuda-version", "module-loading"}) {
    if (!arguments.given(option)) continue;
    mistakes.push_back(command_line_error(
        fmt::format("--{} is about a card, and --budget alone names none", option),
        "--gpu NAME or --gpu-memory SIZE names one"));
  }
  return mistakes;
}

Result<Levers> read_levers(const Arguments& arguments) {
  auto levers = parse_levers(text_or_empty(arguments, "placement"));
  if (levers) return *levers;
  const Diagnostic& why = levers.error().front();
  return failure(command_line_error(fmt::format("--placement: {}", why.message), why.hint));
}

PlanAim read_minimised(const Arguments& arguments) {
  const std::string what = text_or_empty(arguments, "minimize");
  if (what == "pcie") return PlanAim::pcie;
  return what == "time" ? PlanAim::time : PlanAim::automatic;
}

bool is_for_pytorch(const Arguments& arguments) {
  return text_or_empty(arguments, "for") == "pytorch";
}

/// What a plan for PyTorch would not look at.
Diagnostics options_of_executor(const Arguments& arguments) {
  Diagnostics mistakes;
  for (const std::string_view option :
       {"budget", "placement", "frontier", "minimize", "pin", "no-soft-placement", "log-placement",
        "validate", "time-limit"}) {
    if (!arguments.given(option)) continue;
    mistakes.push_back(command_line_error(fmt::format(
        "--{} is about plans for our own executor, and this one is for PyTorch", option)));
  }
  if (arguments.given("runtime") && text_or_empty(arguments, "runtime") != "pytorch") {
    mistakes.push_back(
        command_line_error("--for pytorch plans PyTorch's kernels, and --runtime "
                           "names others",
                           "leave --runtime out"));
  }
  return mistakes;
}

/// What only PyTorch's allocator would look at.
Diagnostics options_of_allocator(const Arguments& arguments) {
  if (!arguments.given("alloc-conf") || is_for_pytorch(arguments)) return {};
  return {command_line_error(
      "--alloc-conf is about PyTorch's allocator, and this plan has an arena of its own",
      "--for pytorch makes a plan that PyTorch carries out, with its allocator")};
}

/// What a plan of serving has no place for.
Diagnostics options_beside_serving(const Arguments& arguments) {
  Diagnostics mistakes;
  if (is_for_pytorch(arguments)) {
    mistakes.push_back(
        command_line_error("--for pytorch is of one step, and --context-length plans two passes",
                           "leave --for out; stowage export --to llama.cpp takes the plan"));
  }
  for (const std::string_view option : {"frontier", "report", "validate"}) {
    if (!arguments.given(option)) continue;
    mistakes.push_back(command_line_error(
        fmt::format("--{} is of one step, and --context-length plans two passes", option)));
  }
  return mistakes;
}

/// What of a question for plans needs no card.
Result<PlanQuestion> read_plan_settings(const Arguments& arguments) {
  const auto serving = read_serving(arguments);
  if (!serving) return tl::unexpected(serving.error());
  if (*serving) {
    if (Diagnostics mistakes = options_beside_serving(arguments); !mistakes.empty()) {
      return tl::unexpected(std::move(mistakes));
    }
  }
  if (Diagnostics mistakes = options_of_allocator(arguments); !mistakes.empty()) {
    return tl::unexpected(std::move(mistakes));
  }
  const bool has_pytorch_kernels = is_for_pytorch(arguments) || *serving;
  auto step = read_step(arguments, has_pytorch_kernels ? Runtime::pytorch : executed_runtime);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto pins = read_pins_given(arguments);
  if (!pins) return tl::unexpected(std::move(pins.error()));
  const auto levers = read_levers(arguments);
  if (!levers) return tl::unexpected(levers.error());
  return PlanQuestion{.step = *std::move(step),
                      .calibration = text_or_empty(arguments, "calibration"),
                      .batch = *serving ? std::nullopt : of_whole_step(given_batch(arguments)),
                      .serving = *serving,
                      .budget = arguments.size("budget"),
                      .budget_share = arguments.share("budget"),
                      .budget_source = "--budget",
                      .host = text_or_empty(arguments, "host"),
                      .host_memory = arguments.size("host-memory"),
                      .choice = text_or_empty(arguments, "choose"),
                      .levers = *levers,
                      .minimised = read_minimised(arguments),
                      .effort = static_cast<int>(arguments.integer("effort").value_or(1)),
                      .time_limit_seconds = arguments.number("time-limit"),
                      .pins = *std::move(pins),
                      .run_on_host = arguments.flag("validate"),
                      .stowage_version = std::string(program_version)};
}

}  // namespace

Result<PlanningRequest> read_planning_request(const Arguments& arguments) {
  auto settings = read_plan_settings(arguments);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  if (is_for_pytorch(arguments)) {
    if (Diagnostics mistakes = options_of_executor(arguments); !mistakes.empty()) {
      return tl::unexpected(std::move(mistakes));
    }
  }
  PlanningRequest request{.question = *std::move(settings),
                          .for_pytorch = is_for_pytorch(arguments),
                          .frontier = text_or_empty(arguments, "frontier"),
                          .page = text_or_empty(arguments, "report"),
                          .log_placement = arguments.flag("log-placement"),
                          .verbose = arguments.flag("verbose"),
                          .output = text_or_empty(arguments, "output"),
                          .typed = arguments.typed()};
  PlanQuestion& question = request.question;
  if (!arguments.given("gpu") && !arguments.given("gpu-memory")) {
    if (question.budget || question.budget_share) {
      if (Diagnostics mistakes = options_of_a_card(arguments); !mistakes.empty()) {
        return tl::unexpected(std::move(mistakes));
      }
      question.compute_capability = arguments.number("compute-capability");
      return request;
    }
    return failure(command_line_error("a plan needs --gpu NAME, --gpu-memory SIZE or --budget SIZE",
                                      "stowage gpus lists the names"));
  }
  auto card = read_card(arguments, question.step.model.configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  question.card = *std::move(card);
  return request;
}

}  // namespace stowage
