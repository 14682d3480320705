// Requests: what a command is asked, as typed values: a question of the room `answers`, and how its
// answer is to be shown. Past read_request.hpp no command knows the names of options.
#pragma once

#include <string>
#include <variant>

#include "answers/exporting/export.hpp"
#include "answers/planning/diff.hpp"
#include "answers/planning/explain.hpp"
#include "answers/planning/plan_question.hpp"
#include "answers/planning/validate.hpp"
#include "answers/sizing/batch.hpp"
#include "answers/sizing/check.hpp"
#include "answers/sizing/check_diff.hpp"
#include "answers/sizing/largest_value.hpp"
#include "answers/sizing/lower.hpp"
#include "answers/sizing/serving.hpp"
#include "answers/sizing/summary.hpp"
#include "answers/table/table.hpp"
#include "cli/options/advice.hpp"
#include "cli/output/report.hpp"

namespace stowage {

struct CheckRequest {
  std::variant<CheckQuestion, ServingQuestion, TableQuestion> question;
  bool verbose = false;
  std::string page;  ///< a file; empty: none. Of a CheckQuestion alone
  TypedWords typed;  ///< to be repeated in advice
};

struct BatchRequest {
  std::variant<BatchQuestion, LargestValueQuestion, TableQuestion> question;
  std::string page;  ///< a file; empty: none. Of a BatchQuestion alone
};

struct LowerRequest {
  LowerQuestion question;
  std::string output;  ///< a file, "-" for stdout; empty: stdout
};

struct PlanningRequest {
  PlanQuestion question;
  bool for_pytorch = false;  ///< it is PyTorch that carries the plan out
  std::string frontier;      ///< a file; empty: none
  std::string page;          ///< a file; empty: none
  bool log_placement = false;
  bool verbose = false;  ///< every bound
  std::string output;    ///< a file, "-" for stdout; empty: nowhere
  TypedWords typed;      ///< to be repeated in advice
};

struct ValidateRequest {
  ValidateQuestion question;
  std::string calibration;  ///< a file for what the run measures; empty: none
};

struct DiffRequest {
  std::variant<DiffQuestion, CheckDiffQuestion> question;
  bool verbose = false;
};

struct ExportRequest {
  ExportQuestion question;
  Format format = Format::table;
  std::string output;  ///< a file, "-" for stdout; empty: stdout
};

struct ProbeRequest {
  ConfigDirectory configs;
  bool calibrate = false;
  int device = 0;
  bool names_device = false;  ///< a GPU is wanted, and not the host alone
  std::string output;         ///< of the calibration: a file; empty: stdout
};

/// models and gpus.
struct CatalogueRequest {
  ConfigDirectory configs;
  std::string filter;  ///< a part of the names that are wanted; empty: all
  TypedWords typed;    ///< to be repeated in advice
};

/// ops and help.
struct TopicRequest {
  bool all = false;   ///< every option of a command, not only the usual ones
  std::string topic;  ///< empty: all
  Format format = Format::table;
};

}  // namespace stowage
