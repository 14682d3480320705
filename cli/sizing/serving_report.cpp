#include "cli/sizing/serving_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/check_report.hpp"
#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

std::string describe_pass(std::string_view name, const CheckedPass& pass) {
  const std::string users =
      pass.batch == 1 ? std::string("one user") : grouped_digits(pass.batch) + " users";
  std::string text = fmt::format("{}: {} {} of {}", name, grouped_digits(pass.tokens),
                                 pass.tokens == 1 ? "token" : "tokens", users);
  if (pass.encoded > 0 && pass.past == 0) {
    text += fmt::format(", behind an encoder over {} positions", grouped_digits(pass.encoded));
  }
  if (pass.past > 0) text += fmt::format(", {} cached before", grouped_digits(pass.past));
  return text;
}

Table cache_in_passes(const ServingReport& report) {
  Table table{.one_size_scale = true,
              .columns = {{"Cache", "kv_cache_bytes"},
                          {"Tensors", "tensor_bytes"},
                          {"On the device", "device_bytes"},
                          {"Pass", "pass"}}};
  const auto row = [&](const char* name, const CheckReport& of) {
    const auto at = static_cast<std::size_t>(StorageClass::kv_cache);
    table.rows.push_back(
        {{of.footprint.by_class[at], of.tensor_bytes(), of.device_bytes, std::string(name)}});
  };
  row("prefill", report.prefill.report);
  row("decode", report.decode.report);
  return table;
}

void show_pass(std::string_view name, const CheckedPass& pass, bool verbose, Report& out) {
  const CheckReport& report = pass.report;
  out.say(fmt::format("\n{}", describe_pass(name, pass)), Tone::heading);
  out.say(fmt::format("The peak, while {} runs:", report.peak_at()));
  out.show(breakdown_table(report));
  out.say("\nThe largest tensors at the peak:");
  const Table tensors = largest_tensors(report);
  out.show(verbose ? tensors : folded_tensors(tensors));
}

Json pass_json(const CheckedPass& pass, const Card& card) {
  Json::Object object = check_json(pass.report, card);
  object.emplace_back("sequences", pass.batch);
  object.emplace_back("tokens_of_each", pass.tokens);
  object.emplace_back("cached_before", pass.past);
  return object;
}

}  // namespace

Bytes cache_bytes(const ServingReport& report) {
  const Footprint& footprint = report.decode.report.footprint;
  return footprint.by_class[static_cast<std::size_t>(StorageClass::kv_cache)];
}

std::string describe_serving(const ServingReport& report) {
  const ServingSettings& settings = report.settings;
  std::string cache = fmt::format("{} cache", to_string(settings.cache));
  if (settings.cache == CacheKind::paged) cache += fmt::format(" in blocks of {}", settings.block);
  if (settings.format != CacheFormat::model) {
    cache += fmt::format(", stored as {}", to_string(settings.format));
  }
  if (is_packed(settings.format)) {
    cache += fmt::format(" in groups of {}, the newest up to {} tokens as computed", settings.group,
                         settings.residual - 1);
  }
  const std::int64_t encoded = report.prefill.encoded;
  return fmt::format(
      "{} serving {} {} of {} tokens{}, {}, {}", report.model, grouped_digits(settings.users),
      settings.users == 1 ? "user" : "users", grouped_digits(settings.context_length),
      encoded > 0 ? fmt::format(" behind {} of an encoder", grouped_digits(encoded)) : "",
      to_string(report.precision), cache);
}

Json::Object serving_json(const ServingReport& report, const Card& card) {
  const ServingSettings& settings = report.settings;
  const CheckReport& larger = report.larger().report;
  return {
      {"fits", report.fits()},
      {"serving",
       Json::Object{
           {"model", report.model},
           {"context_length", settings.context_length},
           {"encoder_length", report.prefill.encoded > 0 ? Json(report.prefill.encoded) : Json()},
           {"users", settings.users},
           {"cache", to_string(settings.cache)},
           {"kv_dtype", to_string(settings.format)},
           {"kv_block", settings.cache == CacheKind::paged ? Json(settings.block) : Json()},
           {"prefill_chunk", settings.prefill_chunk ? Json(*settings.prefill_chunk) : Json()},
           {"precision", to_string(report.precision)},
           {"kv_cache_bytes", cache_bytes(report)},
           {"device_bytes", larger.device_bytes},
           {"headroom_bytes", larger.headroom}}},
      {"prefill", pass_json(report.prefill, card)},
      {"decode", pass_json(report.decode, card)}};
}

Answer serving_answer(const ServingReport& report, const ServedModel& served, bool verbose) {
  const Card& card = served.card.card;
  Answer answer;
  answer.exit_code = report.fits() ? ExitCode::yes : ExitCode::clean_no;
  Report& out = answer.report;
  out.json = serving_json(report, card);
  out.json.emplace_back("software", stack_json(served.settings.stack));
  out.say(
      fmt::format("{}, {} runtime", describe_serving(report), to_string(served.settings.runtime)),
      Tone::heading);
  show_pass("Prefill", report.prefill, verbose, out);
  show_pass("Decode", report.decode, verbose, out);
  out.listing = cache_in_passes(report);
  out.say("\nBoth passes, the keys and values of all users among them:");
  out.show(out.listing);
  out.say("");
  out.show(room_table(report.larger().report, served.settings));
  out.say("");
  const CheckedPass& decides = report.fits() || !report.prefill.report.fits
                                   ? (report.fits() ? report.larger() : report.prefill)
                                   : report.decode;
  say_verdict(decides.report, card, out);
  return answer;
}

}  // namespace stowage
