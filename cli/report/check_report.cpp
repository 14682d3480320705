#include "cli/report/check_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/options/setting_names.hpp"

namespace stowage {

namespace {

constexpr std::size_t shown_tensors = 8;

}  // namespace

Table breakdown_table(const CheckReport& report) {
  Table table{.columns = {{"", "bytes"}, {"", "name"}, {"", "source"}}};
  for (int c = 0; c < storage_class_count; ++c) {
    const Bytes bytes = report.footprint.by_class[static_cast<std::size_t>(c)];
    if (bytes == Bytes()) continue;
    table.rows.push_back({{bytes, spaced(to_string(static_cast<StorageClass>(c))), std::string()}});
  }
  table.rows.push_back({{report.tensor_bytes(), std::string("tensors"), std::string()}, true});
  for (const RuntimeRow& row : report.runtime_rows) {
    table.rows.push_back({{row.bytes, row.name, row.source}});
  }
  table.rows.push_back({{report.device_bytes, std::string("on the device"), std::string()}, true});
  return table;
}

Table room_table(const CheckReport& report, const CheckSettings& settings) {
  Table table{.columns = {{"", "bytes"}, {"", "name"}}};
  table.rows.push_back({{report.total_bytes, std::string("the card's CUDA total")}});
  if (settings.in_use > Bytes()) {
    table.rows.push_back({{Bytes() - settings.in_use, std::string("in use by others")}});
  }
  if (settings.reserve > Bytes()) {
    table.rows.push_back({{Bytes() - settings.reserve, std::string("to stay free")}});
  }
  const bool is_left = report.available_bytes >= Bytes();
  table.rows.push_back({{report.available_bytes,
                         std::string(is_left ? "available" : "missing before the step begins")},
                        true});
  return table;
}

Table largest_tensors(const CheckReport& report) {
  Table table{.columns = {{"Size", "bytes"},
                          {"So far", "cumulative_share"},
                          {"Class", "class"},
                          {"Layer", "layer"},
                          {"Tensor", "name"}}};
  double sum = 0;
  const auto total = static_cast<double>(std::max<std::int64_t>(report.tensor_bytes().count(), 1));
  for (const FootprintRow& row : report.footprint.rows) {
    sum += static_cast<double>(row.bytes.count());
    const MemoryEntry& entry = row.entry;
    const std::string layer(report.footprint.graph->layer(entry.op));
    table.rows.push_back({{row.bytes, Share{sum / total}, spaced(to_string(entry.storage_class)),
                           layer, name_of(report.footprint, row)}});
  }
  return table;
}

Table verdict_listing(const CheckReport& report, const Table& tensors) {
  Table table{.columns = {{"Row", "row"}}};
  table.columns.insert(table.columns.end(), tensors.columns.begin(), tensors.columns.end());
  // As in the tensors' columns: bytes, cumulative share, class, layer, name.
  const auto sum = [&](const char* row, Bytes bytes, const char* name) {
    table.rows.push_back({{std::string(row), bytes, std::monostate(), std::string(), std::string(),
                           std::string(name)}});
  };
  sum("verdict", report.headroom, report.fits ? "fits" : "does_not_fit");
  sum("sum", report.tensor_bytes(), "tensor_bytes");
  sum("sum", report.reserved_bytes(), "reserved_bytes");
  sum("sum", report.device_bytes, "device_bytes");
  sum("sum", report.available_bytes, "available_bytes");
  for (const Row& tensor : tensors.rows) {
    Row row{{std::string("tensor")}};
    row.cells.insert(row.cells.end(), tensor.cells.begin(), tensor.cells.end());
    table.rows.push_back(std::move(row));
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
  Table table{
      .one_size_scale = true,
      .columns = {{"Tensors", "tensor_bytes"}, {"Device", "device_bytes", true}, {"Phase", ""}}};
  for (const PhasePeak& phase : report.phases) {
    table.rows.push_back({{phase.tensor_bytes, phase.device_bytes, phase.name}});
  }
  return table;
}

Table host_table(const CheckReport& report) {
  Table table{.one_size_scale = true, .columns = {{"Host", "bytes"}, {"What", "name"}}};
  Bytes sum;
  for (const HostBuffer& buffer : report.host_buffers) {
    table.rows.push_back(
        {{Bytes(buffer.bytes), buffer.pinned ? buffer.name + " (pinned)" : buffer.name}});
    sum += Bytes(buffer.bytes);
  }
  table.rows.push_back({{sum, std::string("all")}, true});
  return table;
}

// With a column of what was asked for only where the card has less.
Table pool_table(const CheckReport& report) {
  Table table{.one_size_scale = true,
              .columns = {{"Limit", "limit_bytes"},
                          {"Pool", "pool_bytes"},
                          {"In use", "used_bytes"},
                          {"Device", "name"}}};
  const std::vector<LogicalDevice>& pools = *report.run.pools;
  const bool asks_more = std::ranges::any_of(
      pools, [](const LogicalDevice& device) { return device.asked > device.limit; });
  const auto add = [&](const LogicalDevice& device, bool is_sum) {
    Row row{{device.limit, device.pool, device.used, device.name}, is_sum};
    if (asks_more) row.cells.insert(row.cells.begin(), device.asked);
    table.rows.push_back(std::move(row));
  };
  if (asks_more) table.columns.insert(table.columns.begin(), {"Asked for", "asked_bytes"});
  LogicalDevice sum{.name = "all"};
  for (const LogicalDevice& device : pools) {
    add(device, false);
    sum.asked += device.asked;
    sum.limit += device.limit;
    sum.pool += device.pool;
    sum.used += device.used;
  }
  if (pools.size() > 1) add(sum, true);
  return table;
}

Table fallback_table(const CheckReport& report, bool all) {
  Table table{.columns = {{"Wanted", ""}, {"Taken", ""}, {"Engine", ""}, {"Kernel", ""}}};
  for (const EngineFallback& fallback : report.fallbacks) {
    table.rows.push_back(
        {{fallback.first.workspace, fallback.taken.workspace, fallback.taken.name, fallback.node}});
  }
  return all ? table : folded(table, shown_tensors);
}

std::vector<std::string> pool_options(const PoolAdvice& advice) {
  std::vector<std::string> options;
  if (advice.limit) {
    options.push_back(in_options(fmt::format("`memory_limit` {}MiB", advice.limit->count() >> 20)));
  }
  if (advice.growth) options.push_back(in_options("`memory_growth`"));
  return options;
}

namespace {

Json host_buffers_json(const std::vector<HostBuffer>& buffers) {
  Json::Array list;
  for (const HostBuffer& buffer : buffers) {
    list.push_back(Json::Object{
        {"name", buffer.name}, {"bytes", Bytes(buffer.bytes)}, {"pinned", buffer.pinned}});
  }
  return list;
}

Json failure_json(const std::optional<AllocationFailure>& failure) {
  if (!failure) return {};
  const std::optional<MissingLibrary>& library = failure->at.library;
  return Json::Object{{"kernel", failure->node.empty() ? Json() : Json(failure->node)},
                      {"step", failure->at.step},
                      {"tried_bytes", failure->at.tried()},
                      {"message", failure->message},
                      {"expandable_segments_would_do", failure->expandable_segments_would_do},
                      {"library", library ? Json(library->library.name) : Json()}};
}

/// Null: of a runtime without an allocator that keeps what was freed.
Json allocator_json(const CheckReport& report) {
  const RuntimeRun& run = report.run;
  if (run.process().steps == 0 && !run.failure) return {};
  Json::Array devices;
  for (const LogicalDevice& device : run.pools.value_or(std::vector<LogicalDevice>())) {
    devices.emplace_back(Json::Object{{"name", device.name},
                                      {"asked_bytes", device.asked},
                                      {"limit_bytes", device.limit},
                                      {"pool_bytes", device.pool},
                                      {"used_bytes", device.used}});
  }
  Json::Array would_do;
  for (std::string& option : pool_options(run.would_do)) would_do.emplace_back(std::move(option));
  return Json::Object{{"cached_at_peak_bytes", run.process().cached_at_peak},
                      {"cache_releases", run.process().releases},
                      {"settles", run.settles()},
                      {"replayed_steps", run.process().steps},
                      {"failure", failure_json(run.failure)},
                      {"logical_devices", std::move(devices)},
                      {"would_do", std::move(would_do)}};
}

}  // namespace

Json::Object verdict_json(const Verdict& verdict, const Card& card) {
  return {{"device", Json::Object{{"name", card.name},
                                  {"total_bytes", card.cuda_total},
                                  {"available_bytes", verdict.available_bytes}}},
          {"verdict", verdict.fits ? "fits" : "does_not_fit"},
          {"device_bytes", verdict.device_bytes}};
}

Json::Object check_json(const CheckReport& report, const Card& card) {
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
    tensors.emplace_back(Json::Object{{"name", name_of(report.footprint, row)},
                                      {"class", to_string(row.entry.storage_class)},
                                      {"bytes", row.bytes}});
  }
  Json::Array fallbacks;
  for (const EngineFallback& fallback : report.fallbacks) {
    fallbacks.emplace_back(Json::Object{{"kernel", fallback.node},
                                        {"wanted_engine", fallback.first.name},
                                        {"wanted_bytes", fallback.first.workspace},
                                        {"taken_engine", fallback.taken.name},
                                        {"taken_bytes", fallback.taken.workspace}});
  }
  Json::Object json = verdict_json(verdict_of(report), card);
  const Json::Object figures{{"peak", Json::Object{{"tensor_bytes", report.tensor_bytes()},
                                                   {"reserved_bytes", report.reserved_bytes()},
                                                   {"device_bytes", report.device_bytes},
                                                   {"at", report.peak_at()}}},
                             {"footprint", std::move(footprint)},
                             {"runtime_rows", std::move(runtime_rows)},
                             {"phases", std::move(phases)},
                             {"host_bytes", report.host_bytes},
                             {"host_buffers", host_buffers_json(report.host_buffers)},
                             {"managed_bytes", report.managed_bytes},
                             {"evicted_bytes", report.evicted_bytes()},
                             {"headroom_bytes", report.headroom},
                             {"workspace_source", to_string(report.workspace_origin)},
                             {"fallbacks", std::move(fallbacks)},
                             {"allocator", allocator_json(report)},
                             {"culprit", report.culprit.empty() ? Json() : Json(report.culprit)},
                             {"tensors", std::move(tensors)}};
  json.insert(json.end(), figures.begin(), figures.end());
  return json;
}

Table rule_table(const RuleOfThumb& rule, const CheckReport& report) {
  const Footprint& footprint = report.footprint;
  const auto of = [&](StorageClass storage_class) {
    return footprint.by_class[static_cast<std::size_t>(storage_class)];
  };
  const Bytes parameters = of(StorageClass::parameter) + of(StorageClass::buffer) +
                           of(StorageClass::gradient) + of(StorageClass::optimizer_state);
  const Bytes inputs = of(StorageClass::input);
  Table table{.one_size_scale = true,
              .columns = {{"By the rule", "rule_bytes"}, {"Here", "bytes"}, {"", "name"}}};
  const auto row = [&](Bytes by_rule, Bytes here, std::string name, bool is_total = false) {
    table.rows.push_back({{by_rule, here, std::move(name)}, is_total});
  };
  row(rule.activations, report.tensor_bytes() - parameters - inputs,
      "activations, their gradients, workspaces");
  row(rule.parameters, parameters, "parameters, their gradients, optimizer state");
  row(rule.miscellaneous, inputs, "inputs");
  row(rule.total(), report.tensor_bytes(), "tensors", true);
  table.rows.push_back({{std::monostate(), report.device_bytes - report.tensor_bytes(),
                         std::string("allocator, context, libraries")}});
  row(rule.total(), report.device_bytes, "on the device", true);
  return table;
}

Json rule_json(const RuleOfThumb& rule) {
  return Json::Object{{"activation_bytes", rule.activations},
                      {"parameter_bytes", rule.parameters},
                      {"miscellaneous_bytes", rule.miscellaneous},
                      {"total_bytes", rule.total()}};
}

Json evaluation_json(const EvaluationReport& evaluation) {
  return Json::Object{{"batch", evaluation.batch},
                      {"fits", evaluation.step.fits},
                      {"tensor_bytes", evaluation.step.tensor_bytes()},
                      {"device_bytes", evaluation.step.device_bytes},
                      {"at", evaluation.step.peak_at()},
                      {"largest_chunk", evaluation.chunk.batch},
                      {"largest_chunk_is_proven", evaluation.chunk.is_proven}};
}

namespace {

// Of a step that fits: what of the optimizer's paged state stays on the device at the peak.
std::string say_paged(const CheckReport& report) {
  const Bytes left = report.evicted_bytes();
  if (left == Bytes()) {
    return fmt::format("without eviction: the paged state, {}, has room as well, with {} to spare",
                       format_bytes(report.managed_bytes),
                       format_bytes(report.headroom - report.managed_bytes));
  }
  return fmt::format(
      "with eviction: of the paged state, {}, {} has no room beside the peak and goes to the host; "
      "each update brings it back",
      format_bytes(report.managed_bytes), format_bytes(left));
}

// What keeps the step from running is not always the card's memory.
std::string refusal(const CheckReport& report, const Card& card, std::string_view whose) {
  if (report.headroom >= Bytes() && report.run.pools) {
    return fmt::format("does not fit{}: a pool of {} is needed; there is room for it on {}", whose,
                       format_bytes(report.run.process().reserved), card.name);
  }
  const auto [wanted, available] = format_apart(report.device_bytes, report.available_bytes);
  if (report.available_bytes <= Bytes()) {
    return fmt::format("does not fit{}: {} wanted, nothing available on {}, {} too much", whose,
                       format_bytes(report.device_bytes), card.name,
                       format_bytes(Bytes() - report.headroom));
  }
  if (report.headroom >= Bytes()) {
    return fmt::format(
        "does not fit{}: {} wanted, of the {} available on {}, is more than PyTorch's allocator "
        "may "
        "take (per_process_memory_fraction)",
        whose, wanted, available, card.name);
  }
  return fmt::format("does not fit{}: {} wanted, {} available on {}, {} too much", whose, wanted,
                     available, card.name, format_bytes(Bytes() - report.headroom));
}

}  // namespace

std::string_view kernels_in_words(Runtime runtime) {
  if (runtime == Runtime::pytorch) return " with PyTorch's kernels";
  return runtime == executed_runtime ? " with Stowage's own kernels" : "";
}

void say_verdict(const CheckReport& report, const Card& card, std::string_view whose, Report& out) {
  if (report.fits) {
    const auto [wanted, available] = format_apart(report.device_bytes, report.available_bytes);
    const std::int64_t releases = report.run.process().releases;
    out.say(fmt::format("fits: {} of the {} that {} has available, {} to spare", wanted, available,
                        card.name, format_bytes(report.headroom)),
            Tone::good);
    if (report.managed_bytes > Bytes()) out.say("  " + say_paged(report));
    if (report.run.pools) {
      out.say("  context and libraries find room beside TensorFlow's pool");
    } else if (releases > 0) {
      out.say(
          report.run.settles()
              ? fmt::format("  tightly: PyTorch gives its cache back {} before its steps ask the "
                            "driver for nothing more",
                            releases == 1 ? std::string("once") : fmt::format("{} times", releases))
              : std::string("  so tightly that every step gives memory back to the driver and "
                            "asks for it again, which is slow"));
    }
    return;
  }
  out.say(refusal(report, card, whose), Tone::bad);
  out.say("  " + report.culprit);
  if (report.run.failure) out.say("  " + report.run.failure->message);
  if (report.run.failure && report.run.failure->expandable_segments_would_do) {
    out.say("  with PYTORCH_ALLOC_CONF=expandable_segments:True it would fit");
  }
  if (!report.run.would_do.empty()) {
    out.say(fmt::format("  {} would do", fmt::join(pool_options(report.run.would_do), " or ")));
  }
}

}  // namespace stowage
