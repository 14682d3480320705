// For tests that ask cuDNN: whether it is here, and for which card.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "estimator/card/card.hpp"
#include "gpu_probe/cudnn/session.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::testing {

inline Card card_named(const std::string& name) {
  const auto found = find_card(name, testing::source_path("/configs/gpus"));
  REQUIRE(found);
  return found->card;
}

inline bool cudnn_is_here() {
  const auto version = cudnn_version();
  if (!version) skip("cuDNN is not here: " + version.error().front().message);
  return version.has_value();
}

/// Figures are of cuDNN 9.19.0; another version may rank its engines differently.
inline bool is_measured_version() {
  const bool same = *cudnn_version() == "9.19.0";
  if (!same) skip("the figures are of cuDNN 9.19.0, this is " + *cudnn_version());
  return same;
}

}  // namespace stowage::testing
