// The functions behind the sub-commands, one a source of the same name. Each takes what it is asked
// as values (request.hpp), has the room `answers` answer it, and renders the answer.
#pragma once

#include "cli/options/command.hpp"
#include "cli/options/request.hpp"

namespace stowage {

[[nodiscard]] Result<RenderedAnswer> run_check(const CheckRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_batch(const BatchRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_lower(const LowerRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_planning(const PlanningRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_validate(const ValidateRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_explain(const ExplainQuestion& question);
[[nodiscard]] Result<RenderedAnswer> run_diff(const DiffRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_export(const ExportRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_probe(const ProbeRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_summary(const SummaryQuestion& question);
[[nodiscard]] Result<RenderedAnswer> run_models(const CatalogueRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_gpus(const CatalogueRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_ops(const TopicRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_completion(const CatalogueRequest& request);
[[nodiscard]] Result<RenderedAnswer> run_help(const TopicRequest& request);

}  // namespace stowage
