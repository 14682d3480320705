// Measurement: what a training job took on a card, as somebody measured it, and the job itself as
// far as it was recorded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/precision.hpp"
#include "estimator/model/fine_tuning.hpp"
#include "estimator/optimizer/optimizer_settings.hpp"

namespace stowage::accuracy {

struct Job {
  std::string model;        ///< a name of configs/models, or the path of a description
  std::string description;  ///< the description itself, where there is no file of it
  std::map<std::string, std::string> arguments = {};
  std::optional<std::int64_t> seq = {};
  std::string gpu;  ///< a name of configs/gpus
  std::int64_t batch = 1;
  std::string optimizer = "adam";
  double weight_decay = 0;
  OptimizerImplementation implementation = OptimizerImplementation::usual;
  Precision precision = Precision::fp32;
  int micro_batches = 1;
  bool checkpointing = false;
  FineTuningTexts fine_tuning = {};
  bool cudnn_benchmark = false;
  int prefetched = 0;  ///< batches that the loader has put on the GPU ahead of the step
};

struct Measurement {
  std::string model;  ///< as the data name it; the halves are parted by it
  Job job;
  double measured_mib = 0;           ///< on the device, as nvidia-smi shows it
  std::optional<double> others_mib;  ///< what the data's own competitor predicts
};

/// What a process takes outside its allocator is the machine's and the software's. Where it was not
/// measured it is fitted on one half of the rows of that machine and judged on the other.
struct DataSet {
  std::string name;
  std::string machine;                ///< sets of one machine share what is fitted
  std::string about;                  ///< source, card, what is not recorded
  std::string competitor;             ///< whose figures others_mib are; "" where there are none
  std::optional<double> context_mib;  ///< of that machine, where it was measured
  std::vector<Measurement> rows;
};

/// FNV-1a of the model's name: an odd one is judged, an even one is fitted on.
[[nodiscard]] bool is_judged(const std::string& model);

}  // namespace stowage::accuracy
