// The functions behind the sub-commands, one a source of the same name. Each takes what it is asked
// as values (request.hpp).
#pragma once

#include "cli/options/command.hpp"
#include "cli/options/request.hpp"

namespace stowage {

[[nodiscard]] Result<Answer> run_check(const CheckRequest& request);
[[nodiscard]] Result<Answer> run_batch(const BatchRequest& request);
[[nodiscard]] Result<Answer> run_lower(const LowerRequest& request);
[[nodiscard]] Result<Answer> run_planning(const PlanningRequest& request);
[[nodiscard]] Result<Answer> run_validate(const ValidateRequest& request);
[[nodiscard]] Result<Answer> run_explain(const ExplainRequest& request);
[[nodiscard]] Result<Answer> run_diff(const DiffRequest& request);
[[nodiscard]] Result<Answer> run_export(const ExportRequest& request);
[[nodiscard]] Result<Answer> run_probe(const ProbeRequest& request);
[[nodiscard]] Result<Answer> run_summary(const SummaryRequest& request);
[[nodiscard]] Result<Answer> run_models(const CatalogueRequest& request);
[[nodiscard]] Result<Answer> run_gpus(const CatalogueRequest& request);
[[nodiscard]] Result<Answer> run_ops(const TopicRequest& request);
[[nodiscard]] Result<Answer> run_help(const TopicRequest& request);

}  // namespace stowage
