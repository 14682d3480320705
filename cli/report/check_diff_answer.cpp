#include "cli/report/check_diff_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/setting_names.hpp"
#include "cli/report/check_report.hpp"
#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_layers = 20;

/// "+1.2 GiB", "-3.0 MiB", "0 B"
std::string signed_bytes(Bytes bytes) {
  if (bytes == Bytes()) return format_bytes(bytes);
  return bytes > Bytes() ? "+" + format_bytes(bytes) : "-" + format_bytes(Bytes() - bytes);
}

Row change_row(Bytes before, Bytes after, std::string name, bool is_total = false) {
  return {{before, after, signed_bytes(after - before), std::move(name)}, is_total};
}

Table class_table(const CheckDiffAnswer& found) {
  Table table{.one_size_scale = true,
              .columns = {{"Before", "before_bytes"},
                          {"After", "after_bytes"},
                          {"Change", "change"},
                          {"Class", "class"}}};
  for (const ClassChange& change : found.classes) {
    table.rows.push_back(
        change_row(change.before, change.after, spaced(to_string(change.storage_class))));
  }
  const CheckReport& before = found.before.report;
  const CheckReport& after = found.after.report;
  table.rows.push_back(change_row(before.tensor_bytes(), after.tensor_bytes(), "tensors", true));
  table.rows.push_back(change_row(before.device_bytes - before.tensor_bytes(),
                                  after.device_bytes - after.tensor_bytes(),
                                  "the allocator's cache, the context and the libraries"));
  table.rows.push_back(change_row(before.device_bytes, after.device_bytes, "on the device", true));
  return table;
}

/// "layer3.10" of "layer3.10.conv3"; a layer without a parent is by itself.
std::string block_of(const std::string& layer) {
  const std::size_t dot = layer.rfind('.');
  return dot == std::string::npos ? layer : layer.substr(0, dot);
}

/// The layers' blocks, the largest difference first; those that come to nothing are left out.
std::vector<LayerChange> by_block(const std::vector<LayerChange>& layers) {
  std::vector<LayerChange> blocks;
  std::map<std::string, std::size_t> place;
  for (const LayerChange& change : layers) {
    const auto [at, is_new] = place.emplace(block_of(change.layer), blocks.size());
    if (is_new) blocks.push_back({at->first, Bytes(), Bytes()});
    blocks[at->second].before += change.before;
    blocks[at->second].after += change.after;
  }
  std::erase_if(blocks, [](const LayerChange& block) { return block.before == block.after; });
  std::ranges::stable_sort(blocks, std::greater<>(), distance);
  return blocks;
}

Table layer_table(const std::vector<LayerChange>& layers, std::string title) {
  Table table{.one_size_scale = true,
              .columns = {{"Before", "before_bytes"},
                          {"After", "after_bytes"},
                          {"Change", "change"},
                          {std::move(title), "layer"}}};
  for (const LayerChange& change : layers) {
    table.rows.push_back(change_row(change.before, change.after,
                                    change.layer.empty() ? "(of no layer)" : change.layer));
  }
  return table;
}

/// What CSV holds: classes and layers in one list.
Table all_changes(const CheckDiffAnswer& found) {
  Table table{.columns = {{"", "kind"}, {"", "before_bytes"}, {"", "after_bytes"}, {"", "name"}}};
  for (const ClassChange& change : found.classes) {
    table.rows.push_back({{std::string("class"), change.before, change.after,
                           std::string(to_string(change.storage_class))}});
  }
  for (const LayerChange& change : found.layers) {
    table.rows.push_back({{std::string("layer"), change.before, change.after, change.layer}});
  }
  table.rows.push_back({{std::string("device"), found.before.report.device_bytes,
                         found.after.report.device_bytes, std::string()}});
  return table;
}

Json::Object side_json(const CheckAnswer& side) {
  Json::Object json = verdict_json(side.verdict(), side.card);
  json.emplace_back("headroom_bytes", side.report.headroom);
  json.emplace_back("tensor_bytes", side.report.tensor_bytes());
  json.emplace_back("settings",
                    settings_json(side.step, side.batch, to_string(side.settings.runtime)));
  return json;
}

Json::Object json_of(const CheckDiffAnswer& found) {
  Json::Object json = verdict_json(found.after.verdict(), found.after.card);
  json.emplace_back("headroom_bytes", found.after.report.headroom);
  json.emplace_back("added_bytes", found.added());
  json.emplace_back("before", side_json(found.before));
  json.emplace_back("after", side_json(found.after));
  Json::Array classes, layers;
  for (const ClassChange& change : found.classes) {
    classes.emplace_back(Json::Object{{"class", to_string(change.storage_class)},
                                      {"before_bytes", change.before},
                                      {"after_bytes", change.after}});
  }
  for (const LayerChange& change : found.layers) {
    layers.emplace_back(Json::Object{
        {"layer", change.layer}, {"before_bytes", change.before}, {"after_bytes", change.after}});
  }
  json.emplace_back("classes", std::move(classes));
  json.emplace_back("layers", std::move(layers));
  json.emplace_back("same_layers", found.same_layers);
  return json;
}

std::string side_text(const CheckAnswer& side) {
  return fmt::format("{}, {} runtime{}, {}", describe_step(side.step, side.batch),
                     to_string(side.settings.runtime), describe_replicas(side.batch, side.settings),
                     side.card.name);
}

/// "it takes 1.2 GiB more: 3.5 GiB become 4.7 GiB"
std::string change_text(const CheckDiffAnswer& found) {
  const Bytes added = found.added();
  if (added == Bytes()) return "it takes as much as before";
  const auto [before, after] =
      format_apart(found.before.report.device_bytes, found.after.report.device_bytes);
  return fmt::format("it takes {} {}: {} become {}",
                     format_bytes(added > Bytes() ? added : Bytes() - added),
                     added > Bytes() ? "more" : "less", before, after);
}

/// Every layer, or, of many that are not asked for, their blocks.
void say_layers(const CheckDiffAnswer& found, bool verbose, Report& out) {
  if (found.layers.empty()) return;
  const bool is_short = verbose || found.layers.size() <= most_layers;
  out.say(
      fmt::format("\n{} layers differ, {} do not{}:", found.layers.size(), found.same_layers,
                  is_short ? "" : in_options("; by block, of which `verbose` shows the layers")));
  if (is_short) {
    out.show(layer_table(found.layers, "Layer"));
  } else {
    out.show(folded(layer_table(by_block(found.layers), "Block"), most_layers));
  }
}

}  // namespace

// Both steps in words, classes and layers at their peaks, the change, the second one's verdict.
RenderedAnswer rendered(const CheckDiffAnswer& found, bool verbose) {
  const CheckReport& after = found.after.report;
  RenderedAnswer answer{.exit_code = after.fits ? ExitCode::yes : ExitCode::clean_no};
  Report& out = answer.report;
  out.notes = found.notes;
  out.json = json_of(found);
  out.listing = all_changes(found);
  out.say("before: " + side_text(found.before), Tone::heading);
  out.say("after:  " + side_text(found.after), Tone::heading);
  out.say("\nAt the peak of each:");
  out.show(class_table(found));
  say_layers(found, verbose, out);
  out.say("");
  out.say(change_text(found));
  say_verdict(after, found.after.card, kernels_in_words(found.after.settings.runtime), out);
  return answer;
}

}  // namespace stowage
