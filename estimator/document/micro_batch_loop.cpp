#include "estimator/document/micro_batch_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace stowage {

namespace {

constexpr std::string_view placeholder = "@#";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string with_number(const std::string& name, int micro_batch) {
  std::size_t at = name.find(placeholder);
  if (at == std::string::npos) return name;
  const std::string number = fmt::format("@{}", micro_batch);
  std::string result = name;
  while (at != std::string::npos) {
    result.replace(at, placeholder.size(), number);
    at = result.find(placeholder, at + number.size());
  }
  return result;
}

template <typename AnyId>
void move(AnyId& id, const RepeatedRows& rows, int repetition) {
  if (id.value >= rows.first && id.value - rows.first < rows.count) {
    id.value += repetition * rows.count;
  }
}

const std::int64_t* seed_of(const KernelNode& node) {
  for (const auto& [name, value] : node.attributes.entries()) {
    if (name == "seed") return std::get_if<std::int64_t>(&value);
  }
  return nullptr;
}

/// The difference between the seeds of the second repetition and the first.
std::int64_t seed_step(const StepGraph& graph, const RepeatedRows& rows) {
  for (std::int32_t i = rows.first; i < rows.first + rows.count; ++i) {
    const std::int64_t* first = seed_of(graph.nodes[static_cast<std::size_t>(i)]);
    const std::int64_t* second = seed_of(graph.nodes[static_cast<std::size_t>(i + rows.count)]);
    if (first == nullptr || second == nullptr) continue;
    return std::clamp<std::int64_t>(*second - *first, 0, largest_seed_step);
  }
  return 0;
}

/// The micro-batch in a name: the number after the last '@'.
std::optional<int> micro_batch_in(const std::string& name) {
  const std::size_t at = name.rfind('@');
  if (at == std::string::npos) return std::nullopt;
  int number = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, failed] = std::from_chars(name.data() + at + 1, end, number);
  if (failed != std::errc()) return std::nullopt;
  return number;
}

/// The first row of each micro-batch, and the end of the last one's.
struct Begins {
  std::vector<std::int32_t> first;  // by micro-batch; -1: it has no rows
  std::int32_t end = 0;
};

Begins node_begins(const StepGraph& graph) {
  Begins begins{.first = std::vector<std::int32_t>(
                    static_cast<std::size_t>(graph.settings.micro_batches), -1)};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    if (node.phase == Phase::update) continue;
    std::int32_t& first = begins.first[static_cast<std::size_t>(node.micro_batch)];
    if (first < 0) first = static_cast<std::int32_t>(i);
    begins.end = static_cast<std::int32_t>(i) + 1;
  }
  return begins;
}

// A storage's micro-batch is known only from its name. All rows are compared anyway.
Begins storage_begins(const StepGraph& graph) {
  Begins begins{.first = std::vector<std::int32_t>(
                    static_cast<std::size_t>(graph.settings.micro_batches), -1),
                .end = static_cast<std::int32_t>(graph.storages.size())};
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const std::optional<int> micro_batch = micro_batch_in(graph.storages[i].name);
    if (!micro_batch || *micro_batch >= graph.settings.micro_batches) continue;
    std::int32_t& first = begins.first[static_cast<std::size_t>(*micro_batch)];
    if (first < 0) first = static_cast<std::int32_t>(i);
  }
  return begins;
}

/// The number of rows of micro-batch `from`, if all later ones have as many.
std::optional<RepeatedRows> alike_from(const Begins& begins, std::size_t from) {
  const RepeatedRows rows{begins.first[from], begins.first[from + 1] - begins.first[from]};
  if (rows.first < 0 || rows.count <= 0) return std::nullopt;
  for (std::size_t i = from; i < begins.first.size(); ++i) {
    const auto expected = rows.first + static_cast<std::int64_t>(i - from) * rows.count;
    if (begins.first[i] != expected || expected + rows.count > begins.end) return std::nullopt;
  }
  return rows;
}

bool is_same(const StepGraph&, const StorageRow& a, const StorageRow& b) { return a == b; }

// Each node has its own convolution call, so the calls are compared, not their numbers.
bool is_same(const StepGraph& graph, KernelNode a, const KernelNode& b) {
  if (a.convolution >= 0 && b.convolution >= 0 &&
      graph.convolutions[static_cast<std::size_t>(a.convolution)] ==
          graph.convolutions[static_cast<std::size_t>(b.convolution)]) {
    a.convolution = b.convolution;
  }
  return a == b;
}

template <typename Written>
std::vector<FoundLoop::Exception> exceptions(const StepGraph& graph,
                                             const std::vector<Written>& all,
                                             const RepeatedRows& rows, const MicroBatchLoop& loop) {
  std::vector<FoundLoop::Exception> found;
  for (std::int32_t i = 0; i < rows.count; ++i) {
    Written written = all[static_cast<std::size_t>(rows.first + i)];
    written.name = name_in_loop(written.name, loop.micro_batch);
    for (int k = 0; k < loop.times; ++k) {
      const Written& actual = all[static_cast<std::size_t>(rows.first + k * rows.count + i)];
      if (!is_same(graph, repeated(written, loop, k), actual)) found.push_back({k, i});
    }
  }
  return found;
}

}  // namespace

std::string name_in_loop(const std::string& name, int micro_batch) {
  const std::string number = fmt::format("@{}", micro_batch);
  std::string result;
  std::size_t begin = 0;
  for (std::size_t at = name.find(number); at != std::string::npos; at = name.find(number, begin)) {
    const std::size_t end = at + number.size();
    const bool whole = end == name.size() || !is_digit(name[end]);
    result.append(name, begin, at - begin).append(whole ? placeholder : number);
    begin = end;
  }
  return result.append(name, begin);
}

std::vector<StorageRow> storage_rows(const StepGraph& graph) {
  std::vector<StorageRow> rows;
  rows.reserve(graph.storages.size());
  ScriptHolds::Cursor holds(graph.script_holds);
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    rows.push_back({graph.storages[i], holds.advance_to(StorageId::of(i))});
  }
  return rows;
}

StorageRow repeated(const StorageRow& written, const MicroBatchLoop& loop, int repetition) {
  StorageRow row = written;
  row.name = with_number(written.name, loop.micro_batch + repetition);
  ScriptHold& hold = row.hold;
  for (NodeId* id : {&hold.loaded_before, &hold.first_made_by, &hold.replaced_after}) {
    move(*id, loop.nodes, repetition);
  }
  return row;
}

KernelNode repeated(const KernelNode& written, const MicroBatchLoop& loop, int repetition) {
  KernelNode node = written;
  node.name = with_number(written.name, loop.micro_batch + repetition);
  if (node.phase != Phase::update) node.micro_batch += repetition;
  if (const std::int64_t* seed = seed_of(written); seed != nullptr && loop.seed != 0) {
    // Unsigned, so that it may wrap around.
    const auto moved =
        static_cast<std::uint64_t>(*seed) +
        static_cast<std::uint64_t>(loop.seed) * static_cast<std::uint64_t>(repetition);
    node.attributes.set("seed", static_cast<std::int64_t>(moved));
  }
  for (auto* views : {&node.reads, &node.writes}) {
    for (TensorView& view : *views) move(view.storage, loop.storages, repetition);
  }
  for (auto* ids : {&node.temporaries, &node.holds}) {
    for (StorageId& id : *ids) move(id, loop.storages, repetition);
  }
  return node;
}

std::optional<FoundLoop> find_loop(const StepGraph& graph) {
  constexpr std::size_t from = 1;  // the first micro-batch makes what the later ones add to
  const auto micro_batches = static_cast<std::size_t>(graph.settings.micro_batches);
  if (micro_batches < from + 2 || !graph.settings.order.empty()) return std::nullopt;
  const auto nodes = alike_from(node_begins(graph), from);
  const auto storages = alike_from(storage_begins(graph), from);
  if (!nodes || !storages) return std::nullopt;
  FoundLoop found;
  found.loop = {.micro_batch = static_cast<int>(from),
                .times = static_cast<int>(micro_batches - from),
                .storages = *storages,
                .nodes = *nodes,
                .seed = seed_step(graph, *nodes)};
  found.nodes = exceptions(graph, graph.nodes, *nodes, found.loop);
  found.storages = exceptions(graph, storage_rows(graph), *storages, found.loop);
  // The written rows themselves need no exception, unless a name contains the placeholder's
  // characters.
  const auto in_written = [](const FoundLoop::Exception& e) { return e.repetition == 0; };
  if (std::ranges::any_of(found.nodes, in_written)) return std::nullopt;
  if (std::ranges::any_of(found.storages, in_written)) return std::nullopt;
  const std::size_t rows = graph.nodes.size() + graph.storages.size();
  if (found.nodes.size() + found.storages.size() > rows / 4) return std::nullopt;
  return found;
}

}  // namespace stowage
