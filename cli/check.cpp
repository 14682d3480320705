#include "estimator/memory/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "estimator/memory/batch_search.hpp"
#include "gpu_probe/cudnn_workspace_source.hpp"

namespace stowage {

namespace {

constexpr std::size_t shown_tensors = 8;

// Classes at the peak, then the runtime's rows: the first total is tensor bytes, the second what
// nvidia-smi shows.
Table breakdown(const CheckReport& report) {
  Table table{.columns = {{"", "bytes"}, {"", "name"}, {"", "source"}}};
  for (int c = 0; c < storage_class_count; ++c) {
    const Bytes bytes = report.footprint.by_class[static_cast<std::size_t>(c)];
    if (bytes == Bytes()) continue;
    table.rows.push_back({{bytes, spaced(to_string(static_cast<StorageClass>(c))), std::string()}});
  }
  table.rows.push_back({{report.tensor_bytes, std::string("tensors"), std::string()}, true});
  for (const RuntimeRow& row : report.runtime_rows) {
    table.rows.push_back({{row.bytes, row.name, row.source}});
  }
  table.rows.push_back({{report.device_bytes, std::string("on the device"), std::string()}, true});
  return table;
}

Table room(const CheckReport& report, const CheckSettings& settings) {
  Table table{.columns = {{"", "bytes"}, {"", "name"}}};
  table.rows.push_back({{report.total_bytes, std::string("the card's CUDA total")}});
  if (settings.in_use > Bytes()) {
    table.rows.push_back({{Bytes() - settings.in_use, std::string("in use by others")}});
  }
  if (settings.reserve > Bytes()) {
    table.rows.push_back({{Bytes() - settings.reserve, std::string("to stay free")}});
  }
  table.rows.push_back({{report.available_bytes, std::string("available")}, true});
  return table;
}

Table largest_tensors(const CheckReport& report, const ModelGraph& model) {
  Table table{.columns = {{"Size", "bytes"},
                          {"So far", "cumulative_share"},
                          {"Class", "class"},
                          {"Layer", "layer"},
                          {"Tensor", "name"}}};
  double sum = 0;
  const auto total = static_cast<double>(std::max<std::int64_t>(report.tensor_bytes.count(), 1));
  for (const FootprintRow& row : report.footprint.rows) {
    sum += static_cast<double>(row.bytes.count());
    const std::string layer = row.op.valid() ? model.op(row.op).name : std::string();
    table.rows.push_back(
        {{row.bytes, Share{sum / total}, spaced(to_string(row.storage_class)), layer, row.name}});
  }
  return table;
}

// "So far" is cumulative: of the folded row it is the whole, not a sum of shares.
Table folded_tensors(const Table& all) {
  Table table = folded(all, shown_tensors);
  if (table.rows.size() < all.rows.size()) table.rows.back().cells[1] = Share{1};
  return table;
}

Table phase_table(const CheckReport& report) {
  Table table{.one_size_scale = true,
              .columns = {{"Tensors", "tensor_bytes"}, {"Device", "device_bytes"}, {"Phase", ""}}};
  for (const PhasePeak& phase : report.phases) {
    table.rows.push_back({{phase.tensor_bytes, phase.device_bytes, phase.name}});
  }
  return table;
}

Table fallback_table(const CheckReport& report) {
  Table table{.columns = {{"Wanted", ""}, {"Taken", ""}, {"Engine", ""}, {"Kernel", ""}}};
  for (const EngineFallback& fallback : report.fallbacks) {
    table.rows.push_back(
        {{fallback.first.workspace, fallback.taken.workspace, fallback.taken.name, fallback.node}});
  }
  return table;
}

Json::Object json_of(const CheckReport& report, const Card& card) {
  Json::Array phases;
  for (const PhasePeak& phase : report.phases) {
    phases.emplace_back(Json::Object{{"name", phase.name},
                                     {"tensor_bytes", phase.tensor_bytes},
                                     {"device_bytes", phase.device_bytes}});
  }
  Json::Object footprint;
  for (int c = 0; c < storage_class_count; ++c) {
    footprint.emplace_back(to_string(static_cast<StorageClass>(c)),
                           report.footprint.by_class[static_cast<std::size_t>(c)]);
  }
  Json::Array runtime_rows;
  for (const RuntimeRow& row : report.runtime_rows) {
    runtime_rows.emplace_back(
        Json::Object{{"name", row.name}, {"bytes", row.bytes}, {"source", row.source}});
  }
  Json::Array tensors;
  for (const FootprintRow& row : report.footprint.rows) {
    tensors.emplace_back(Json::Object{
        {"name", row.name}, {"class", to_string(row.storage_class)}, {"bytes", row.bytes}});
  }
  Json::Array fallbacks;
  for (const EngineFallback& fallback : report.fallbacks) {
    fallbacks.emplace_back(Json::Object{{"kernel", fallback.node},
                                        {"wanted_engine", fallback.first.name},
                                        {"wanted_bytes", fallback.first.workspace},
                                        {"taken_engine", fallback.taken.name},
                                        {"taken_bytes", fallback.taken.workspace}});
  }
  return {{"device", Json::Object{{"name", card.name},
                                  {"total_bytes", report.total_bytes},
                                  {"available_bytes", report.available_bytes}}},
          {"verdict", report.fits ? "fits" : "does_not_fit"},
          {"peak", Json::Object{{"tensor_bytes", report.tensor_bytes},
                                {"reserved_bytes", report.reserved_bytes},
                                {"device_bytes", report.device_bytes},
                                {"at", report.peak_at}}},
          {"footprint", std::move(footprint)},
          {"runtime_rows", std::move(runtime_rows)},
          {"phases", std::move(phases)},
          {"host_bytes", report.host_bytes},
          {"headroom_bytes", report.headroom},
          {"workspace_source", to_string(report.workspace_origin)},
          {"fallbacks", std::move(fallbacks)},
          {"culprit", report.culprit.empty() ? Json() : Json(report.culprit)},
          {"tensors", std::move(tensors)}};
}

std::string what_would_do(const BatchReport& batches, std::string_view model) {
  if (batches.largest > 0) {
    return fmt::format("the largest batch that fits is {} (stowage batch {})",
                       grouped_digits(batches.largest), model);
  }
  return fmt::format(
      "not even a batch of 1 fits; stowage plan {} tries it with part of it on the host", model);
}

void say_verdict(const CheckReport& report, const Card& card, Report& out) {
  const auto [wanted, available] = format_apart(report.device_bytes, report.available_bytes);
  if (report.fits) {
    out.say(fmt::format("fits: {} of the {} that {} has available, {} to spare", wanted, available,
                        card.name, format_bytes(report.headroom)),
            Tone::good);
    return;
  }
  out.say(fmt::format("does not fit: {} wanted, {} available on {}, {} too much", wanted, available,
                      card.name, format_bytes(Bytes() - report.headroom)),
          Tone::bad);
  out.say("  " + report.culprit);
}

}  // namespace

Result<Answer> run_check(const Arguments& arguments) {
  const auto request = requested_step(arguments, Runtime::pytorch);
  if (!request) return tl::unexpected(request.error());
  const ModelGraph& model = request->model.graph;
  const CheckSettings& settings = request->settings;
  const Card& card = request->card.card;
  const std::int64_t batch = arguments.integer("batch").value_or(1);
  CudnnWorkspaceSource workspaces(card);
  const auto step = size_step(request->graph, batch, workspaces);
  if (!step) return tl::unexpected(step.error());
  const CheckReport report = check(*step, card, settings);

  Answer answer;
  answer.exit_code = report.fits ? ExitCode::yes : ExitCode::clean_no;
  Report& out = answer.report;
  out.notes = model.warnings;
  out.notes.insert(out.notes.end(), request->card.notes.begin(), request->card.notes.end());
  out.json = json_of(report, card);
  out.json.emplace_back("settings",
                        settings_json(model, request->lowering, batch, request->model.options.seq,
                                      to_string(settings.runtime)));
  out.listing = largest_tensors(report, model);

  out.say(fmt::format("{}, {} runtime",
                      describe_step(model, request->lowering, batch, request->model.options.seq),
                      to_string(settings.runtime)),
          Tone::heading);
  out.say(fmt::format("\nThe peak, while {} runs (workspaces: {}):", report.peak_at,
                      to_string(report.workspace_origin)));
  out.show(breakdown(report));
  out.say("\nThe largest tensors at the peak:");
  out.show(arguments.flag("verbose") ? out.listing : folded_tensors(out.listing));
  if (!report.fallbacks.empty()) {
    out.say("\nConvolutions that must take a smaller engine than their first:");
    out.show(arguments.flag("verbose") ? fallback_table(report)
                                       : folded(fallback_table(report), shown_tensors));
  }
  out.say("\nPeaks by phase:");
  out.show(phase_table(report));
  out.say(fmt::format("\nHost: {} of inputs", format_bytes(report.host_bytes)));
  out.say("");
  out.show(room(report, settings));
  out.say("");
  say_verdict(report, card, out);
  if (!report.fits) {
    const auto batches = find_batch(request->graph, card, {.check = settings}, workspaces);
    if (!batches) return tl::unexpected(batches.error());
    out.say("  " + what_would_do(*batches, model.name));
    out.json.emplace_back("largest_batch", batches->largest);
  }
  return answer;
}

}  // namespace stowage
