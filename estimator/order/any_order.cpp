#include "estimator/order/any_order.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace stowage {
namespace {

using Word = std::uint64_t;
constexpr std::size_t word_bits = 64;

/// A set of nodes for each node, as rows of bits.
class NodeSets {
 public:
  explicit NodeSets(std::size_t nodes)
      : words_((nodes + word_bits - 1) / word_bits), bits_(nodes * words_) {}

  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] const Word* row(std::size_t node) const { return &bits_[node * words_]; }
  void add(std::size_t to, std::size_t node) {
    bits_[to * words_ + node / word_bits] |= Word{1} << (node % word_bits);
  }
  void add_row(std::size_t to, std::size_t from) {
    for (std::size_t w = 0; w < words_; ++w) bits_[to * words_ + w] |= bits_[from * words_ + w];
  }

 private:
  std::size_t words_;
  std::vector<Word> bits_;
};

struct Reach {
  NodeSets earlier, later;  // by node: those that run before it, and after it, in every order
};

// The step's own order is one that keeps the dependences.
Reach reach_of(const std::vector<std::vector<std::int32_t>>& before) {
  Reach reach{NodeSets(before.size()), NodeSets(before.size())};
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (const std::int32_t needed : before[i]) {
      const auto at = static_cast<std::size_t>(needed);
      reach.earlier.add(i, at);
      reach.earlier.add_row(i, at);
    }
  }
  for (std::size_t i = before.size(); i-- > 0;) {
    for (const std::int32_t needed : before[i]) {
      const auto at = static_cast<std::size_t>(needed);
      reach.later.add(at, i);
      reach.later.add_row(at, i);
    }
  }
  return reach;
}

}  // namespace

std::optional<Bytes> any_order_peak(const OrderProblem& problem) {
  const std::size_t nodes = problem.before.size();
  if (nodes > most_nodes_in_any_order) return std::nullopt;
  const Reach reach = reach_of(problem.before);
  std::vector<Bytes> live(nodes, problem.always);
  std::vector<Word> over(reach.later.words()), to_come(over.size());
  for (const OrderProblem::Item& item : problem.items) {
    // After all of its touches in every order, and before all of them.
    std::ranges::fill(over, ~Word{0});
    std::ranges::fill(to_come, ~Word{0});
    for (const std::int32_t touch : item.touches) {
      const auto at = static_cast<std::size_t>(touch);
      for (std::size_t w = 0; w < over.size(); ++w) {
        over[w] &= reach.later.row(at)[w];
        to_come[w] &= reach.earlier.row(at)[w];
      }
    }
    for (std::size_t w = 0; w < over.size(); ++w) {
      for (Word there = ~(over[w] | to_come[w]); there != 0; there &= there - 1) {
        const std::size_t node = w * word_bits + static_cast<std::size_t>(std::countr_zero(there));
        if (node >= nodes) break;
        live[node] += item.bytes;
      }
    }
  }
  Bytes most;
  for (std::size_t i = 0; i < nodes; ++i) most = std::max(most, live[i] + problem.scratch[i]);
  return most;
}

}  // namespace stowage
