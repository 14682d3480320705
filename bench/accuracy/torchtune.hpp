// torchtune's table of fine-tunes: full, LoRA and QLoRA, on one GPU.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/accuracy/predict.hpp"

namespace stowage::accuracy {

struct FineTune {
  std::string name;     ///< "Llama 3.1 8B, LoRA, RTX 4090"
  Job job;              ///< as far as it can be said here
  double measured_gib;  ///< of the allocator; which of its figures is not recorded for all
  std::string lacking;  ///< what the run had that is not in the job: "torch.compile"; "": nothing
};

/// The rows of torchtune_readme.csv that ran on one GPU and whose rows' lengths are known, in its
/// order. Throws as read_csv, and where a row is unknown.
[[nodiscard]] std::vector<FineTune> read_fine_tunes(const std::filesystem::path& folder);

}  // namespace stowage::accuracy
