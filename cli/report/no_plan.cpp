#include "cli/report/no_plan.hpp"

#include <fmt/format.h>

#include <string>

#include "cli/options/setting_names.hpp"

namespace stowage {

namespace {

constexpr Bytes typed_unit = 1_MiB;

std::string in_typed_units(Bytes bytes) {
  return fmt::format("{}MiB", round_up(bytes, typed_unit).count() / typed_unit.count());
}

AdviceChanges repeating_the_plan() {
  return {.repeat = {"placement", "pin", "no_soft_placement", "host", "host_memory", "budget"}};
}

void add_least_memory(const LeastMemory& least, const PlanQuestion& question,
                      const TypedWords& typed, Report& report) {
  AdviceChanges changes = repeating_the_plan();
  std::string memory = fmt::format("`budget` {}", in_typed_units(least.budget));
  const bool has_budget = question.budget || question.budget_share;
  if (has_budget) changes.set["budget"] = in_typed_units(least.budget);
  if (least.card_total) {
    changes.set["gpu_memory"] = in_typed_units(*least.card_total);
    memory = fmt::format("`gpu_memory` {}{}", in_typed_units(*least.card_total),
                         has_budget ? " with " + memory : "");
  }
  if (least.host_memory) {
    changes.set["host_memory"] = in_typed_units(*least.host_memory);
    memory += fmt::format(" and `host_memory` {}", in_typed_units(*least.host_memory));
  }
  const std::string command = advice(typed, "plan", changes);
  report.json.emplace_back(
      "least",
      Json::Object{{"arena_bytes", least.arena},
                   {"gpu_memory_bytes", least.card_total ? Json(*least.card_total) : Json()},
                   {"plan", least.plan},
                   {"command", command}});
  report.say(in_options(fmt::format("  the least that would do is {}: an arena of {}, by '{}'",
                                    memory, format_bytes(least.arena), least.plan)));
  report.say("  " + command);
}

void add_least_host_memory(const LeastHostMemory& least, const TypedWords& typed, Report& report) {
  AdviceChanges changes = repeating_the_plan();
  changes.set["host_memory"] = in_typed_units(least.memory);
  const std::string command = advice(typed, "plan", changes);
  report.json.emplace_back("least_host",
                           Json::Object{{"memory_bytes", least.memory}, {"command", command}});
  report.say(in_options(
      fmt::format("  the least found that would do is `host_memory` {}, half of it pinned",
                  in_typed_units(least.memory))));
  report.say("  " + command);
}

}  // namespace

Report no_plan_report(const PlanAnswer& found) {
  Report report;
  const Diagnostics why = in_options(found.why_none);
  const Diagnostic& first = why.front();
  const Bytes budget = found.request.budget.bytes;
  Json::Array parts;
  for (const Diagnostic& note : first.notes) parts.emplace_back(note.message);
  report.json = {{"verdict", "does_not_fit"}, {"plans", Json::Array{}},
                 {"chosen", Json()},          {"budget_bytes", budget},
                 {"culprit", first.message},  {"culprit_parts", std::move(parts)}};
  report.say(fmt::format("no plan keeps within {}", format_bytes(budget)), Tone::bad);
  report.say("  " + first.message);
  for (const Diagnostic& note : first.notes) report.say("    " + note.message);
  if (!first.hint.empty()) report.say("  " + first.hint);
  return report;
}

void add_what_would_do(const PlanAnswer& found, const PlanQuestion& question,
                       const TypedWords& typed, Report& report) {
  if (found.least_host_memory) add_least_host_memory(*found.least_host_memory, typed, report);
  if (found.least_memory) add_least_memory(*found.least_memory, question, typed, report);
}

}  // namespace stowage
