#include "cli/report/serving_answer.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "cli/report/check_report.hpp"
#include "cli/report/serving_words.hpp"
#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

Table cache_in_passes(const ServingAnswer& found) {
  Table table{.one_size_scale = true,
              .columns = {{"Cache", "kv_cache_bytes"},
                          {"Tensors", "tensor_bytes"},
                          {"On the device", "device_bytes", true},
                          {"Pass", "pass"}}};
  const auto row = [&](const char* name, const CheckReport& of) {
    const auto at = static_cast<std::size_t>(StorageClass::kv_cache);
    table.rows.push_back(
        {{of.footprint.by_class[at], of.tensor_bytes(), of.device_bytes, std::string(name)}});
  };
  row("prefill", found.prefill.report);
  row("decode", found.decode.report);
  return table;
}

void show_pass(std::string_view name, const CheckedPass& pass, bool verbose, Report& out) {
  const CheckReport& report = pass.report;
  out.say(
      fmt::format("\n{}", describe_pass({name, pass.batch, pass.tokens, pass.past, pass.encoded})),
      Tone::heading);
  out.say(fmt::format("The peak, while {} runs:", report.peak_at()));
  out.show(breakdown_table(report));
  out.say("\nThe largest tensors at the peak:");
  const Table tensors = largest_tensors(report);
  out.show(verbose ? tensors : folded_tensors(tensors));
}

Json pass_json(const CheckedPass& pass, const Card& card) {
  Json::Object object = check_json(pass.report, card);
  add_pass({.batch = pass.batch, .tokens = pass.tokens, .past = pass.past}, object);
  return object;
}

/// Bytes of the cache's storages, of all users and layers, as they lie in the decode pass.
Bytes cache_bytes(const ServingAnswer& found) {
  const Footprint& footprint = found.decode.report.footprint;
  return footprint.by_class[static_cast<std::size_t>(StorageClass::kv_cache)];
}

Json serving_json(const ServingAnswer& found) {
  const CheckReport& larger = found.larger().report;
  Json::Object json = served_json(found.serving, found.prefill.encoded);
  json.emplace(json.begin(), "model", found.step.model);
  json.emplace_back("precision", to_string(found.step.precision));
  json.emplace_back("kv_cache_bytes", cache_bytes(found));
  json.emplace_back("device_bytes", larger.device_bytes);
  json.emplace_back("headroom_bytes", larger.headroom);
  return json;
}

Json::Object json_of(const ServingAnswer& found) {
  Json::Object json = verdict_json(found.verdict(), found.card);
  json.emplace_back("headroom_bytes", found.verdict().headroom_bytes);
  json.emplace_back("fits", found.fits());
  json.emplace_back("serving", serving_json(found));
  json.emplace_back("prefill", pass_json(found.prefill, found.card));
  json.emplace_back("decode", pass_json(found.decode, found.card));
  json.emplace_back(
      "settings", settings_json(found.step, found.decode.batch, to_string(found.settings.runtime)));
  add_process(found.settings, json);
  return json;
}

}  // namespace

RenderedAnswer rendered(const ServingAnswer& found, bool verbose) {
  RenderedAnswer answer{.exit_code = found.fits() ? ExitCode::yes : ExitCode::clean_no};
  Report& out = answer.report;
  out.notes = found.notes;
  out.json = json_of(found);
  out.say(fmt::format("{}, {} runtime",
                      describe_serving({found.step.model, found.serving, found.prefill.encoded,
                                        found.step.precision}),
                      to_string(found.settings.runtime)),
          Tone::heading);
  show_pass("Prefill", found.prefill, verbose, out);
  show_pass("Decode", found.decode, verbose, out);
  out.listing = cache_in_passes(found);
  out.say("\nBoth passes, the keys and values of all users among them:");
  out.show(out.listing);
  out.say("");
  out.show(room_table(found.larger().report, found.settings));
  out.say("");
  say_verdict(found.deciding().report, found.card, kernels_in_words(found.settings.runtime), out);
  return answer;
}

}  // namespace stowage
