// A card, a calibration, its measured times and a host file: each input is read as all of them.
#include "estimator/card/card_file.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/measured_times_file.hpp"
#include "planner/problem/rates.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t most_text = std::size_t{32} << 10;
  if (size > most_text) return -1;
  const SourceTextPtr source = fuzz::source_of(data, size);
  const Card generic = generic_card(8_GiB);
  const auto card = read_card(source);
  const auto calibrated = read_calibration(source, generic);
  const auto times = read_measured_times(source, generic);
  const auto host = load_host(source);
  if (!card) fuzz::require_shown(card.error());
  if (!calibrated) fuzz::require_shown(calibrated.error());
  if (!host) fuzz::require_shown(host.error());
  if (card) fuzz::require(card->cuda_total > 0_B && make_rates(*card, Host{}).h2d_bandwidth > 0);
  if (!times) fuzz::require_shown(times.error());
  if (times && *times) {
    const Rates rates = make_rates(generic, Host{}, times->get());
    fuzz::require(rates.h2d_bandwidth >= 0 && h2d_seconds(rates, 1_MiB) >= 0);
  }
  if (host) fuzz::require(host->pinned_limit <= host->memory);
  return 0;
}
