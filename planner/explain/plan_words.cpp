#include "planner/explain/plan_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "estimator/rewrite/segments.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

/// Kinds of storages that cross the link, as people speak of them.
enum class MovedKind { activations, weights, state, gradients, caches };
constexpr std::array<const char*, 5> moved_names{"activation", "weight", "piece of state",
                                                 "gradient", "cache"};
constexpr std::array<const char*, 5> moved_plurals{"activations", "weights", "pieces of state",
                                                   "gradients", "caches"};

MovedKind kind_of(StorageClass storage_class) {
  switch (storage_class) {
    case StorageClass::parameter:
    case StorageClass::parameter_copy:
    case StorageClass::buffer:
      return MovedKind::weights;
    case StorageClass::optimizer_state:
      return MovedKind::state;
    case StorageClass::gradient:
      return MovedKind::gradients;
    case StorageClass::kv_cache:
      return MovedKind::caches;
    default:
      return MovedKind::activations;
  }
}

struct Crossing {
  std::set<StorageId> storages;
  Bytes up, down;
  OperatorId first, last;
};

void note(const Plan& plan, const Transfer& transfer, Crossing& crossing) {
  crossing.storages.insert(transfer.storage);
  const bool up = direction_of(plan, transfer) == Direction::h2d;
  (up ? crossing.up : crossing.down) += plan.bytes(transfer.storage);
  const OperatorId op = plan.storage(transfer.storage).op;
  if (!op.valid()) return;
  if (!crossing.first.valid() || op < crossing.first) crossing.first = op;
  if (!crossing.last.valid() || crossing.last < op) crossing.last = op;
}

std::string layers_of(const Plan& plan, const Crossing& crossing) {
  if (!crossing.first.valid()) return {};
  const std::string_view first = plan.step.graph->layer(crossing.first);
  const std::string_view last = plan.step.graph->layer(crossing.last);
  if (first.empty() || last.empty()) return {};
  return first == last ? fmt::format(" of {}", first) : fmt::format(" of {} to {}", first, last);
}

std::string bytes_each_way(const Crossing& crossing) {
  if (crossing.up == crossing.down) return fmt::format("{} each way", format_bytes(crossing.up));
  if (crossing.down == Bytes()) return fmt::format("{} up", format_bytes(crossing.up));
  if (crossing.up == Bytes()) return fmt::format("{} down", format_bytes(crossing.down));
  return fmt::format("{} up and {} down", format_bytes(crossing.up), format_bytes(crossing.down));
}

void describe_crossings(const Plan& plan, std::vector<std::string>& parts) {
  std::array<Crossing, moved_names.size()> crossings;
  for (const Transfer& transfer : plan.transfers) {
    const Storage& storage = plan.storage(transfer.storage);
    if (storage.persistence == Persistence::from_host) continue;  // inputs have to come
    note(plan, transfer, crossings[static_cast<std::size_t>(kind_of(storage.storage_class))]);
  }
  for (std::size_t kind = 0; kind < crossings.size(); ++kind) {
    const Crossing& crossing = crossings[kind];
    if (crossing.storages.empty()) continue;
    const bool one = crossing.storages.size() == 1;
    const bool swaps = crossing.up > Bytes() && crossing.down > Bytes();
    parts.push_back(fmt::format("{} {} {}{}, {}", swaps ? "swaps" : "copies",
                                crossing.storages.size(),
                                one ? moved_names[kind] : moved_plurals[kind],
                                layers_of(plan, crossing), bytes_each_way(crossing)));
  }
}

/// Nodes of one kind.
struct NodeCounts {
  std::int64_t all = 0, on_cpu = 0;
  std::int64_t beside = 0;  ///< of those on the CPU: while the GPU goes on
};

void describe_cpu_nodes(const NodeCounts& counts, std::string_view what,
                        std::vector<std::string>& parts) {
  if (counts.on_cpu == 0) return;
  std::string part = fmt::format("runs {} of {} {} on the CPU", counts.on_cpu, counts.all, what);
  if (counts.beside == counts.on_cpu) {
    part += ", beside the GPU";
  } else if (counts.beside > 0) {
    part += fmt::format(", {} of them beside the GPU", counts.beside);
  }
  parts.push_back(std::move(part));
}

void describe_cpu_nodes(const Plan& plan, std::vector<std::string>& parts) {
  NodeCounts updates, others;
  const std::vector<bool> beside = nodes_beside_gpu(plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool update = plan.step.graph->nodes[i].phase == Phase::update;
    NodeCounts& counts = update ? updates : others;
    ++counts.all;
    if (device_of(plan, plan.nodes[i]) != Device::cpu) continue;
    ++counts.on_cpu;
    if (beside[i]) ++counts.beside;
  }
  describe_cpu_nodes(others, "kernels", parts);
  describe_cpu_nodes(updates, "updates", parts);
}

}  // namespace

std::string plan_in_words(const Plan& plan) {
  std::vector<std::string> parts;
  const LoweringSettings& settings = plan.step.graph->settings;
  if (settings.micro_batches > 1) {
    parts.push_back(
        fmt::format("takes the batch in {} parts of {}", settings.micro_batches, plan.step.batch));
    if (const int segments = segment_count(*plan.step.graph); segments > 1) {
      parts.back() += fmt::format(
          ", all of them through one of {} segments of the network before the next", segments);
    }
  }
  describe_crossings(plan, parts);
  describe_cpu_nodes(plan, parts);
  const auto count = std::ranges::count(settings.recomputed, "", &RecomputedValue::before);
  if (count > 0) {
    parts.push_back(fmt::format("makes {} value{} of the forward pass again in backward", count,
                                count == 1 ? "" : "s"));
  }
  if (settings.early_updates) {
    parts.emplace_back("updates each parameter as soon as its gradient is whole");
  }
  if (!settings.order.empty() && settings.micro_batches == 1) {
    parts.emplace_back("runs its kernels in an order with a lower peak");
  }
  if (parts.empty()) return "keeps everything on the GPU";
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace stowage
