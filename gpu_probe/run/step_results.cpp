#include "gpu_probe/run/step_results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "gpu_probe/run/float_elements.hpp"

namespace stowage {
namespace {

/// The last node that writes each storage, by StorageId; -1: none does. Updates count only with
/// `updates_too`.
std::vector<std::int32_t> last_writers(const StepGraph& graph, bool updates_too) {
  std::vector<std::int32_t> last(graph.storages.size(), -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].phase == Phase::update && !updates_too) continue;
    for (const TensorView& view : graph.nodes[i].writes) {
      last[view.storage.index()] = static_cast<std::int32_t>(i);
    }
  }
  return last;
}

/// The type in which each storage is written, by StorageId; float32 for storages that no node
/// writes.
std::vector<DataType> written_types(const StepGraph& graph) {
  std::vector<DataType> types(graph.storages.size(), DataType::float32);
  for (const KernelNode& node : graph.nodes) {
    for (const TensorView& view : node.writes) types[view.storage.index()] = view.type;
  }
  return types;
}

ResultKind kind_of(StorageClass storage_class) {
  if (storage_class == StorageClass::parameter) return ResultKind::parameter;
  if (storage_class == StorageClass::buffer) return ResultKind::buffer;
  return ResultKind::optimizer_state;
}

}  // namespace

std::vector<ResultPlace> results_of(const StepGraph& graph) {
  const auto written = last_writers(graph, true), computed = last_writers(graph, false);
  std::vector<ResultPlace> places;
  const auto add = [&](const TensorView& view, ResultKind kind) {
    if (!view.storage.valid() || computed[view.storage.index()] < 0) return;
    places.push_back({view.storage, kind, view.type, computed[view.storage.index()]});
  };
  if (graph.settings.mode == Mode::inference) add(graph.output, ResultKind::output);
  for (const TensorView& loss : graph.losses) add(loss, ResultKind::loss);
  for (const TensorView& gradient : graph.gradients) add(gradient, ResultKind::gradient);
  const auto end = static_cast<std::int32_t>(graph.nodes.size());
  const std::vector<DataType> types = written_types(graph);
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    if (storage.persistence != Persistence::persistent || written[i] < 0) continue;
    const StorageId id = StorageId::of(i);
    places.push_back({id, kind_of(storage.storage_class), types[i], end});
  }
  std::sort(places.begin(), places.end(), [](const ResultPlace& a, const ResultPlace& b) {
    return std::tuple(a.after, a.storage) < std::tuple(b.after, b.storage);
  });
  return places;
}

StepResults losses_of(const StepGraph& graph, const StepResults& results) {
  StepResults losses;
  for (const TensorView& loss : graph.losses) {
    if (const auto found = results.find(loss.storage); found != results.end())
      losses.insert(*found);
  }
  return losses;
}

std::optional<double> mean_loss(const StepGraph& graph, const StepResults& results) {
  double sum = 0;
  for (const TensorView& loss : graph.losses) {
    const auto found = results.find(loss.storage);
    if (!is_floating_point(loss.type) || found == results.end()) return std::nullopt;
    const FloatElements value(found->second, loss.type);
    if (value.size() == 0) return std::nullopt;
    sum += value[0];
  }
  if (graph.losses.empty()) return std::nullopt;
  return sum / static_cast<double>(graph.losses.size());
}

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// How far one tensor of two executions is apart.
struct TensorDifference {
  std::string name;
  double absolute = 0, magnitude = 0;
};

void compare_floats(const FloatElements& actual, const FloatElements& expected,
                    const std::vector<bool>& ignored, TensorDifference& tensor,
                    Difference& result) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = actual[i], e = expected[i];
    result.finite = result.finite && std::isfinite(e);
    tensor.magnitude = std::max(tensor.magnitude, std::abs(e));
    const double apart = std::abs(a - e);
    if (i < ignored.size() && ignored[i] && std::isfinite(apart)) {
      ++result.ignored;
      continue;
    }
    tensor.absolute = std::isfinite(apart) ? std::max(tensor.absolute, apart) : infinite;
  }
}

}  // namespace

Difference difference(const StepGraph& graph, const std::vector<ResultPlace>& places,
                      ResultKind kind, const StepResults& actual, const StepResults& expected,
                      const std::map<StorageId, std::vector<bool>>& ignored) {
  Difference result;
  std::vector<TensorDifference> tensors;
  double largest = 0;
  for (const ResultPlace& place : places) {
    if (place.kind != kind) continue;
    ++result.tensors;
    const auto a = actual.find(place.storage), e = expected.find(place.storage);
    TensorDifference tensor{.name = graph.storage(place.storage).name};
    const bool is_there =
        a != actual.end() && e != expected.end() && a->second.size() == e->second.size();
    const bool is_equal = is_there && a->second == e->second;
    if (is_there && is_floating_point(place.type)) {
      const auto mask = ignored.find(place.storage);
      compare_floats({a->second, place.type}, {e->second, place.type},
                     mask == ignored.end() ? std::vector<bool>() : mask->second, tensor, result);
    } else if (!is_equal) {
      tensor.absolute = infinite;
    }
    if (tensor.absolute > 0 || !is_equal) ++result.unequal;
    largest = std::max(largest, tensor.magnitude);
    tensors.push_back(std::move(tensor));
  }
  for (const TensorDifference& tensor : tensors) {
    const double magnitude = std::max(tensor.magnitude, small_share * largest);
    double relative = 0;
    if (tensor.absolute > 0) relative = magnitude > 0 ? tensor.absolute / magnitude : infinite;
    if (relative > result.relative || result.worst.empty()) result.worst = tensor.name;
    result.absolute = std::max(result.absolute, tensor.absolute);
    result.relative = std::max(result.relative, relative);
  }
  return result;
}

std::string plural(ResultKind kind) {
  switch (kind) {
    case ResultKind::output:
      return "outputs";
    case ResultKind::loss:
      return "losses";
    case ResultKind::gradient:
      return "gradients";
    case ResultKind::parameter:
      return "updated parameters";
    case ResultKind::optimizer_state:
      return "optimizer state";
    case ResultKind::buffer:
      return "running statistics";
  }
  return "";
}

}  // namespace stowage
