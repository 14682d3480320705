#include "cli/report/picture_json.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

template <typename Value, typename Shown>
Json::Array changes(std::span<const Value> values, Shown shown) {
  Json::Array list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && values[i] == values[i - 1]) continue;
    list.emplace_back(static_cast<std::int64_t>(i));
    list.emplace_back(shown(values[i]));
  }
  return list;
}

Json::Array bytes_changes(const std::vector<Bytes>& values) {
  return changes(std::span<const Bytes>(values), [](Bytes bytes) { return Json(bytes); });
}

/// Layers by path, each once, in the order in which they are first asked for; -1: none.
class LayerTable {
 public:
  explicit LayerTable(const StepGraph& graph) : graph_(graph) {}

  Json index_of(OperatorId op) {
    if (!op.valid()) return -1;
    const Origin& origin = graph_.origins[op.index()];
    const auto [at, is_new] = index_.try_emplace(origin.layer, std::ssize(rows_));
    if (is_new) rows_.emplace_back(Json::Array{origin.layer, origin.place});
    return at->second;
  }
  [[nodiscard]] Json::Array rows() && { return std::move(rows_); }

 private:
  const StepGraph& graph_;
  std::map<std::string_view, std::int64_t> index_;
  Json::Array rows_;
};

Json::Array phases_json(const StepGraph& graph) {
  std::vector<Phase> phases;
  for (const KernelNode& node : graph.nodes) phases.push_back(node.phase);
  return changes(std::span<const Phase>(phases),
                 [](Phase phase) { return Json(to_string(phase)); });
}

Json::Array nodes_json(const StepGraph& graph, LayerTable& layers) {
  Json::Array names;
  Json::Array of_layers;
  for (const KernelNode& node : graph.nodes) {
    names.emplace_back(node.name);
    of_layers.push_back(layers.index_of(node.op));
  }
  Json::Array both;
  both.emplace_back(std::move(names));
  both.emplace_back(std::move(of_layers));
  return both;
}

/// The largest, in the order of their begins.
std::vector<const LiveTensor*> largest_tensors_of(const MemoryOverStep& memory) {
  std::vector<const LiveTensor*> tensors;
  for (const LiveTensor& tensor : memory.tensors) tensors.push_back(&tensor);
  if (tensors.size() <= listed_tensors) return tensors;
  std::ranges::stable_sort(tensors, std::greater<>(),
                           [](const LiveTensor* tensor) { return tensor->bytes; });
  tensors.resize(listed_tensors);
  std::ranges::sort(tensors);  // they stand in one list, by their begins
  return tensors;
}

}  // namespace

Json memory_json(const MemoryOverStep& memory, bool with_nodes) {
  LayerTable layers(*memory.graph);
  Json::Array nodes = nodes_json(*memory.graph, layers);
  Json::Array classes;
  std::map<std::size_t, std::int64_t> shown_class;
  for (std::size_t c = 0; c < memory.by_class.size(); ++c) {
    const std::vector<Bytes>& bytes = memory.by_class[c];
    if (std::ranges::all_of(bytes, [](Bytes of) { return of == Bytes(); })) continue;
    shown_class.emplace(c, std::ssize(classes));
    classes.emplace_back(Json::Object{{"name", spaced(to_string(static_cast<StorageClass>(c)))},
                                      {"key", to_string(static_cast<StorageClass>(c))},
                                      {"bytes", bytes_changes(bytes)}});
  }
  Json::Array tensors;
  const std::vector<const LiveTensor*> listed = largest_tensors_of(memory);
  for (const LiveTensor* tensor : listed) {
    const auto c = static_cast<std::size_t>(tensor->entry.storage_class);
    tensors.emplace_back(Json::Array{name_of(memory, *tensor), shown_class.at(c),
                                     layers.index_of(tensor->entry.op), tensor->nodes.begin,
                                     tensor->nodes.end, tensor->bytes});
  }
  Json::Object json;
  if (with_nodes) {
    json = {{"node_names", std::move(nodes[0])},
            {"node_layers", std::move(nodes[1])},
            {"phases", phases_json(*memory.graph)}};
  }
  json.emplace_back("layers", std::move(layers).rows());
  json.emplace_back("classes", std::move(classes));
  json.emplace_back("reserved", bytes_changes(memory.reserved));
  json.emplace_back("peak", memory.peak);
  json.emplace_back("tensors", std::move(tensors));
  json.emplace_back("tensors_not_listed", std::ssize(memory.tensors) - std::ssize(listed));
  return json;
}

Json layers_json(std::span<const LayerRow> rows, bool has_costs) {
  Json::Array list;
  for (const LayerRow& row : rows) {
    Json::Array output;
    for (const std::int64_t extent : row.output) output.emplace_back(extent);
    list.emplace_back(Json::Object{{"name", row.name},
                                   {"op", row.op},
                                   {"place", row.place},
                                   {"output", std::move(output)},
                                   {"parameters", row.parameters},
                                   {"flops", has_costs ? Json(row.flops) : Json()},
                                   {"saved_bytes", has_costs ? Json(row.saved) : Json()},
                                   {"peak_bytes", row.at_peak}});
  }
  return list;
}

Json curve_json(std::span<const CurvePoint> curve) {
  Json::Array list;
  for (const CurvePoint& point : curve) {
    list.emplace_back(Json::Object{{"batch", point.batch}, {"device_bytes", point.device_bytes}});
  }
  return list;
}

namespace {

void add_picture(const StepPicture& picture, Json::Object& shown) {
  shown.emplace_back("batch", picture.batch);
  shown.emplace_back("replicas", picture.replicas);
  shown.emplace_back("memory", memory_json(picture.memory));
  shown.emplace_back("room_bytes", picture.room);
  shown.emplace_back("layers", layers_json(picture.layers, picture.has_costs));
}

}  // namespace

PageContent page_of(const CheckPage& page, const RenderedAnswer& answer) {
  const CheckAnswer& found = page.answer;
  PageContent content{.title = describe_step(found.step, found.batch), .answer = answer};
  content.shown = {{"command", "check"}, {"title", content.title}, {"card", found.card.name}};
  add_picture(page.step, content.shown);
  content.shown.emplace_back("curve", curve_json(page.curve));
  content.shown.emplace_back("with_evaluation", found.evaluation.has_value());
  return content;
}

PageContent page_of(const BatchPage& page, const RenderedAnswer& answer) {
  const BatchAnswer& found = page.answer;
  PageContent content{.title = "The largest batch: " + describe_step(found.step, std::nullopt),
                      .answer = answer};
  content.shown = {{"command", "batch"}, {"title", content.title}, {"card", found.card.name}};
  add_picture(page.step, content.shown);
  content.shown.emplace_back("curve", curve_json(page.curve));
  return content;
}

}  // namespace stowage
