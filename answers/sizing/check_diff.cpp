#include "answers/sizing/check_diff.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>

namespace stowage {

namespace {

/// Bytes before and after, by the layers' names.
using LayerBytes = std::map<std::string, std::pair<Bytes, Bytes>, std::less<>>;

void add_layers(const Footprint& footprint, Bytes std::pair<Bytes, Bytes>::*side,
                LayerBytes& layers) {
  for (const FootprintRow& row : footprint.rows) {
    const std::string layer(footprint.graph->layer(row.entry.op));
    layers[layer].*side += row.bytes;
  }
}

/// Appends those that are not there yet: both sides may have one.
void append_new(const Diagnostics& others, Diagnostics& all) {
  for (const Diagnostic& other : others) {
    const auto is_same = [&](const Diagnostic& one) {
      return render(std::span(&one, 1)) == render(std::span(&other, 1));
    };
    if (std::ranges::none_of(all, is_same)) all.push_back(other);
  }
}

}  // namespace

Bytes distance(const LayerChange& change) {
  return change.before < change.after ? change.after - change.before : change.before - change.after;
}

CheckDiffAnswer compared(CheckAnswer before, CheckAnswer after) {
  CheckDiffAnswer found{.before = std::move(before), .after = std::move(after)};
  found.notes = found.before.notes;
  append_new(found.after.notes, found.notes);
  const Footprint& first = found.before.report.footprint;
  const Footprint& second = found.after.report.footprint;
  for (std::size_t i = 0; i < first.by_class.size(); ++i) {
    if (first.by_class[i] == Bytes() && second.by_class[i] == Bytes()) continue;
    found.classes.push_back({static_cast<StorageClass>(i), first.by_class[i], second.by_class[i]});
  }
  LayerBytes layers;
  add_layers(first, &std::pair<Bytes, Bytes>::first, layers);
  add_layers(second, &std::pair<Bytes, Bytes>::second, layers);
  for (const auto& [name, bytes] : layers) {
    if (bytes.first == bytes.second) {
      ++found.same_layers;
    } else {
      found.layers.push_back({name, bytes.first, bytes.second});
    }
  }
  std::ranges::stable_sort(found.layers, std::greater<>(), distance);
  return found;
}

Result<CheckDiffAnswer> answer(const CheckDiffQuestion& question) {
  auto before = answer(question.before);
  auto after = answer(question.after);
  if (!before || !after) {
    Diagnostics mistakes;
    if (!before) mistakes = std::move(before.error());
    if (!after) append_new(after.error(), mistakes);
    return tl::unexpected(std::move(mistakes));
  }
  return compared(*std::move(before), *std::move(after));
}

}  // namespace stowage
