#include "cli/report/served_plan_answer.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "cli/report/serving_words.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

/// What lasts from pass to pass, by the side that it lies on.
struct HomeBytes {
  Bytes on_gpu, on_host;
};

/// Of weights (parameters and buffers), and of the cache; what no kernel touches has no home.
std::pair<HomeBytes, HomeBytes> homes_in(const Plan& plan) {
  const std::vector<bool> resident = resident_throughout(plan);
  std::vector<bool> is_touched(resident.size());
  for (const KernelNode& node : plan.step.graph->nodes) {
    for (const TensorView& view : node.reads) is_touched[view.storage.index()] = true;
    for (const TensorView& view : node.writes) is_touched[view.storage.index()] = true;
  }
  std::pair<HomeBytes, HomeBytes> homes;
  const StepGraph& graph = *plan.step.graph;
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    if (storage.persistence != Persistence::persistent || !is_touched[i]) continue;
    const bool is_cache = storage.storage_class == StorageClass::kv_cache;
    HomeBytes& of = is_cache ? homes.second : homes.first;
    (resident[i] ? of.on_gpu : of.on_host) += plan.bytes(StorageId::of(i));
  }
  return homes;
}

Json home_json(const HomeBytes& bytes) {
  return Json::Object{{"gpu_bytes", bytes.on_gpu}, {"host_bytes", bytes.on_host}};
}

std::string home_words(std::string_view what, const HomeBytes& bytes) {
  if (bytes.on_host == Bytes()) {
    return fmt::format("{}: {}, all on the GPU", what, format_bytes(bytes.on_gpu));
  }
  if (bytes.on_gpu == Bytes()) {
    return fmt::format("{}: {}, all on the host", what, format_bytes(bytes.on_host));
  }
  return fmt::format("{}: {} on the GPU, {} on the host", what, format_bytes(bytes.on_gpu),
                     format_bytes(bytes.on_host));
}

Json::Object pass_json(const PlannedPass& pass) {
  Json::Object json;
  add_pass({.batch = pass.batch, .tokens = pass.tokens, .past = pass.past}, json);
  return json;
}

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

void add_decode(const PlanAnswer& found, Report& out) {
  Json::Object json = pass_json(found.serving->decode_pass);
  if (!found.decode) {
    json.emplace_back("step_seconds", Json());
    out.json.emplace_back("decode", std::move(json));
    return;
  }
  const DecodePlan& decode = *found.decode;
  const auto users = static_cast<double>(found.serving->decode_pass.batch);
  const auto& bound = decode.step_lower_bound_seconds;
  json.emplace_back("step_seconds", decode.step_seconds);
  json.emplace_back("step_lower_bound_seconds", bound ? Json(*bound) : Json());
  json.emplace_back("tokens_per_second", users / decode.step_seconds);
  json.emplace_back("budget_bytes", decode.budget.bytes);
  out.json.emplace_back("decode", std::move(json));
  std::string text = fmt::format(
      "  Decode by itself, again and again: {} a pass, {:.3g} tokens a "
      "second of all users",
      milliseconds(decode.step_seconds), users / decode.step_seconds);
  if (bound) {
    text += fmt::format("; at least {} within the {} that prefill leaves it", milliseconds(*bound),
                        format_bytes(decode.budget.bytes));
  }
  out.say(std::move(text));
}

}  // namespace

std::string describe_served(const PlanAnswer& found) {
  return describe_serving({.model = found.request.document.graph->model,
                           .settings = found.serving->serving,
                           .precision = found.request.document.precision});
}

void add_served_plan(const PlanAnswer& found, Report& out) {
  const ServedStep& served = *found.serving;
  const PlannedPass& prefill = served.prefill_pass;
  const PlannedPass& decode = served.decode_pass;
  out.json.emplace_back("serving", served_json(served.serving));
  out.json.emplace_back("prefill", pass_json(prefill));
  out.say(fmt::format("  The step is a pass of prefill, then one of decode. {}. {}.",
                      describe_pass({"Prefill", prefill.batch, prefill.tokens, prefill.past, 0}),
                      describe_pass({"Decode", decode.batch, decode.tokens, decode.past, 0})));
  add_decode(found, out);
  if (!found.chosen) return;
  const auto [weights, cache] = homes_in(found.plans[*found.chosen]);
  out.json.emplace_back("homes",
                        Json::Object{{"weights", home_json(weights)}, {"cache", home_json(cache)}});
  out.say(fmt::format("  {}; {}.", home_words("Weights", weights), home_words("cache", cache)));
}

}  // namespace stowage
