// PlanQuestion: which step is planned, for which card, host and budget, and what plans may do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "estimator/base/batch.hpp"
#include "estimator/serving/serving_settings.hpp"
#include "planner/problem/levers.hpp"
#include "planner/problem/step_pins.hpp"

namespace stowage {

/// What the chosen plan has least of, where none is named.
enum class PlanAim {
  automatic,  ///< nothing, if everything fits on the GPU: that is taken; else the step's time
  time,
  pcie,  ///< bytes over PCIe
};

/// The most that PlanQuestion::effort may be.
inline constexpr int most_effort = 1024;

/// The host that stands for this machine.
inline constexpr std::string_view this_machine = "here";

struct PlanQuestion {
  StepQuestion step;
  std::optional<CardQuestion> card;          ///< absent: `budget` or `budget_share` is given
  std::string calibration;                   ///< a file, also without a card; empty: none
  std::optional<double> compute_capability;  ///< of the generic card that there is without one
  std::optional<WholeBatch> batch;           ///< absent: a step file's own, or 1
  std::optional<ServingSettings> serving;    ///< there: prefill and decode of it, without `batch`
  std::optional<Bytes> budget;               ///< for the arena; absent: all that the card leaves
  std::optional<double> budget_share;        ///< of the least arena with everything on the GPU
  std::string budget_source = "given";       ///< what a plan's file says of a bare budget's origin
  std::string host;                          ///< a file, or `this_machine`; empty: the generic one
  std::optional<Bytes> host_memory;  ///< in place of the host's own; half of it may be pinned
  std::string choice;                ///< a proposal's name; empty: the best that changes nothing
  Levers levers;
  PlanAim minimised = PlanAim::automatic;
  /// More than 1: searches longer and never finds less (planner/propose/plan_request.hpp).
  int effort = 1;
  /// Stops each search by the clock; none: what is found depends on no machine.
  std::optional<double> time_limit_seconds = {};
  PinRequest pins;  ///< over those that a description has
  bool run_on_host = false;
  std::string stowage_version;  ///< what a plan's file says of its origin
};

}  // namespace stowage
