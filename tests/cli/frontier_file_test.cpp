// The drawing of a frontier: what its axes say, and where the card is.
#include "cli/output/frontier_file.hpp"

#include <doctest/doctest.h>

#include <regex>

#include "answers/report/chart_axis.hpp"

namespace stowage {

namespace {

FrontierPoint point(double gib, double seconds) {
  return {.budget = Bytes(static_cast<std::int64_t>(gib * (1 << 30))),
          .plan = "cheapest",
          .step_seconds = seconds,
          .step_lower_bound_seconds = seconds / 2,
          .pcie = Bytes(1 << 20)};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("ticks are multiples of 1, 2 or 5, begin at 0, and are at most 7") {
  CHECK(round_ticks(16.2, 1) == std::vector<double>{0, 5, 10, 15});
  CHECK(round_ticks(11.5, 1) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(round_ticks(0.57408, 1e-3) == std::vector<double>{0, 0.1, 0.2, 0.3, 0.4, 0.5});
  CHECK(round_ticks(0, 1) == std::vector<double>{0});
  for (double most = 1e-9; most < 1e12; most *= 1.37) {
    const std::vector<double> ticks = round_ticks(most, 1);
    CHECK(ticks.size() >= 3);
    CHECK(ticks.size() <= 7);
    CHECK(ticks.back() <= most);
  }
}

TEST_CASE("the drawing names round values and marks the card, within its edges") {
  const std::string svg =
      frontier_text({point(1, 2.87), point(8, 1), point(16.2, 0.57408)}, FrontierFormat::svg,
                    {.text = "a < b", .card_budget = Bytes(std::int64_t{11} << 30), .card = "A&B"});
  for (const char* label : {">0 GiB<", ">5 GiB<", ">10 GiB<", ">15 GiB<", ">0 s<", ">0.5 s<",
                            ">2.5 s<", "a &lt; b", ">A&amp;B: 11.0 GiB<"}) {
    CHECK(svg.find(label) != std::string::npos);
  }
  CHECK(count(svg, "<circle") == 3);
  CHECK(count(svg, "stroke-dasharray") == 1);
  // Texts in the middle of their place have room on both sides.
  const std::regex middle("<text x=\"([0-9.]+)\" y=\"[0-9.]+\" text-anchor=\"middle\">([^<]*)<");
  for (std::sregex_iterator at(svg.begin(), svg.end(), middle), end; at != end; ++at) {
    const double x = std::stod((*at)[1]);
    const double half = 4.0 * static_cast<double>((*at)[2].length());
    CHECK(x + half < 760);
    CHECK(x - half > 0);
  }
  const std::string small = frontier_text({point(0.01, 2e-4)}, FrontierFormat::svg, {.text = "x"});
  CHECK(small.find(">10 MiB<") != std::string::npos);
  CHECK(small.find(">200 us<") != std::string::npos);
  CHECK(count(small, "stroke-dasharray") == 0);  // no card
}

}  // namespace stowage
