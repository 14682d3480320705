#include "answers/exporting/markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "estimator/optimizer/optimizer_row.hpp"
#include "planner/explain/plan_words.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_tensors = 10;

/// A name within a table's cell, as code. A backquote would end it, a bar the cell.
std::string cell(std::string_view name) {
  std::string text = "`";
  for (const char c : name) {
    if (c == '|') text += '\\';
    text += c == '`' || c == '\n' ? ' ' : c;
  }
  return text == "`" ? std::string() : text + '`';
}

/// Text on a line of its own: a name may hold what Markdown takes for markup.
std::string plain(std::string_view text) {
  constexpr std::string_view markup = "\\`*_{}[]<>#|~&";
  std::string escaped;
  for (const char c : text) {
    if (markup.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string class_words(StorageClass of) {
  std::string words(to_string(of));
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

std::string peak_table(const CheckReport& report) {
  std::string text =
      fmt::format("| Size | At the peak, {} |\n|---:|---|\n", cell(report.peak_at()));
  const auto row = [&](Bytes bytes, std::string_view name) {
    text += fmt::format("| {} | {} |\n", format_bytes(bytes), name);
  };
  for (std::size_t i = 0; i < report.footprint.by_class.size(); ++i) {
    const Bytes bytes = report.footprint.by_class[i];
    if (bytes > Bytes()) row(bytes, class_words(static_cast<StorageClass>(i)));
  }
  text += fmt::format("| **{}** | **tensors** |\n", format_bytes(report.tensor_bytes()));
  for (const RuntimeRow& of : report.runtime_rows) row(of.bytes, plain(of.name));
  text += fmt::format("| **{}** | **on the device** |\n", format_bytes(report.device_bytes));
  return text;
}

std::string tensor_table(const CheckReport& report) {
  std::string text = "| Size | Class | Layer | Tensor |\n|---:|---|---|---|\n";
  const Footprint& footprint = report.footprint;
  const std::size_t shown = std::min(most_tensors, footprint.rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const FootprintRow& row = footprint.rows[i];
    text += fmt::format("| {} | {} | {} | {} |\n", format_bytes(row.bytes),
                        class_words(row.entry.storage_class),
                        cell(footprint.graph->layer(row.entry.op)), cell(name_of(footprint, row)));
  }
  if (shown < footprint.rows.size()) {
    Bytes others;
    for (std::size_t i = shown; i < footprint.rows.size(); ++i) others += footprint.rows[i].bytes;
    text += fmt::format("| {} | | | {} others |\n", format_bytes(others),
                        footprint.rows.size() - shown);
  }
  return text;
}

std::string phase_table(const CheckReport& report) {
  std::string text = "| Tensors | On the device | Most of |\n|---:|---:|---|\n";
  for (const PhasePeak& phase : report.phases) {
    text += fmt::format("| {} | {} | {} |\n", format_bytes(phase.tensor_bytes),
                        format_bytes(phase.device_bytes), plain(phase.name));
  }
  return text;
}

struct CopiedBytes {
  Bytes up, down;
};

std::string copy_table(const Plan& plan) {
  std::map<StorageClass, CopiedBytes> by_class;
  for (const Transfer& transfer : plan.transfers) {
    CopiedBytes& of = by_class[plan.storage(transfer.storage).storage_class];
    (direction_of(plan, transfer) == Direction::h2d ? of.up : of.down) +=
        plan.bytes(transfer.storage);
  }
  if (by_class.empty()) return "Nothing is copied.\n";
  std::string text = "| To the GPU | To the host | Copied in a step |\n|---:|---:|---|\n";
  for (const auto& [storage_class, bytes] : by_class) {
    text += fmt::format("| {} | {} | {} |\n", format_bytes(bytes.up), format_bytes(bytes.down),
                        class_words(storage_class));
  }
  return text + fmt::format("| **{}** | **{}** | **all** |\n", format_bytes(plan.totals.h2d),
                            format_bytes(plan.totals.d2h));
}

std::string totals_table(const Plan& plan) {
  const PlanTotals& totals = plan.totals;
  std::string text = "| | At least | Of the plan |\n|---:|---:|---|\n";
  const auto row = [&](const std::string& value, const std::string& bound, std::string_view name) {
    text += fmt::format("| {} | {} | {} |\n", value, bound, name);
  };
  row(seconds_text(totals.step_seconds),
      totals.step_lower_bound_seconds ? seconds_text(*totals.step_lower_bound_seconds) : "",
      "step, simulated");
  row(seconds_text(totals.all_gpu_step_seconds), "", "the same with memory for everything");
  row(format_bytes(totals.arena), format_bytes(totals.arena_lower_bound), "GPU arena");
  row(format_bytes(totals.h2d + totals.d2h), format_bytes(totals.pcie_lower_bound),
      "copied in a step");
  row(format_bytes(totals.host_peak), "", "pinned host memory");
  row(format_bytes(totals.pageable_peak), "", "pageable host memory");
  return text;
}

}  // namespace

std::string step_in_words(const CheckAnswer& sizes) {
  const LoweringSettings& lowering = sizes.step.lowering;
  return fmt::format("{}, batch {}, {}, {}", sizes.step.model, sizes.batch,
                     lowering.mode == Mode::train
                         ? "training with " + optimizer_text(lowering.optimizer)
                         : std::string("inference"),
                     to_string(sizes.step.precision));
}

std::string markdown_of(const CheckAnswer& sizes, const std::string& written_by) {
  const CheckReport& report = sizes.report;
  const auto [needed, available] = format_apart(report.device_bytes, report.available_bytes);
  std::string text = fmt::format("### {} {} {}\n\n", plain(sizes.step.model),
                                 report.fits ? "fits" : "does not fit", plain(sizes.card.name));
  text += report.fits ? fmt::format("{} of {} available, {} to spare", needed, available,
                                    format_bytes(report.headroom))
                      : fmt::format("{} wanted, {} available, {} too much", needed, available,
                                    format_bytes(Bytes() - report.headroom));
  text += fmt::format(": {}, with {}.\n\n", plain(step_in_words(sizes)),
                      to_string(sizes.settings.runtime));
  if (!report.culprit.empty()) text += plain(report.culprit) + "\n\n";
  text += peak_table(report) + '\n' + tensor_table(report) + '\n' + phase_table(report);
  return text + fmt::format("\nCounted by {}.\n", plain(written_by));
}

std::string markdown_of(const Plan& plan) {
  std::string text =
      fmt::format("### {}, batch {}, on {}: plan {}\n\n", plain(plan.inputs.model_name),
                  whole_batch(plan).samples, plain(plan.inputs.card.name), plain(plan.name));
  text += fmt::format("It {}.\n\n", plain(plan_in_words(plan)));
  text += totals_table(plan) + '\n' + copy_table(plan);
  if (!plan.remarks.empty()) text += '\n';
  for (const std::string& remark : plan.remarks) text += fmt::format("- {}\n", plain(remark));
  return text + fmt::format("\nPlanned by stowage {}.\n", plain(plan.inputs.stowage_version));
}

}  // namespace stowage
