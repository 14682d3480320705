// What a search for a plan for PyTorch has tried, in words for a card on which nothing fits.
#pragma once

#include <string>

namespace stowage {

/// Which means were tried. Of an inference only `streams` counts.
struct TriedMeans {
  bool trains = true;
  bool has_modules = false;    ///< that can run again
  bool parts = false;          ///< micro-batches
  bool early_updates = false;  ///< updates as gradients come
  bool host_updates = false;   ///< updates on the CPU
  bool expandable = false;     ///< these with expandable segments as well
  bool streams = false;        ///< parameters without a gradient on the host
};
/// "saved tensors on the host; micro-batches"
[[nodiscard]] std::string in_words(const TriedMeans& tried);

}  // namespace stowage
