#include <fmt/format.h>

#include <optional>
#include <string>

#include "answers/planning/readable_calibration.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/validate_answer.hpp"

namespace stowage {

namespace {

Result<void> write_calibration(const std::string& path, std::optional<OutputFile>& file,
                               const PlanFindings& findings, Report& out) {
  const std::string calibration = measured_calibration(findings);
  if (calibration.empty()) {
    out.say(fmt::format("{} is not written: nothing that is valid was measured", path), Tone::bad);
    return {};
  }
  const std::string text = readable_calibration(calibration, findings.plan.inputs.card);
  if (auto written = file->commit(text); !written) return written;
  if (const auto waits = waits_of_busy_machine(findings)) {
    out.notes.push_back(
        {.severity = Severity::warning,
         .message = fmt::format("the machine is not idle: the run waited {:.0f} percent of "
                                "the time for a core, and so the times in {} are too long",
                                100 * *waits, path)});
  }
  out.json.emplace_back("written", path);
  out.say(in_options(
              fmt::format("its times are written to {}; plan takes them as `calibration`", path)),
          Tone::good);
  return {};
}

}  // namespace

Result<RenderedAnswer> run_validate(const ValidateRequest& request) {
  std::optional<OutputFile> calibration;
  if (!request.calibration.empty()) {
    auto file = OutputFile::open(request.calibration);
    if (!file) return tl::unexpected(std::move(file.error()));
    calibration.emplace(*std::move(file));
  }
  Progress progress("checking the plan");
  const bool several = request.question.plans.size() > 1;
  const auto found = answer(request.question, [&](const std::string& file) {
    if (several) progress.now(fmt::format("checking {}", file));
  });
  if (!found) return tl::unexpected(found.error());
  RenderedAnswer shown = rendered(*found);
  if (calibration) {
    auto written =
        write_calibration(request.calibration, calibration, found->plans.front(), shown.report);
    if (!written) return tl::unexpected(std::move(written.error()));
  }
  return shown;
}

}  // namespace stowage
