// What a page draws, as JSON: lists of numbers, since a step has thousands of kernels and tensors.
#pragma once

#include <span>

#include "answers/report/layer_rows.hpp"
#include "answers/report/plan_pages.hpp"
#include "answers/report/sizing_pages.hpp"
#include "answers/report/step_memory.hpp"
#include "cli/output/json_value.hpp"
#include "cli/report/page.hpp"

namespace stowage {

/// So many tensors are listed by name, the largest; the sums by class have all of them.
inline constexpr std::size_t listed_tensors = 6000;

/// {nodes, phases, layers, classes, reserved, peak, tensors, folded}. A quantity over the nodes is
/// a list of changes: a node, the value from there on, the next node, and so on.
/// `with_nodes`: false: without names, layers and phases of the nodes, which another picture of the
/// same step has.
[[nodiscard]] Json memory_json(const MemoryOverStep& memory, bool with_nodes = true);
[[nodiscard]] Json layers_json(std::span<const LayerRow> rows, bool has_costs);
[[nodiscard]] Json curve_json(std::span<const CurvePoint> curve);

/// The pages of check, batch and plan. `answer`: the same answer, rendered.
[[nodiscard]] PageContent page_of(const CheckPage& page, const RenderedAnswer& answer);
[[nodiscard]] PageContent page_of(const BatchPage& page, const RenderedAnswer& answer);
/// `frontier`: null: none was asked for.
[[nodiscard]] PageContent page_of(const PlanPage& page, const PlanAnswer& found,
                                  const Frontier* frontier, const RenderedAnswer& answer);
[[nodiscard]] PageContent page_of(const PytorchPlanPage& page, const PytorchAnswer& found,
                                  const RenderedAnswer& answer);
/// Of a question that no plan answers: the answer alone.
[[nodiscard]] PageContent page_without_plan(const PlanRequest& request,
                                            const RenderedAnswer& answer);

}  // namespace stowage
