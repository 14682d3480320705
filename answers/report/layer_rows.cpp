#include "answers/report/layer_rows.hpp"

#include <map>
#include <string_view>

namespace stowage {

std::vector<LayerRow> layer_rows(const StepDocument& document, std::int64_t batch,
                                 const MemoryOverStep& memory) {
  std::vector<LayerRow> rows;
  std::map<std::string_view, std::size_t> row_of;  // by the layer's path
  rows.reserve(document.layers.size() + 1);
  for (const Layer& layer : document.layers) {
    row_of.emplace(layer.name, rows.size());
    LayerRow row{.name = layer.name, .op = layer.op, .parameters = layer.parameters};
    if (document.has_costs) {
      row.flops = layer.flops.real_at(batch);
      row.saved = Bytes(layer.saved_bytes.at(batch));
    }
    row.output = at_batch(layer.output, batch);
    rows.push_back(std::move(row));
  }
  for (const Origin& origin : memory.graph->origins) {
    const auto found = row_of.find(origin.layer);
    if (found != row_of.end() && rows[found->second].place.empty()) {
      rows[found->second].place = origin.place;
    }
  }
  Bytes elsewhere;
  for (const LiveTensor& tensor : memory.tensors) {
    if (!tensor.nodes.contains(memory.peak)) continue;
    const auto found = row_of.find(layer_of(memory, tensor));
    (found == row_of.end() ? elsewhere : rows[found->second].at_peak) += tensor.bytes;
  }
  if (elsewhere > Bytes()) rows.push_back({.at_peak = elsewhere});
  return rows;
}

}  // namespace stowage
