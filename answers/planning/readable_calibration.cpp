#include "answers/planning/readable_calibration.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

#include "estimator/card/card_file.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/measured_times_file.hpp"

namespace stowage {

namespace {

template <typename Read>
void expect_read(const Result<Read>& read) {
  if (read) return;
  throw std::logic_error("a calibration was made that cannot be read: " +
                         read.error().front().message);
}

}  // namespace

std::string readable_calibration(std::string text, const Card& card) {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"the calibration", std::move(text)});
  expect_read(read_calibration(source, card));
  expect_read(calibrated_host(source, {}));
  expect_read(read_measured_times(source, card));
  return source->text;
}

}  // namespace stowage
