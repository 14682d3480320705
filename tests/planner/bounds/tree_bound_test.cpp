// The bounds that the planner proves are proved again, by another network and another algorithm.
#include "planner/bounds/tree_bound.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "planner/bounds/priced_bound.hpp"
#include "planner/solve/residency_cut.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/bounds/bound_problems.hpp"
#include "tests/planner/solve/large_item_problems.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage::test {
namespace {

double recomputed(const ResidencyProblem& problem, Bytes budget, const BranchTree& tree) {
  const BoundProblem stated = bound_problem_of(problem, budget);
  REQUIRE(overflow_reason(stated) == "");
  const TreeBound bound = tree_bound(stated, tree);
  REQUIRE(bound.problem == "");
  return bound.least;
}

}  // namespace

TEST_CASE("bounds: the planner's cut and the checker's agree at random prices") {
  Random random(815);
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes limit(below(random, 20) << 20);
    const CutModel model =
        make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), limit));
    Prices prices;
    std::vector<MemoryPrice> same;
    for (std::int32_t t = 0; t < std::ssize(problem.operations); ++t) {
      const std::int64_t price = below(random, 2) == 0 ? 0 : below(random, 12);
      if (price == 0) continue;
      prices.push_back({t, price << (model.unit_exponent + model.price_bits - 33)});
      same.push_back({t, std::ldexp(static_cast<double>(price), -33)});
    }
    const PricedCut cut = cheapest_placement(model, restrictions_of(problem), prices);
    const BoundProblem stated = bound_problem_of(problem, limit);
    std::int64_t work = most_cut_work;
    const auto bound = priced_bound(stated, sides_of(stated), same, {}, work);
    REQUIRE(bound.has_value());
    REQUIRE(*bound == cut.bound_seconds);
  }
}

TEST_CASE("bounds: what a search proves is proved again, and is no more than the optimum") {
  Random random(4);
  int branched = 0, with_limits = 0;
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const auto solution = solve(problem, {.budget = budget, .target_gap = 0});
    REQUIRE(solution.has_value());
    const double claim = solution->cost_lower_bound_seconds;
    const double again = recomputed(problem, budget, solution->proof);
    REQUIRE(again >= claim * (1 - 1e-9));
    if (solution->proof.size() > 1) ++branched;
    for (const BranchNode& node : solution->proof) with_limits += node.limits.empty() ? 0 : 1;
    if (round % 10 != 0) continue;
    const auto best = cheapest_within(problem, all_assignments(problem), budget);
    REQUIRE(best.has_value());
    REQUIRE(std::min(again, 1e9) <= *best * (1 + 1e-9) + (std::isinf(again) ? 1e9 : 0));
  }
  CHECK(branched > 20);
  CHECK(with_limits > 20);
}

TEST_CASE("bounds: problems with a few large items, whose proof branches and rounds") {
  for (const int percent : {20, 40, 60, 95}) {
    CAPTURE(percent);
    for (const ResidencyProblem& problem :
         {giant_embedding({}), u_shape(6, 400'000'000), u_shape(9, 300'000'000)}) {
      const CutModel model = make_cut_model(
          problem, std::vector<Bytes>(problem.operations.size(), Bytes(std::int64_t{1} << 60)));
      const Bytes peak =
          evaluate(problem, cheapest_placement(model, restrictions_of(problem), {}).greatest).peak;
      const Bytes budget(
          std::max(memory_floor(problem).bytes.count(), peak.count() / 100 * percent));
      const auto solution = solve(problem, {.budget = budget, .target_gap = 0});
      REQUIRE(solution.has_value());
      const double claim = solution->cost_lower_bound_seconds;
      CHECK(recomputed(problem, budget, solution->proof) >= claim * (1 - 1e-9));
    }
  }
}

namespace {

// Changes one part of a proof: a price, a limit, or what a branch fixes.
void change(Random& random, BranchTree& tree) {
  BranchNode& node = tree[static_cast<std::size_t>(below(random, std::ssize(tree)))];
  if (!node.limits.empty() && below(random, 2) == 0) {
    RoundedLimit& limit =
        node.limits[static_cast<std::size_t>(below(random, std::ssize(node.limits)))];
    switch (below(random, 3)) {
      case 0:
        limit.divisor = 1 + below(random, 16 << 20);
        break;
      case 1:
        limit.step = static_cast<std::int32_t>(below(random, 6));
        break;
      default:
        if (!limit.counted.empty()) limit.counted.pop_back();
    }
    return;
  }
  if (auto* fixing = std::get_if<Fixing>(&node.content)) {
    fixing->subject = static_cast<std::int32_t>(below(random, 5));
    if (below(random, 2) == 0) fixing->after = static_cast<std::int32_t>(below(random, 7)) - 1;
    return;
  }
  auto& leaf = std::get<BranchLeaf>(node.content);
  const double factor = std::exp2(static_cast<double>(below(random, 9)) - 4);
  if (!leaf.limits.empty() && below(random, 2) == 0) {
    leaf.limits.front().price *= factor;
  } else if (!leaf.steps.empty()) {
    leaf.steps.front().price *= factor;
    leaf.steps.front().step = static_cast<std::int32_t>(below(random, 6));
  } else {
    leaf.steps.push_back({static_cast<std::int32_t>(below(random, 6)), factor * 1e-9});
  }
}

}  // namespace

TEST_CASE("bounds: an altered proof proves no false bound") {
  Random random(99);
  int proved = 0, refused = 0, lower = 0;
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const auto solution = solve(problem, {.budget = budget, .target_gap = 0});
    REQUIRE(solution.has_value());
    if (solution->proof.size() == 1 && below(random, 8) != 0) continue;
    const auto best = cheapest_within(problem, all_assignments(problem), budget);
    REQUIRE(best.has_value());
    const BoundProblem stated = bound_problem_of(problem, budget);
    for (int i = 0; i < 20; ++i) {
      BranchTree tree = solution->proof;
      for (std::int64_t changes = 1 + below(random, 3); changes > 0; --changes) {
        change(random, tree);
      }
      const TreeBound bound = tree_bound(stated, tree);
      bound.problem.empty() ? ++proved : ++refused;
      if (!bound.problem.empty()) continue;
      REQUIRE(bound.least <= *best * (1 + 1e-12));
      if (bound.least < solution->cost_lower_bound_seconds * (1 - 1e-6)) ++lower;
    }
  }
  MESSAGE(proved << " changed proofs, of which " << lower << " prove less; " << refused
                 << " refused");
  CHECK(lower > 200);
  CHECK(refused > 20);
}

TEST_CASE("bounds: a tree that lacks a branch, or has one too many, proves nothing") {
  const ResidencyProblem problem = u_shape(6, 400'000'000);
  const Bytes budget = memory_floor(problem).bytes + Bytes(100'000'000);
  const auto solution = solve(problem, {.budget = budget, .target_gap = 0});
  REQUIRE(solution.has_value());
  const BoundProblem stated = bound_problem_of(problem, budget);
  const BranchTree& tree = solution->proof;
  REQUIRE(tree.size() > 2);
  CHECK(end_of_tree(tree) == tree.size());
  for (std::size_t i = 0; i < tree.size(); ++i) {
    BranchTree less = tree;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK(tree_bound(stated, less).problem == "its branches do not cover every plan");
    BranchTree more = tree;
    more.insert(more.begin() + static_cast<std::ptrdiff_t>(i), BranchNode{});
    CHECK(tree_bound(stated, more).problem == "its branches do not cover every plan");
  }
  CHECK(tree_bound(stated, {}).problem == "its branches do not cover every plan");
}

TEST_CASE("bounds: what a hostile tree holds is refused") {
  const ResidencyProblem problem = u_shape(3, 400'000'000);
  const BoundProblem stated = bound_problem_of(problem, Bytes(600'000'000));
  const auto problem_of = [&](const BranchTree& tree) { return tree_bound(stated, tree).problem; };
  const auto leaf = [](std::vector<MemoryPrice> steps, std::vector<LimitPrice> limits = {}) {
    return BranchNode{{}, BranchLeaf{std::move(steps), std::move(limits)}};
  };
  const BranchNode nothing = leaf({});
  CHECK(problem_of({nothing}) == "");
  for (const MemoryPrice price :
       {MemoryPrice{-1, 1}, MemoryPrice{100, 1}, MemoryPrice{0, -1}, MemoryPrice{0, 0},
        MemoryPrice{0, std::nan("")}, MemoryPrice{0, no_placement}, MemoryPrice{0, 1e200}}) {
    CHECK(problem_of({leaf({price})}).starts_with("at its leaf 1 there cannot be the price"));
  }
  CHECK(problem_of({leaf({{1, 1e-9}, {0, 1e-9}})}) ==
        "at its leaf 1 there cannot be the price 1e-09 of step 0");
  CHECK(problem_of({leaf({}, {{0, 1e-9}})}) ==
        "at its leaf 1 there cannot be the price 1e-09 of rounded limit 0");
  const auto limited = [&](RoundedLimit limit) {
    return problem_of({BranchNode{{std::move(limit)}, BranchLeaf{}}});
  };
  CHECK(limited({0, 1, {}}) == "");
  CHECK(limited({0, std::int64_t{1} << 61, {{0, 1}}}) == "");
  CHECK(limited({0, 0, {}}) == "its rounded limit 0 cannot be");
  CHECK(limited({-1, 1, {}}) == "its rounded limit 0 cannot be");
  CHECK(limited({0, 1, {{3, 3}, {2, 2}}}) == "its rounded limit 0 cannot be");
  CHECK(limited({0, 1, {{1, 2}, {2, 3}}}) == "its rounded limit 0 cannot be");
  CHECK(limited({0, 1, {{3, 2}}}) == "its rounded limit 0 cannot be");
  CHECK(limited({0, 1, {{-1, 2}}}) == "its rounded limit 0 cannot be");
  // A limit of one branch does not hold in the branch beside it.
  const BranchNode divided{{}, Fixing{.subject = 0}};
  const BranchNode with_limit{{{0, 1, {}}}, BranchLeaf{}};
  CHECK(problem_of({divided, with_limit, leaf({}, {{0, 1e-9}})}) ==
        "at its leaf 2 there cannot be the price 1e-09 of rounded limit 0");
  CHECK(problem_of({{{}, Fixing{.subject = 1000}}, nothing, nothing}) ==
        "there is no node 1000 to fix");
  CHECK(problem_of({{{}, Fixing{1000, 0}}, nothing, nothing}) ==
        "storage 1000 has no gap after step 0 to fix");
  CHECK(problem_of({{{}, Fixing{0, 1000}}, nothing, nothing}) ==
        "storage 0 has no gap after step 1000 to fix");
  // Deeper than any stack, and too long.
  BranchTree deep(10'000, divided);
  deep.resize(20'001, nothing);
  CHECK(problem_of(deep) == "");
  BoundProblem large = stated;
  large.nodes.resize(2'000'000, large.nodes.front());
  const std::size_t most = most_tree_work / large.size();
  CHECK(tree_bound(large, {{std::vector<RoundedLimit>(most + 1), BranchLeaf{}}}).problem ==
        fmt::format("{} rounded limits of so large a step are too many to be checked", most + 1));
  deep.resize(most / 2 + 1, divided);
  deep.resize(2 * deep.size() + 1, nothing);
  CHECK(tree_bound(large, deep).problem ==
        fmt::format("{} branches of so large a step are too many to be checked", deep.size()));
}

TEST_CASE("bounds: what a branch keeps is paid in full, however expensive") {
  // One value, made on the GPU and kept there past a node that may be on the CPU, which it is
  // priced at: much more than all costs together.
  BoundProblem problem;
  problem.nodes = {{.engines = {{1, 0}}, .side = Side::gpu},
                   {.engines = {{1, 0}}, .cpu_cost = 2},
                   {.engines = {{1, 0}}, .cpu_cost = 2}};
  problem.items = {{.number = 0,
                    .bytes = 100,
                    .touches = {{0, false, true}, {1, true, false}, {2, true, false}},
                    .upload = 1,
                    .download = 1,
                    .gaps = {Side::open, Side::open}}};
  const BranchNode kept{{}, BranchLeaf{.steps = {{1, 10}}, .limits = {}}};
  const BranchNode rest{{}, BranchLeaf{}};
  // Kept it is 3 of compute and 100 bytes at 10 a byte, all of them within the limit.
  problem.limit = 100;
  CHECK(tree_bound(problem, {{{}, Fixing{0, 0}}, kept, rest}).least == doctest::Approx(3));
  // Or 50 of them, if the limit were not checked.
  problem.limit = 50;
  std::int64_t work = most_cut_work;
  FixedSides sides = sides_of(problem);
  sides.gaps[0][0] = Side::gpu;
  CHECK(*priced_bound(problem, sides, {{1, 10}}, {}, work) == doctest::Approx(503));
}

TEST_CASE("bounds: sizes and times that cannot be added up are found") {
  BoundProblem stated = bound_problem_of(u_shape(3, 400'000'000), Bytes(600'000'000));
  CHECK(overflow_reason(stated) == "");
  stated.items.front().upload = 1e300;
  CHECK(overflow_reason(stated) == "its times cannot be added up");
  stated.items.front().upload = 0;
  stated.items.front().bytes = std::int64_t{1} << 61;
  CHECK(overflow_reason(stated) == "its sizes cannot be added up");
}

}  // namespace stowage::test
