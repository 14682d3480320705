// Work and its budgets: what a search may do, counted.
#include "planner/problem/work_budget.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace stowage {

TEST_CASE("a share of an amount of work is taken in thousandths, of any amount") {
  CHECK((0.5 * Work{10}).units == 5);
  CHECK((0.1 * Work{1'000'000}).units == 100'000);
  CHECK((1.0 / 3 * Work{3'000}).units == 999);
  CHECK((1.0 * Work{std::int64_t{1} << 60}).units == std::int64_t{1} << 60);
  CHECK((0.0 * Work{7}).units == 0);
}

TEST_CASE("a budget without a limit is never over") {
  WorkBudget budget;
  budget.spend(std::int64_t{1} << 50);
  CHECK_FALSE(budget.is_over());
}

TEST_CASE("what a part spends counts for the whole when the part ends") {
  WorkBudget whole(Work{1'000});
  {
    WorkBudget part = whole.part(0.5);
    CHECK(part.limit() == Work{500});
    part.spend(400);
    CHECK_FALSE(part.is_over());
    CHECK(whole.spent() == Work{0});
    WorkBudget inner = part.part(0.5);
    CHECK(inner.limit() == Work{50});
    inner.spend(60);
    CHECK(inner.is_spent());
  }
  CHECK(whole.spent() == Work{460});
  CHECK(whole.left() == Work{540});
}

TEST_CASE("a part of a spent budget has a small share of the whole search") {
  WorkBudget whole(Work{1'000});
  whole.spend(2'000);
  CHECK(whole.is_over());
  CHECK(whole.left() == Work{0});
  CHECK(whole.part(1).limit() == Work{20});
}

TEST_CASE("parts of searches in parallel are equal, whatever one of them spends") {
  WorkBudget whole(Work{1'000});
  {
    auto parts = equal_parts(whole, 4, 0.25);
    parts[0].spend(900);
    for (const WorkBudget& part : parts) CHECK(part.limit() == Work{250});
  }
  CHECK(whole.spent() == Work{900});
}

TEST_CASE("being cancelled or out of time ends a budget and its parts") {
  bool is_cancelled = false, is_late = false;
  WorkBudget whole(Work{1'000}, {.cancelled = [&] { return is_cancelled; },
                                 .out_of_time = [&] { return is_late; }});
  const WorkBudget part = whole.part(0.5);
  CHECK_FALSE(part.is_over());
  is_late = true;
  CHECK(part.is_over());
  CHECK_FALSE(part.is_cancelled());
  CHECK_FALSE(part.is_spent());
  is_late = false;
  is_cancelled = true;
  CHECK(part.is_over());
  CHECK(whole.is_cancelled());
}

}  // namespace stowage
