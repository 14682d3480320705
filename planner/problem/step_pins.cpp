#include "planner/problem/step_pins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "estimator/step/gpu_kernels.hpp"
#include "planner/problem/step_names.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_reported = 20;

bool is_of_the_model(StorageClass storage_class) {
  switch (storage_class) {
    case StorageClass::parameter:
    case StorageClass::parameter_copy:
    case StorageClass::buffer:
    case StorageClass::gradient:
    case StorageClass::optimizer_state:
      return true;
    default:
      return false;
  }
}

// The family of a kernel: "embedding" for "embedding_forward".
std::string_view family_of(std::string_view kernel) {
  for (const std::string_view ending : {"_forward", "_backward", "_inference", "_update"}) {
    const std::size_t at = kernel.find(ending);
    if (at != std::string_view::npos && at > 0) return kernel.substr(0, at);
  }
  return kernel;
}

bool is_class(std::string_view pattern, StorageClass storage_class) {
  const std::string_view name = to_string(storage_class);
  return fits_pattern(name, pattern) ||
         (pattern.size() == name.size() + 1 && pattern.ends_with('s') && pattern.starts_with(name));
}

/// The rank of a pin: of two pins for one thing the one with the greater rank wins.
using Rank = std::tuple<bool, bool, std::size_t, std::size_t>;
Rank rank_of(const DevicePin& pin) {
  const std::size_t first = std::min(pin.pattern.find_first_of("*?"), pin.pattern.size());
  const auto wildcards = static_cast<std::size_t>(
      std::ranges::count_if(pin.pattern, [](char c) { return c == '*' || c == '?'; }));
  const bool is_scope = pin.target == PinTarget::scope;
  if (!is_scope) return {pin.overrides, false, 0, 0};
  return {pin.overrides, true, first, pin.pattern.size() - wildcards};
}

Pin pin_to(PinnedSide side) { return side == PinnedSide::cpu ? Pin::cpu : Pin::gpu; }

class PinMatcher {
 public:
  PinMatcher(const StepGraph& step, const std::vector<Layer>& layers, const PinRequest& request)
      : step_(step), request_(request), fitted_(request.pins.size(), false) {
    for (const Layer& layer : layers) operators_.emplace(layer.name, layer.op);
    for (const DevicePin& pin : request.pins) {
      result_.reasons.push_back({PinReason::Kind::asked, to_string(pin)});
    }
    result_.nodes.resize(step.nodes.size());
    result_.storages.resize(step.storages.size());
  }

  Result<StepPins> run() {
    match_storages();
    match_nodes();
    refuse_unmatched_pins();
    if (errors_.empty()) place_without_kernels();
    if (errors_.empty()) pin_homes();
    if (errors_.empty()) pin_writers_to_gpu();
    if (!errors_.empty()) return tl::unexpected(std::move(errors_));
    drop_unused_reasons();
    return std::move(result_);
  }

 private:
  void error(Diagnostic diagnostic) {
    if (errors_.size() < most_reported) errors_.push_back(std::move(diagnostic));
  }

  [[nodiscard]] bool fits(const DevicePin& pin, const Storage& storage) const {
    if (!is_placeable(storage)) return false;
    if (pin.target == PinTarget::storage_class) return is_class(pin.pattern, storage.storage_class);
    if (pin.target == PinTarget::op) return false;
    if (is_of_the_model(storage.storage_class)) {
      return scope_contains_layer(pin.pattern, step_.layer(storage.op)) ||
             matches_name(pin.pattern, storage.name);
    }
    // Results have their layer's name; the name then means the layer.
    return !has_wildcard(pin.pattern) && matches_name(pin.pattern, storage.name) &&
           step_.layer(storage.op) != pin.pattern;
  }

  [[nodiscard]] bool fits(const DevicePin& pin, const KernelNode& node) const {
    const std::string_view layer = step_.layer(node.op);
    if (pin.target == PinTarget::storage_class) return false;
    if (pin.target == PinTarget::op) {
      const std::string_view kernel = kernel_name(node);
      if (fits_pattern(kernel, pin.pattern) || fits_pattern(family_of(kernel), pin.pattern)) {
        return true;
      }
      const auto found = operators_.find(layer);
      return found != operators_.end() && fits_pattern(found->second, pin.pattern);
    }
    if (scope_contains_layer(pin.pattern, layer) || matches_name(pin.pattern, node.name))
      return true;
    return node.phase == Phase::update && updates_only(pin, node);
  }

  // A node that updates several parameters at once belongs to a scope that has them all.
  [[nodiscard]] bool updates_only(const DevicePin& pin, const KernelNode& node) const {
    bool any = false;
    for (const TensorView& view : node.writes) {
      const Storage& written = step_.storage(view.storage);
      if (written.storage_class != StorageClass::parameter) continue;
      if (!fits(pin, written)) return false;
      any = true;
    }
    return any;
  }

  template <typename Thing>
  [[nodiscard]] AppliedPin winning_pin(const Thing& thing) {
    std::int32_t best = -1;
    for (std::int32_t i = 0; i < std::ssize(request_.pins); ++i) {
      const DevicePin& pin = request_.pins[static_cast<std::size_t>(i)];
      if (!fits(pin, thing)) continue;
      fitted_[static_cast<std::size_t>(i)] = true;
      if (best < 0) {
        best = i;
        continue;
      }
      const DevicePin& other = request_.pins[static_cast<std::size_t>(best)];
      const Rank rank = rank_of(pin), highest = rank_of(other);
      if (rank > highest) {
        best = i;
      } else if (rank == highest && pin.side != other.side) {
        refuse_pair(thing.name, best, i);
      }
    }
    if (best < 0) return {};
    return {pin_to(request_.pins[static_cast<std::size_t>(best)].side), best};
  }

  void refuse_pair(const std::string& name, std::int32_t first, std::int32_t second) {
    if (!refused_.insert({first, second}).second) return;
    const DevicePin& a = request_.pins[static_cast<std::size_t>(first)];
    const DevicePin& b = request_.pins[static_cast<std::size_t>(second)];
    error({.message = fmt::format("the pins '{}' and '{}' contradict each other about '{}'",
                                  to_string(a), to_string(b), name),
           .span = b.span,
           .hint = "of two scopes the longer one wins; make one of them longer",
           .notes = {{.severity = Severity::note,
                      .message = fmt::format("'{}' is the other", to_string(a)),
                      .span = a.span}}});
  }

  void match_storages() {
    for (std::size_t i = 0; i < step_.storages.size(); ++i) {
      result_.storages[i] = winning_pin(step_.storages[i]);
    }
  }

  void match_nodes() {
    for (std::size_t i = 0; i < step_.nodes.size(); ++i) {
      result_.nodes[i] = winning_pin(step_.nodes[i]);
    }
  }

  void refuse_unmatched_pins() {
    for (std::size_t i = 0; i < request_.pins.size(); ++i) {
      if (fitted_[i]) continue;
      const DevicePin& pin = request_.pins[i];
      error({.message = fmt::format("the pin '{}' fits nothing in this step", to_string(pin)),
             .span = pin.span,
             .hint = suggestion(pin)});
    }
  }

  [[nodiscard]] std::string suggestion(const DevicePin& pin) const {
    std::set<std::string> candidates;
    switch (pin.target) {
      case PinTarget::storage_class:
        for (const Storage& storage : step_.storages) {
          if (is_placeable(storage)) candidates.emplace(to_string(storage.storage_class));
        }
        break;
      case PinTarget::op:
        for (const KernelNode& node : step_.nodes) {
          candidates.emplace(family_of(kernel_name(node)));
          const auto found = operators_.find(step_.layer(node.op));
          if (found != operators_.end()) candidates.emplace(found->second);
        }
        break;
      case PinTarget::scope:
        for (std::string& name : names_in(step_)) candidates.insert(std::move(name));
        break;
    }
    std::string_view typed = pin.pattern;
    std::string_view ending;
    if (typed.ends_with(".*")) {
      ending = typed.substr(typed.size() - 2);
      typed.remove_suffix(2);
    }
    const std::vector<std::string_view> views(candidates.begin(), candidates.end());
    const auto near = closest(typed, views);
    if (near) {
      DevicePin meant = pin;
      meant.pattern = std::string(*near) + std::string(ending);
      return fmt::format("did you mean '{}'?", to_string(meant));
    }
    if (pin.target == PinTarget::scope) {
      return "patterns fit the paths of layers and the names of kernels and variables";
    }
    std::string list;
    for (const std::string_view name : views) {
      list += (list.empty() ? "" : ", ") + std::string(name);
    }
    return "there are " + list;
  }

  void place_without_kernels() {
    std::map<std::string, std::vector<std::size_t>> moved;  // by why
    for (std::size_t i = 0; i < step_.nodes.size(); ++i) {
      if (result_.nodes[i].pin == Pin::cpu) continue;
      std::string why = why_no_gpu_kernel(step_.nodes[i], step_.settings.kernels);
      if (!why.empty()) moved[std::move(why)].push_back(i);
    }
    for (const auto& [why, nodes] : moved) {
      if (request_.soft_placement) {
        move_to_cpu(why, nodes);
      } else {
        error({.message = fmt::format("{} no GPU kernel: {}", listed(nodes), why),
               .hint = "soft placement runs such kernels on the CPU"});
      }
    }
  }

  // "'a' has", "'a', 'b' and 7 more have"
  [[nodiscard]] std::string listed(const std::vector<std::size_t>& nodes) const {
    constexpr std::size_t most_named = 4;
    std::string text;
    const std::size_t named = std::min(nodes.size(), most_named);
    for (std::size_t i = 0; i < named; ++i) {
      const bool last = i + 1 == nodes.size();
      text += (i == 0 ? "'" : last ? " and '" : ", '") + step_.nodes[nodes[i]].name + "'";
    }
    if (nodes.size() > named) text += fmt::format(" and {} more", nodes.size() - named);
    return text + (nodes.size() == 1 ? " has" : " have");
  }

  void move_to_cpu(const std::string& why, const std::vector<std::size_t>& nodes) {
    const auto reason = static_cast<std::int32_t>(result_.reasons.size());
    result_.reasons.push_back({PinReason::Kind::no_gpu_kernel, why});
    std::set<std::int32_t> given_up;
    for (const std::size_t i : nodes) {
      if (result_.nodes[i].pin == Pin::gpu) given_up.insert(result_.nodes[i].reason);
      result_.nodes[i] = {Pin::cpu, reason};
    }
    Diagnostic note{.severity = Severity::note,
                    .message = fmt::format("{} no GPU kernel, so soft placement puts {} on the "
                                           "CPU: {}",
                                           listed(nodes), nodes.size() == 1 ? "it" : "them", why)};
    for (const std::int32_t pin : given_up) {
      note.notes.push_back(
          {.severity = Severity::note,
           .message = fmt::format("the pin '{}' asked for the GPU",
                                  to_string(request_.pins[static_cast<std::size_t>(pin)]))});
    }
    result_.notes.push_back(std::move(note));
  }

  // What a node on the CPU writes has no home on the GPU: it stays free.
  void pin_homes() {
    const StorageHomes& homes = request_.homes;
    if (homes.empty()) return;
    std::vector<bool> written_on_cpu(step_.storages.size());
    for (std::size_t i = 0; i < step_.nodes.size(); ++i) {
      if (result_.nodes[i].pin != Pin::cpu) continue;
      for (const TensorView& view : step_.nodes[i].writes) {
        written_on_cpu[view.storage.index()] = true;
      }
    }
    const auto reason = static_cast<std::int32_t>(result_.reasons.size());
    result_.reasons.push_back({PinReason::Kind::home, "it lies on the GPU in every pass"});
    result_.reasons.push_back({PinReason::Kind::home, "it lies on the host in every pass"});
    for (std::size_t i = 0; i < step_.storages.size(); ++i) {
      AppliedPin& applied = result_.storages[i];
      if (applied.pin != Pin::free || !is_placeable(step_.storages[i])) continue;
      if (homes.host.contains(step_.storages[i].name)) {
        applied = {Pin::cpu, reason + 1};
      } else if (homes.gpu.contains(step_.storages[i].name) && !written_on_cpu[i]) {
        applied = {Pin::gpu, reason};
      }
    }
  }

  void pin_writers_to_gpu() {
    for (std::size_t i = 0; i < step_.nodes.size(); ++i) {
      for (const TensorView& view : step_.nodes[i].writes) {
        const AppliedPin& written = result_.storages[view.storage.index()];
        if (written.pin != Pin::gpu) continue;
        if (result_.nodes[i].pin == Pin::cpu) {
          refuse_writer(i, view.storage);
        } else if (result_.nodes[i].pin == Pin::free) {
          result_.nodes[i] = written;
        }
      }
    }
  }

  void refuse_writer(std::size_t node, StorageId storage) {
    const std::int32_t on_cpu = result_.nodes[node].reason;
    const std::int32_t on_gpu = result_.storages[storage.index()].reason;
    if (!refused_.insert({on_cpu, on_gpu}).second) return;
    const auto& pins = request_.pins;
    const PinReason& why = result_.reasons[static_cast<std::size_t>(on_cpu)];
    const DevicePin& kept = pins[static_cast<std::size_t>(on_gpu)];
    Diagnostic mistake{
        .message =
            fmt::format("'{}' keeps '{}' on the GPU, and '{}', which writes it, is on the CPU: {}",
                        to_string(kept), step_.storage(storage).name, step_.nodes[node].name,
                        why.kind == PinReason::Kind::asked ? "'" + why.text + "'" : why.text),
        .span = kept.span};
    if (why.kind == PinReason::Kind::asked) {
      mistake.notes.push_back({.severity = Severity::note,
                               .message = fmt::format("'{}' is here", why.text),
                               .span = pins[static_cast<std::size_t>(on_cpu)].span});
    }
    error(std::move(mistake));
  }

  void drop_unused_reasons() {
    std::vector<std::int32_t> number(result_.reasons.size(), -1);
    std::vector<PinReason> kept;
    const auto renumber = [&](AppliedPin& applied) {
      if (applied.reason < 0) return;
      std::int32_t& to = number[static_cast<std::size_t>(applied.reason)];
      if (to < 0) {
        to = static_cast<std::int32_t>(kept.size());
        kept.push_back(result_.reasons[static_cast<std::size_t>(applied.reason)]);
      }
      applied.reason = to;
    };
    for (AppliedPin& applied : result_.nodes) renumber(applied);
    for (AppliedPin& applied : result_.storages) renumber(applied);
    result_.reasons = std::move(kept);
    if (!result_.empty()) return;
    result_.nodes.clear();
    result_.storages.clear();
  }

  const StepGraph& step_;
  const PinRequest& request_;
  std::unordered_map<std::string_view, std::string_view> operators_;  // by layer
  std::vector<bool> fitted_;                                          // by pin
  std::set<std::pair<std::int32_t, std::int32_t>> refused_;
  StepPins result_;
  Diagnostics errors_;
};

}  // namespace

std::string_view to_string(PinReason::Kind kind) {
  switch (kind) {
    case PinReason::Kind::asked:
      return "asked";
    case PinReason::Kind::no_gpu_kernel:
      return "no GPU kernel";
    case PinReason::Kind::home:
      return "home";
  }
  return "";
}

Pin StepPins::of(NodeId node) const { return nodes.empty() ? Pin::free : nodes[node.index()].pin; }

Pin StepPins::of(StorageId storage) const {
  return storages.empty() ? Pin::free : storages[storage.index()].pin;
}

Result<StepPins> apply_pins(const StepGraph& step, const std::vector<Layer>& layers,
                            const PinRequest& request) {
  return PinMatcher(step, layers, request).run();
}

}  // namespace stowage
