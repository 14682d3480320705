#include "tests/gpu_probe/run/random_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "estimator/arena/arena.hpp"

namespace stowage::test {
namespace {

struct Use {
  std::int32_t step;
  bool reads, writes;
};

class PlanMaker {
 public:
  PlanMaker(const StepGraph& graph, std::int64_t batch, std::uint64_t seed,
            const PlanShares& shares)
      : graph_(graph),
        steps_(static_cast<std::int32_t>(graph.nodes.size())),
        random_(seed),
        shares_(shares) {
    plan_.name = "random";
    plan_.step = size_storages(std::make_shared<const StepGraph>(graph), batch).value();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      PlannedNode planned{.processor = chance(shares.on_cpu) ? cpu_processor : gpu_processor};
      if (planned.processor == gpu_processor && chance(shares.workspaces)) {
        planned.workspace = Bytes(1 + below(2000));
      }
      plan_.nodes.push_back(planned);
    }
  }

  Plan make() {
    for (std::size_t i = 0; i < graph_.storages.size(); ++i) place(StorageId::of(i));
    for (std::int32_t i = 0; i < steps_; ++i) widen(i);
    std::stable_sort(plan_.transfers.begin(), plan_.transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.begin < b.begin; });
    for (auto& residences : plan_.residences) {
      std::sort(residences.begin(), residences.end(), [](const Residence& a, const Residence& b) {
        return std::tuple(a.steps.begin, a.storage) < std::tuple(b.steps.begin, b.storage);
      });
    }
    pack();
    count_totals(plan_);
    return plan_;
  }

 private:
  bool chance(double share) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }
  std::int32_t below(std::int32_t bound) {
    return std::uniform_int_distribution<std::int32_t>(0, bound - 1)(random_);
  }
  std::int32_t between(std::int32_t low, std::int32_t high) { return low + below(high - low + 1); }

  std::vector<Use> uses_of(StorageId id) const {
    std::map<std::int32_t, Use> uses;
    const auto use = [&](std::size_t node) -> Use& {
      const auto step = static_cast<std::int32_t>(node);
      return uses.try_emplace(step, Use{step, false, false}).first->second;
    };
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const TensorView& v : graph_.nodes[i].reads) {
        if (v.storage == id) use(i).reads = true;
      }
      for (const TensorView& v : graph_.nodes[i].writes) {
        if (v.storage == id) use(i).writes = true;
      }
      for (const StorageId t : graph_.nodes[i].temporaries) {
        if (t == id) use(i);
      }
    }
    std::vector<Use> result;
    for (const auto& [step, u] : uses) result.push_back(u);
    return result;
  }

  bool on_gpu(const Use& use) const {
    return plan_.nodes[static_cast<std::size_t>(use.step)].processor == gpu_processor;
  }

  void place(StorageId id) {
    const std::vector<Use> uses = uses_of(id);
    if (uses.empty()) return;
    const Persistence persistence = graph_.storage(id).persistence;
    const bool all_gpu =
        std::all_of(uses.begin(), uses.end(), [&](const Use& u) { return on_gpu(u); });
    const bool stays =
        all_gpu && persistence != Persistence::from_host && !chance(shares_.visiting);
    if (!stays) return visit(id, uses, persistence);
    const bool whole = persistence == Persistence::persistent;
    if (whole && chance(shares_.visiting) && uses.front().step + 1 < uses.back().step &&
        all_reads_between(uses)) {
      return leave_and_return(id, uses);
    }
    plan_.in(gpu_memory)
        .push_back(
            {id, {whole ? 0 : uses.front().step, whole ? steps_ : uses.back().step + 1}, {}});
  }

  static bool all_reads_between(const std::vector<Use>& uses) {
    return uses.size() == 2 && !uses.front().writes && uses.back().reads;
  }

  /// The storage is on the GPU at the step's end and start, and on the host in between: two
  /// residences with one offset.
  void leave_and_return(StorageId id, const std::vector<Use>& uses) {
    const std::int32_t left = uses.front().step + 1, needed = uses.back().step;
    const std::int32_t down = between(left, needed), up = between(down, needed);
    const std::int32_t leaves = std::max(down, left);
    plan_.in(gpu_memory).push_back({id, {0, leaves}, {}});
    plan_.in(gpu_memory).push_back({id, {up, steps_}, {}});
    plan_.in(pinned_memory).push_back({id, {left, std::min(needed + 1, steps_)}, {}});
    plan_.transfers.push_back({id, download_link, between(left, down), down});
    plan_.transfers.push_back({id, upload_link, up, between(up, needed)});
  }

  /// The storage lives on the host. Each group of its uses on the GPU is a visit: if the first use
  /// reads, a copy to the GPU comes before it; if the visit writes and the value is needed later, a
  /// copy back comes after the last use.
  void visit(StorageId id, const std::vector<Use>& uses, Persistence persistence) {
    const bool persistent = persistence == Persistence::persistent;
    const bool transient = persistence == Persistence::transient;
    std::int32_t available = 0;  // the boundary from which on the host's copy is the newest
    std::int32_t host_begin = transient ? steps_ : 0, host_end = persistent ? steps_ : 0;
    for (std::size_t i = 0; i < uses.size();) {
      if (!on_gpu(uses[i])) {
        host_begin = std::min(host_begin, uses[i].step);
        host_end = std::max(host_end, uses[i].step + 1);
        available = uses[i++].step + 1;
        continue;
      }
      std::size_t last = i;
      while (last + 1 < uses.size() && on_gpu(uses[last + 1]) && chance(0.5)) ++last;
      const bool writes = std::any_of(uses.begin() + static_cast<std::ptrdiff_t>(i),
                                      uses.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                                      [](const Use& u) { return u.writes; });
      std::int32_t begin = uses[i].step, end = uses[last].step + 1;
      if (uses[i].reads) {
        begin = between(std::max(available, begin - 6), begin);
        const std::int32_t uploaded = between(begin, uses[i].step);
        plan_.transfers.push_back({id, upload_link, begin, uploaded});
        host_begin = std::min(host_begin, begin);
        host_end = std::max(host_end, std::min(uploaded + 1, steps_));
      }
      const bool needed_later = last + 1 < uses.size() ? uses[last + 1].reads : persistent;
      if (writes && needed_later) {
        const std::int32_t latest =
            std::min(last + 1 < uses.size() ? uses[last + 1].step : steps_, end + 6);
        const std::int32_t down = between(end, latest), done = between(down, latest);
        plan_.transfers.push_back({id, download_link, down, done});
        host_begin = std::min(host_begin, down);
        host_end = std::max(host_end, std::min(done + 1, steps_));
        end = std::max(end, done);
        available = done;
      } else {
        available = std::max(available, end);
      }
      plan_.in(gpu_memory).push_back({id, {begin, end}, {}});
      i = last + 1;
    }
    if (host_begin < host_end) plan_.in(pinned_memory).push_back({id, {host_begin, host_end}, {}});
  }

  [[nodiscard]] bool touches(std::int32_t node, StorageId id, bool* writes) const {
    for (const Use& use : uses_of(id)) {
      if (use.step != node) continue;
      *writes = use.writes;
      return true;
    }
    return false;
  }

  /// Draws a window for a node on the CPU, within what the nodes and copies around it allow, and
  /// keeps its storages on the host during it.
  void widen(std::int32_t node) {
    PlannedNode& planned = plan_.nodes[static_cast<std::size_t>(node)];
    if (planned.processor == gpu_processor || !chance(shares_.windows)) return;
    StepRange widest{0, steps_};
    const KernelNode& kernel = graph_.nodes[static_cast<std::size_t>(node)];
    for (std::size_t s = 0; s < graph_.storages.size(); ++s) {
      const StorageId id = StorageId::of(s);
      bool writes = false;
      if (!touches(node, id, &writes)) continue;
      writes = writes || std::ranges::find(kernel.temporaries, id) != kernel.temporaries.end();
      for (const Use& use : uses_of(id)) {
        if (use.step == node || (!writes && !use.writes)) continue;
        if (use.step > node && on_gpu(use)) widest.end = std::min(widest.end, use.step);
        if (use.step > node) continue;
        const StepRange earlier = window_of(plan_, NodeId{use.step});
        widest.begin = std::max(widest.begin, on_gpu(use) ? use.step + 1 : earlier.begin);
      }
      for (const Transfer& transfer : plan_.transfers) {
        if (transfer.storage != id) continue;
        if (!writes && transfer.link == upload_link) continue;
        if (transfer.end <= node) widest.begin = std::max(widest.begin, transfer.end);
        if (transfer.begin > node) widest.end = std::min(widest.end, transfer.begin);
      }
    }
    planned.window = {between(widest.begin, node), between(node + 1, widest.end)};
    for (Residence& residence : plan_.in(pinned_memory)) {
      bool writes = false;
      if (!touches(node, residence.storage, &writes)) continue;
      residence.steps.begin = std::min(residence.steps.begin, planned.window.begin);
      residence.steps.end = std::max(residence.steps.end, planned.window.end);
    }
  }

  // Packs the residences and workspaces on the GPU into one arena and the residences on the host
  // into another. The residences of a persistent storage at the step's start and at its end share
  // an offset.
  void pack() {
    std::vector<ArenaRequest> requests, on_host;
    std::map<StorageId, std::size_t> wrapping;  // residences that share an offset
    std::vector<std::size_t> request_of;
    for (const Residence& r : plan_.in(gpu_memory)) {
      const bool wraps = graph_.storage(r.storage).persistence == Persistence::persistent &&
                         (r.steps.begin == 0 || r.steps.end == steps_);
      const auto known = wrapping.find(r.storage);
      if (wraps && known != wrapping.end()) {
        requests[known->second].live.push_back(r.steps);
        request_of.push_back(known->second);
        continue;
      }
      if (wraps) wrapping[r.storage] = requests.size();
      request_of.push_back(requests.size());
      requests.push_back({{r.steps}, plan_.bytes(r.storage)});
    }
    std::vector<std::size_t> workspaces;
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (plan_.nodes[i].workspace == Bytes(0)) continue;
      const auto step = static_cast<std::int32_t>(i);
      workspaces.push_back(i);
      requests.push_back({{{step, step + 1}}, plan_.nodes[i].workspace});
    }
    const ArenaPacking packing = pack_arena(requests, {.effort = 0});
    plan_.totals.arena = packing.peak;
    std::vector<Residence>& on_gpu = plan_.in(gpu_memory);
    for (std::size_t i = 0; i < on_gpu.size(); ++i) {
      on_gpu[i].offset = packing.offsets[request_of[i]];
    }
    for (std::size_t i = 0; i < workspaces.size(); ++i) {
      plan_.nodes[workspaces[i]].workspace_offset =
          packing.offsets[requests.size() - workspaces.size() + i];
    }
    for (const Residence& r : plan_.in(pinned_memory)) {
      on_host.push_back({{r.steps}, plan_.bytes(r.storage)});
    }
    const ArenaPacking host = pack_arena(on_host, {.effort = 0});
    std::vector<Residence>& pinned = plan_.in(pinned_memory);
    for (std::size_t i = 0; i < pinned.size(); ++i) pinned[i].offset = host.offsets[i];
    plan_.totals.host_peak = host.peak;
  }

  const StepGraph& graph_;
  std::int32_t steps_;
  std::mt19937_64 random_;
  PlanShares shares_;
  Plan plan_;
};

}  // namespace

Plan random_plan(const StepGraph& graph, std::int64_t batch, std::uint64_t seed,
                 const PlanShares& shares) {
  return PlanMaker(graph, batch, seed, shares).make();
}

Plan resident_plan(const StepGraph& graph, std::int64_t batch) {
  return PlanMaker(graph, batch, 0, {.visiting = 0, .on_cpu = 0, .workspaces = 0}).make();
}

void count_totals(Plan& plan) {
  plan.totals.h2d = plan.totals.d2h = plan.totals.gpu_peak = Bytes(0);
  for (const Transfer& t : plan.transfers) {
    (t.link == upload_link ? plan.totals.h2d : plan.totals.d2h) += plan.bytes(t.storage);
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const auto step = static_cast<std::int32_t>(i);
    Bytes live = plan.nodes[i].workspace;
    for (const Residence& r : plan.in(gpu_memory)) {
      if (r.steps.begin <= step && step < r.steps.end) live += plan.bytes(r.storage);
    }
    plan.totals.gpu_peak = std::max(plan.totals.gpu_peak, live);
  }
}

}  // namespace stowage::test
