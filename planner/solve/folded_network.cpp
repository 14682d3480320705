#include "planner/solve/folded_network.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>

namespace stowage {

namespace {

using flow::first_node;

std::size_t vertex(std::int32_t v) { return static_cast<std::size_t>(v); }

/// By vertex: the first vertex of its component; of a terminal, itself.
std::vector<std::int32_t> components(const std::vector<HalfArc>& halves, std::int32_t vertices) {
  std::vector<std::int32_t> parent(vertex(vertices));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](std::int32_t v) {
    while (parent[vertex(v)] != v) {
      parent[vertex(v)] = parent[vertex(parent[vertex(v)])];
      v = parent[vertex(v)];
    }
    return v;
  };
  for (std::size_t i = 0; i < halves.size(); i += 2) {
    if (halves[i].tail < first_node || halves[i].head < first_node) continue;
    const std::int32_t a = root(halves[i].tail), b = root(halves[i].head);
    parent[vertex(std::max(a, b))] = std::min(a, b);
  }
  for (std::int32_t v = 0; v < vertices; ++v) parent[vertex(v)] = root(v);
  return parent;
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6U) + (hash >> 2U);
  return hash * 0xff51afd7ed558ccdULL;
}

class Folding {
 public:
  Folding(const std::vector<HalfArc>& halves, std::int32_t vertices)
      : halves_(halves), component_(components(halves, vertices)), local_(vertex(vertices)) {
    std::vector<std::int32_t> size(vertex(vertices), 0);
    for (std::int32_t v = first_node; v < vertices; ++v) {
      local_[vertex(v)] = first_node + size[vertex(component_[vertex(v)])]++;
    }
    local_[vertex(flow::source)] = flow::source;
    local_[vertex(flow::sink)] = flow::sink;
  }

  FoldedNetwork run() {
    sort_arcs();
    const std::vector<std::int32_t> stands_for = first_of_kind();
    FoldedNetwork folded;
    // Equal components number their vertices in the same way.
    const auto vertices = static_cast<std::int32_t>(component_.size());
    std::vector<std::vector<std::int32_t>> members(component_.size());
    for (std::int32_t v = first_node; v < vertices; ++v) {
      const std::int32_t of = component_[vertex(v)];
      if (stands_for[vertex(of)] == of) members[vertex(of)].push_back(v);
    }
    folded.like = {flow::source, flow::sink};
    for (std::int32_t v = first_node; v < vertices; ++v) {
      const std::int32_t first = stands_for[vertex(component_[vertex(v)])];
      folded.like.push_back(members[vertex(first)][vertex(local_[vertex(v)] - first_node)]);
    }
    for (std::size_t i = 0; i < halves_.size(); i += 2) {
      const std::int32_t of = component_of(halves_[i]);
      if (stands_for[vertex(of)] != of) continue;
      folded.halves.push_back(halves_[i]);
      folded.halves.push_back(halves_[i + 1]);
    }
    return folded;
  }

 private:
  [[nodiscard]] std::int32_t component_of(const HalfArc& arc) const {
    return component_[vertex(arc.tail < first_node ? arc.head : arc.tail)];
  }

  // Every arc with the numbers of its vertices in their component, grouped by component.
  void sort_arcs() {
    begin_.assign(component_.size() + 1, 0);
    for (std::size_t i = 0; i < halves_.size(); i += 2) {
      ++begin_[vertex(component_of(halves_[i])) + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    arcs_.resize(halves_.size() / 2);
    for (std::size_t i = 0; i < halves_.size(); i += 2) {
      const HalfArc& arc = halves_[i];
      arcs_[next[vertex(component_of(arc))]++] = {local_[vertex(arc.tail)],
                                                  local_[vertex(arc.head)], arc.capacity};
    }
  }

  [[nodiscard]] std::span<const HalfArc> arcs_of(std::int32_t component) const {
    const std::size_t begin = begin_[vertex(component)];
    return std::span(arcs_).subspan(begin, begin_[vertex(component) + 1] - begin);
  }

  /// By the first vertex of a component: the first equal component. Other entries are unused.
  [[nodiscard]] std::vector<std::int32_t> first_of_kind() const {
    std::vector<std::int32_t> first(component_.size());
    std::iota(first.begin(), first.end(), 0);
    std::unordered_multimap<std::uint64_t, std::int32_t> kinds;
    for (std::int32_t v = first_node; v < std::ssize(component_); ++v) {
      if (component_[vertex(v)] != v) continue;
      const auto arcs = arcs_of(v);
      std::uint64_t hash = arcs.size();
      for (const HalfArc& arc : arcs) {
        hash = mixed(hash, static_cast<std::uint64_t>(arc.tail));
        hash = mixed(hash, static_cast<std::uint64_t>(arc.head));
        hash = mixed(hash, static_cast<std::uint64_t>(arc.capacity));
      }
      const auto [begin, end] = kinds.equal_range(hash);
      const auto same = std::find_if(begin, end, [&](const auto& kind) {
        return std::ranges::equal(arcs_of(kind.second), arcs);
      });
      if (same == end) {
        kinds.emplace(hash, v);
      } else {
        first[vertex(v)] = same->second;
      }
    }
    return first;
  }

  const std::vector<HalfArc>& halves_;
  std::vector<std::int32_t> component_;  // by vertex
  std::vector<std::int32_t> local_;      // by vertex: its number in its component
  std::vector<HalfArc> arcs_;
  std::vector<std::size_t> begin_;  // by component, and one past the last: where its arcs begin
};

}  // namespace

FoldedNetwork fold(const std::vector<HalfArc>& halves, std::int32_t vertices) {
  return Folding(halves, vertices).run();
}

}  // namespace stowage
