// Verdict: what every answer about a card's memory begins with, whatever the question.
#pragma once

#include "estimator/base/bytes.hpp"
#include "estimator/card/card.hpp"
#include "estimator/check/check.hpp"

namespace stowage {

struct Verdict {
  bool fits = false;
  Bytes device_bytes;     ///< what the process takes of the card
  Bytes available_bytes;  ///< total - in use - reserve; negative: what is missing before it begins
  Bytes headroom_bytes;   ///< available - needed; negative: what is missing
};

[[nodiscard]] inline Verdict verdict_of(const CheckReport& report) {
  return {report.fits, report.device_bytes, report.available_bytes, report.headroom};
}

}  // namespace stowage
