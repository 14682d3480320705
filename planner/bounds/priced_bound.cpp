#include "planner/bounds/priced_bound.hpp"

#include <algorithm>
#include <cmath>

namespace stowage {

namespace {

__extension__ typedef __int128 Amount;
constexpr int price_bits = 60;     // of the sum of all prices
constexpr int capacity_bits = 60;  // of the sum of all capacities

double as_double(Amount amount) { return static_cast<double>(amount); }

struct RawEngine {
  double cost = 0;
  Amount memory = 0;
};

// An arc before its capacity has a unit: a cost, and bytes times prices. For a node on the GPU the
// cheapest of `engines` is added.
struct RawArc {
  CutNetwork::Node from = CutNetwork::source;
  CutNetwork::Node to = CutNetwork::sink;
  double cost = 0;
  Amount memory = 0;
  std::vector<RawEngine> engines = {};
};

/// Prices as whole numbers of 2^-exponent, rounded down: any prices give a bound, so the rounded
/// ones do too.
struct WholePrices {
  int exponent = 0;
  std::vector<std::int64_t> before;  // by step: the sum of the earlier steps' prices
  std::vector<std::int64_t> limits;  // by rounded limit

  WholePrices(std::size_t steps, const std::vector<MemoryPrice>& prices,
              const std::vector<PricedLimit>& priced_limits) {
    double sum = 0;
    for (const MemoryPrice& p : prices) sum += p.price;
    for (const PricedLimit& p : priced_limits) sum += p.price;
    if (sum > 0) exponent = price_bits - static_cast<int>(std::ceil(std::log2(sum))) - 1;
    before.assign(steps + 1, 0);
    for (const MemoryPrice& p : prices) {
      before[static_cast<std::size_t>(p.step) + 1] += whole(p.price);
    }
    for (std::size_t t = 1; t < before.size(); ++t) before[t] += before[t - 1];
    for (const PricedLimit& p : priced_limits) limits.push_back(whole(p.price));
  }

  [[nodiscard]] std::int64_t whole(double price) const {
    return static_cast<std::int64_t>(std::floor(std::ldexp(price, exponent)));
  }
  [[nodiscard]] std::int64_t of(std::int32_t begin, std::int32_t end) const {
    return begin < end
               ? before[static_cast<std::size_t>(end)] - before[static_cast<std::size_t>(begin)]
               : 0;
  }
};

class NetworkBuilder {
 public:
  NetworkBuilder(const BoundProblem& problem, const FixedSides& sides,
                 const std::vector<MemoryPrice>& prices, const std::vector<PricedLimit>& limits)
      : problem_(problem),
        sides_(sides),
        limits_(limits),
        steps_(static_cast<std::int32_t>(problem.nodes.size())),
        prices_(problem.nodes.size(), prices, limits) {
    surcharge_limits();
    for (std::size_t t = 0; t < problem.nodes.size(); ++t) add_node(t);
    for (std::size_t i = 0; i < problem.items.size(); ++i) add_item(i);
  }

  BoundNetwork run() && {
    choose_exponent();
    for (const RawArc& arc : raw_) {
      const Amount capacity = capacity_of(arc);
      if (arc.from == CutNetwork::source && arc.to == CutNetwork::sink) {
        result_.constant += capacity;
      } else {
        result_.network.add_arc(arc.from, arc.to,
                                static_cast<std::int64_t>(std::min<Amount>(capacity, cost_cap_)));
      }
    }
    // The limits times their prices, rounded up.
    Amount worth = Amount{prices_.before.back()} * problem_.limit;
    for (std::size_t l = 0; l < limits_.size(); ++l) {
      worth += Amount{prices_.limits[l]} * limits_[l].limit->limit;
    }
    result_.constant -= -in_units(-worth);
    return std::move(result_);
  }

 private:
  using Node = CutNetwork::Node;
  static constexpr Node source = CutNetwork::source, sink = CutNetwork::sink;

  static Node terminal_of(Side side) { return side == Side::gpu ? source : sink; }

  Node node_or_terminal(Side side) {
    return side == Side::open ? result_.network.add_node() : terminal_of(side);
  }

  void implies(Node first, Node second) {  // whatever has the first on the GPU has the second there
    if (first == source && second == sink) {
      // Contradictory. Two infinite arcs through a new node make every cut infinite.
      const Node between = result_.network.add_node();
      result_.network.add_arc(source, between, CutNetwork::infinite);
      result_.network.add_arc(between, sink, CutNetwork::infinite);
      return;
    }
    result_.network.add_arc(first, second, CutNetwork::infinite);
  }

  void pays(Node from, Node to, double cost, Amount memory = 0) {
    if (from == to || from == sink || to == source) return;
    if (cost > 0 || memory > 0) raw_.push_back({from, to, cost, memory, {}});
  }

  void surcharge_limits() {
    surcharge_.resize(limits_.empty() ? 0 : problem_.items.size());
    for (std::size_t l = 0; l < limits_.size(); ++l) {
      for (const WeightedPlace& place : limits_[l].limit->places) {
        std::vector<Amount>& amounts = surcharge_[place.item];
        if (amounts.empty()) amounts.resize(2 * problem_.items[place.item].touches.size());
        amounts[2 * std::size_t{place.index} + (place.in_gap ? 1 : 0)] +=
            Amount{prices_.limits[l]} * place.weight;
      }
    }
  }
  [[nodiscard]] Amount surcharge(std::size_t item, std::size_t index, bool in_gap) const {
    if (limits_.empty() || surcharge_[item].empty()) return 0;
    return surcharge_[item][2 * index + (in_gap ? 1 : 0)];
  }

  void add_node(std::size_t t) {
    const BoundNode& node = problem_.nodes[t];
    const Node x = node_or_terminal(sides_.nodes[t]);
    nodes_.push_back(x);
    pays(source, x, node.cpu_cost);
    if (x == sink) return;
    const auto step = static_cast<std::int32_t>(t);
    const std::int64_t price = prices_.of(step, step + 1);
    RawArc arc{x, sink, 0, Amount{price} * node.temporaries};
    for (const BoundEngine& engine : node.engines) {
      arc.engines.push_back({engine.cost, Amount{price} * engine.workspace});
    }
    raw_.push_back(std::move(arc));
  }

  void add_item(std::size_t index) {
    const BoundItem& item = problem_.items[index];
    std::vector<Node> present, stays;
    for (std::size_t i = 0; i < item.touches.size(); ++i) {
      const BoundTouch& touch = item.touches[i];
      const Node x = nodes_[static_cast<std::size_t>(touch.step)];
      // A copy may stay beside a reader on the CPU; a value that the CPU writes is not on the GPU.
      const bool beside = !touch.writes && x != source && may_pass(item, i);
      const Node u = beside ? result_.network.add_node() : x;
      if (u != x) implies(x, u);
      pays(
          u, sink, 0,
          Amount{prices_.of(touch.step, touch.step + 1)} * item.bytes + surcharge(index, i, false));
      present.push_back(u);
    }
    for (std::size_t gap = 0; gap < item.gaps.size(); ++gap) {
      const Node r = node_or_terminal(sides_.gaps[index][gap]);
      implies(r, present[gap]);
      implies(r, present[item.after(gap)]);
      Amount price = 0;
      each_range_inside(item, gap, steps_, [&](std::int32_t begin, std::int32_t end) {
        price += prices_.of(begin, end);
      });
      pays(r, sink, 0, price * item.bytes + surcharge(index, gap, true));
      stays.push_back(r);
    }
    add_fetches(item, present, stays);
    add_versions(item, stays);
  }

  // Whether a copy beside a reader on the CPU is pinned or can be of use: it came through a gap and
  // goes on through one to be read. Without other copies a placement costs no more and takes no
  // more memory.
  static bool may_pass(const BoundItem& item, std::size_t touch) {
    const std::ptrdiff_t before = item.before(touch);
    const bool goes_on = touch < item.gaps.size();
    if (before >= 0 && item.gaps[static_cast<std::size_t>(before)] == Side::gpu) return true;
    if (goes_on && item.gaps[touch] == Side::gpu) return true;
    return before >= 0 && goes_on && item.touches[item.after(touch)].reads;
  }

  // A copy that is read without having stayed in the gap before is fetched.
  void add_fetches(const BoundItem& item, const std::vector<Node>& present,
                   const std::vector<Node>& stays) {
    for (std::size_t i = 0; i < item.touches.size(); ++i) {
      if (!item.touches[i].reads) continue;
      const std::ptrdiff_t gap = item.before(i);
      pays(present[i], gap < 0 ? sink : stays[static_cast<std::size_t>(gap)], item.upload);
    }
  }

  // Each version that the GPU writes gets a host copy, unless all its readers are on the GPU and it
  // stays there until the last of them. Reads before the first write are of a version that is on
  // the host or, round the step's end, of the last version.
  void add_versions(const BoundItem& item, const std::vector<Node>& stays) {
    const std::size_t count = item.touches.size();
    for (std::size_t producer = 0; producer < count; ++producer) {
      if (!item.touches[producer].writes) continue;
      std::vector<std::size_t> readers;
      for (std::size_t i = producer + 1; i < producer + 1 + count; ++i) {
        if (i >= count && !item.goes_round) break;
        if (item.touches[i % count].reads) readers.push_back(i % count);
        if (item.touches[i % count].writes) break;
      }
      if (readers.empty()) continue;
      const Node x = nodes_[static_cast<std::size_t>(item.touches[producer].step)];
      if (x == sink) continue;
      const Node z = result_.network.add_node();
      pays(x, z, item.download);
      for (const std::size_t reader : readers) {
        implies(z, nodes_[static_cast<std::size_t>(item.touches[reader].step)]);
        const std::ptrdiff_t gap = item.before(reader);
        if (gap >= 0) implies(z, stays[static_cast<std::size_t>(gap)]);
      }
    }
  }

  // By node: whether it is on the GPU in every finite cut.
  [[nodiscard]] std::vector<bool> forced_nodes() const {
    const CutNetwork& network = result_.network;
    std::vector<std::vector<Node>> implied(static_cast<std::size_t>(network.nodes()));
    for (const CutNetwork::Arc& arc : network.arcs()) {
      implied[static_cast<std::size_t>(arc.from)].push_back(arc.to);  // so far all are infinite
    }
    std::vector<bool> forced(implied.size(), false);
    forced[static_cast<std::size_t>(source)] = true;
    for (std::vector<Node> open{source}; !open.empty();) {
      const auto at = static_cast<std::size_t>(open.back());
      open.pop_back();
      for (const Node next : implied[at]) {
        if (forced[static_cast<std::size_t>(next)]) continue;
        forced[static_cast<std::size_t>(next)] = true;
        open.push_back(next);
      }
    }
    return forced;
  }

  // Chooses the finest unit in which all capacities sum to less than 2^capacity_bits. The cut that
  // has on the GPU only what has to be there pays at most all costs and the memory of these nodes,
  // so no memory term needs a larger capacity.
  void choose_exponent() {
    const auto largest_engine_term = [](const RawArc& arc, auto member) {
      double most = 0;
      for (const RawEngine& engine : arc.engines) {
        most = std::max(most, static_cast<double>(engine.*member));
      }
      return most;
    };
    double costs = 0;
    for (const RawArc& arc : raw_) costs += arc.cost + largest_engine_term(arc, &RawEngine::cost);
    const auto memory_of = [&](const RawArc& arc) {
      return std::ldexp(as_double(arc.memory) + largest_engine_term(arc, &RawEngine::memory),
                        -prices_.exponent);
    };
    const std::vector<bool> forced = forced_nodes();
    double cost_cap = costs;
    for (const RawArc& arc : raw_) {
      const bool is_constant = arc.from == source && arc.to == sink;
      if (!is_constant && forced[static_cast<std::size_t>(arc.from)]) cost_cap += memory_of(arc);
    }
    double sum = 0;
    for (const RawArc& arc : raw_) {
      if (arc.from == source && arc.to == sink) continue;
      sum += arc.cost + largest_engine_term(arc, &RawEngine::cost) +
             std::min(memory_of(arc), cost_cap);
    }
    const double all = std::max({sum, cost_cap, 1e-300});
    result_.exponent = capacity_bits - static_cast<int>(std::ceil(std::log2(all))) - 1;
    if (prices_.before.back() > 0 || !limits_.empty()) {
      result_.exponent = std::min(result_.exponent, prices_.exponent);
    }
    cost_cap_ = static_cast<std::int64_t>(std::floor(std::ldexp(cost_cap, result_.exponent))) + 1;
  }

  // Converts bytes times prices to units, rounded down.
  [[nodiscard]] Amount in_units(Amount memory) const {
    const int shift = prices_.exponent - result_.exponent;
    return shift > 126 ? (memory < 0 ? Amount{-1} : Amount{0}) : memory >> std::max(shift, 0);
  }

  [[nodiscard]] Amount capacity_of(const RawArc& arc) const {
    const auto units = [&](double cost, Amount memory) {
      return static_cast<Amount>(std::floor(std::ldexp(cost, result_.exponent))) + in_units(memory);
    };
    if (arc.engines.empty()) return units(arc.cost, arc.memory);
    const auto on_it = [&](const RawEngine& engine) {
      return units(arc.cost + engine.cost, arc.memory + engine.memory);
    };
    return on_it(*std::ranges::min_element(arc.engines, {}, on_it));
  }

  const BoundProblem& problem_;
  const FixedSides& sides_;
  const std::vector<PricedLimit>& limits_;
  std::int32_t steps_;
  WholePrices prices_;
  std::vector<std::vector<Amount>> surcharge_;  // by item: of a touch and of the gap behind it
  std::vector<Node> nodes_;                     // by step
  std::vector<RawArc> raw_;
  std::int64_t cost_cap_ = 0;
  BoundNetwork result_;
};

}  // namespace

BoundNetwork priced_network(const BoundProblem& problem, const FixedSides& sides,
                            const std::vector<MemoryPrice>& prices,
                            const std::vector<PricedLimit>& limits) {
  return NetworkBuilder(problem, sides, prices, limits).run();
}

std::optional<double> priced_bound(const BoundProblem& problem, const FixedSides& sides,
                                   const std::vector<MemoryPrice>& prices,
                                   const std::vector<PricedLimit>& limits, std::int64_t& work) {
  const BoundNetwork priced = priced_network(problem, sides, prices, limits);
  const std::optional<CutValue> cut = least_cut(priced.network, work);
  if (!cut) return std::nullopt;
  if (cut->infinite) return no_placement;
  const Amount value = priced.constant + cut->value;
  double below = as_double(value);
  if (static_cast<Amount>(below) > value) below = std::nextafter(below, -no_placement);
  return std::ldexp(below, -priced.exponent);
}

}  // namespace stowage
