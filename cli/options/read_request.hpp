// From a command line's words to the command's request. The sources read_*.cpp of this folder, and
// no others, know which option means which field.
//
// Errors, as mistakes of the command line: options that exclude or want each other, and values that
// only their meaning shows to be wrong; a folder of configurations that is not there.
#pragma once

#include "cli/options/arguments.hpp"
#include "cli/options/request.hpp"

namespace stowage {

[[nodiscard]] Result<CheckRequest> read_check_request(const Arguments& arguments);
[[nodiscard]] Result<BatchRequest> read_batch_request(const Arguments& arguments);
[[nodiscard]] Result<LowerRequest> read_lower_request(const Arguments& arguments);
[[nodiscard]] Result<PlanningRequest> read_planning_request(const Arguments& arguments);
[[nodiscard]] Result<ValidateRequest> read_validate_request(const Arguments& arguments);
[[nodiscard]] Result<ExplainQuestion> read_explain_request(const Arguments& arguments);
[[nodiscard]] Result<DiffRequest> read_diff_request(const Arguments& arguments);
[[nodiscard]] Result<ExportRequest> read_export_request(const Arguments& arguments);
[[nodiscard]] Result<SummaryQuestion> read_summary_request(const Arguments& arguments);
[[nodiscard]] Result<ProbeRequest> read_probe_request(const Arguments& arguments);
[[nodiscard]] Result<CatalogueRequest> read_catalogue_request(const Arguments& arguments);
[[nodiscard]] Result<TopicRequest> read_topic_request(const Arguments& arguments);

}  // namespace stowage
