// The data sets of the folder of measurements, as jobs. What is not recorded there is stated here,
// each with what it was taken from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/accuracy/measurement.hpp"

namespace stowage::accuracy {

inline constexpr const char* rtx_3090_machine = "RTX 3090";

/// All of them, in the order in which they are reported. `models`: the folder of the descriptions
/// that are not in configs/models. Throws std::runtime_error where a file cannot be read.
[[nodiscard]] std::vector<DataSet> read_sets(const std::filesystem::path& folder,
                                             const std::filesystem::path& models);

/// How a sheet was trained, where it does not say; at first as timm's train.py does it by itself.
struct Training {
  std::string optimizer = "nesterov";
  double weight_decay = 2e-5;
  OptimizerImplementation implementation = OptimizerImplementation::usual;
  bool cudnn_benchmark = false;
};

/// a100_40gb_timm.csv as if it had been trained so: which optimizer and which cudnn.benchmark
/// explain it is a question of its own.
[[nodiscard]] DataSet timm_sheet(const std::filesystem::path& folder,
                                 const std::filesystem::path& models, const Training& training);

}  // namespace stowage::accuracy
