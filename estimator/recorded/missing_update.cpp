#include "estimator/recorded/missing_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/document/check_step_graph.hpp"
#include "estimator/step/step_builder.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

bool is_listed(const StepDocument& document, ParameterId id) {
  return std::ranges::binary_search(document.not_updated, id);
}

/// Whether the step writes a trained parameter that is not listed.
bool updates_any(const StepDocument& document) {
  return std::ranges::any_of(document.graph->storages, [&](const Storage& storage) {
    return storage.storage_class == StorageClass::parameter && storage.carries_over &&
           storage.parameter.valid() && document.parameters[storage.parameter.index()].trainable &&
           !is_listed(document, storage.parameter);
  });
}

/// Views of the parameters to be updated, by ParameterId. One that shares a storage with another
/// (the weights of a recurrent layer) has none of its own in the file: it gets its gradient's
/// storage as a stand-in, marked as a view.
std::vector<TensorView> parameter_views(const StepDocument& document) {
  const StepGraph& graph = *document.graph;
  std::vector<TensorView> views(document.parameters.size());
  for (const ParameterId id : document.not_updated) {
    const TensorType& type = document.parameters[id.index()].type;
    TensorView& view = views[id.index()];
    view = contiguous_view(graph.gradients[id.index()].storage, type.shape, type.type);
    view.is_view = true;
  }
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    if (storage.storage_class != StorageClass::parameter || !storage.parameter.valid()) continue;
    TensorView& view = views[storage.parameter.index()];
    if (!view.storage.valid()) continue;
    view.storage = StorageId::of(i);
    view.is_view = false;
  }
  return views;
}

/// Why the state of a listed parameter cannot be added.
std::optional<Diagnostic> addition_problem(const StepDocument& document) {
  const StepGraph& graph = *document.graph;
  const auto name = [&](ParameterId id) { return document.parameters[id.index()].name; };
  for (const ParameterId id : document.not_updated) {
    if (graph.gradients[id.index()].storage.valid()) continue;
    return Diagnostic{
        .message = fmt::format("no update of '{}' can be added: its gradient is not kept in .grad",
                               name(id)),
        .hint = "record a function that updates it"};
  }
  for (const Storage& storage : graph.storages) {
    if (storage.storage_class != StorageClass::optimizer_state || !storage.parameter.valid() ||
        !is_listed(document, storage.parameter)) {
      continue;
    }
    return Diagnostic{.message = fmt::format("an optimizer's state of '{}' is in the step already, "
                                             "from an earlier call that updated it",
                                             name(storage.parameter)),
                      .hint = "record a function that updates it in each call"};
  }
  return std::nullopt;
}

/// Gives the elements from `first` on names that no earlier one has.
template <typename Named>
void make_names_unique(std::vector<Named>& all, std::size_t first) {
  std::unordered_set<std::string> taken;
  for (std::size_t i = 0; i < first; ++i) taken.insert(all[i].name);
  for (std::size_t i = first; i < all.size(); ++i) {
    const std::string name = all[i].name;
    for (int number = 2; !taken.insert(all[i].name).second; ++number) {
      all[i].name = fmt::format("{}~{}", name, number);
    }
  }
}

/// The graph with the update appended. `updates_others`: the step has an optimizer of its own.
StepGraph updated_graph(const StepDocument& document, const OptimizerSettings& optimizer,
                        bool updates_others) {
  const std::vector<TensorView> views = parameter_views(document);
  StepGraph graph = *document.graph;
  const std::size_t storages = graph.storages.size(), nodes = graph.nodes.size();

  // lower_update updates what has a gradient, by the optimizer of the settings.
  for (std::size_t i = 0; i < graph.gradients.size(); ++i) {
    if (!is_listed(document, ParameterId::of(i))) graph.gradients[i] = {};
  }
  graph.settings.optimizer = optimizer;
  ModelGraph model;  // lower_update reads its parameters alone
  model.parameters = document.parameters;
  lower_update(graph, model, views);
  graph.gradients = document.graph->gradients;
  if (updates_others) graph.settings.optimizer = document.graph->settings.optimizer;

  make_names_unique(graph.storages, storages);
  make_names_unique(graph.nodes, nodes);
  std::vector<TensorView> stand_ins;
  std::ranges::copy_if(views, std::back_inserter(stand_ins), &TensorView::is_view);
  const auto is_stand_in = [&](const TensorView& view) {
    return std::ranges::find(stand_ins, view) != stand_ins.end();
  };
  for (std::size_t i = nodes; i < graph.nodes.size(); ++i) {
    std::erase_if(graph.nodes[i].reads, is_stand_in);
    std::erase_if(graph.nodes[i].writes, is_stand_in);
  }
  for (const ParameterId id : document.not_updated) {
    const TensorView& view = views[id.index()];
    if (!view.is_view) graph.storages[view.storage.index()].carries_over = true;
  }
  return graph;
}

}  // namespace

std::optional<MissingUpdate> missing_update(const StepDocument& document) {
  if (document.not_updated.empty()) return std::nullopt;
  MissingUpdate missing{.is_whole = !updates_any(document)};
  for (const ParameterId id : document.not_updated) {
    const TensorType& type = document.parameters[id.index()].type;
    ++missing.parameters;
    missing.bytes += Bytes(element_count(type.shape).constant) * element_size(type.type);
  }
  return missing;
}

Result<StepDocument> with_update(StepDocument document, const OptimizerSettings& optimizer) {
  if (auto problem = addition_problem(document)) return failure(*std::move(problem));
  try {
    document.graph = std::make_shared<const StepGraph>(
        updated_graph(document, optimizer, updates_any(document)));
  } catch (const ArithmeticOverflow&) {
    return failure(fmt::format("the sizes of an update by {} go past 64 bits", optimizer.name));
  }
  document.not_updated.clear();
  const auto batch = document.fixed_batch ? document.batch : std::nullopt;
  if (auto found = step_graph_problem(*document.graph, document.parameters, batch)) {
    return failure(*std::move(found));
  }
  return document;
}

}  // namespace stowage
