// What values come to on several cards, where the cards share the runs that are the same for them.
//
//   SizedSteps + card -> SharedRuns -> ValueRun, as run_of_steps has it
//
// PyTorch's allocator asks what a card has only when the driver refuses: a run where nothing is
// refused serves every card that leaves it that much (estimator/check/roomy_runs.hpp). Where the
// tensors alone are more than a card has, the step does not complete, and no run is needed.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "answers/sizing/value_search.hpp"
#include "estimator/check/roomy_runs.hpp"

namespace stowage {

/// Not for concurrent use.
class SharedRuns {
 public:
  /// `card` outlives this, and has the same `settings` each time.
  [[nodiscard]] ValueRun of(const std::shared_ptr<const SizedSteps>& sized, const Card& card,
                            const CheckSettings& settings);

 private:
  /// A step's run beside some buffers, with all the memory that it wants.
  struct RoomyStep {
    std::vector<RuntimeBuffer> buffers;
    RoomyRun run;
    Bytes most_live;  ///< tensors, rounded as the allocator does
  };
  struct Known {
    std::shared_ptr<const SizedSteps> sized;
    std::vector<std::vector<RoomyStep>> steps;  ///< by step: those beside different buffers
  };
  /// Whatever the sizes.
  struct GraphOnCard {
    std::shared_ptr<const StepGraph> graph;
    bool is_served = false;  ///< RoomyRuns::serves; else nothing below is filled
    Bytes limit, outside, usual_margin;
    std::vector<RuntimeBuffer> buffers;
  };

  [[nodiscard]] ValueRun run_of(const SizedStep& step, std::vector<RoomyStep>& known,
                                const Card& card, const CheckSettings& settings);
  [[nodiscard]] const RoomyStep& roomy(const SizedStep& step, std::vector<RoomyStep>& known,
                                       const std::vector<RuntimeBuffer>& buffers,
                                       const CheckSettings& settings);
  [[nodiscard]] const GraphOnCard& on_card(const std::shared_ptr<const StepGraph>& graph,
                                           const Card& card, const CheckSettings& settings);
  [[nodiscard]] const std::vector<Touches>& touches_of(const StepGraph& graph);

  std::map<const SizedSteps*, Known> runs_;
  std::map<std::pair<const StepGraph*, const Card*>, GraphOnCard> graphs_;
  std::map<const StepGraph*, std::vector<Touches>> touches_;  // of graphs_
};

}  // namespace stowage
