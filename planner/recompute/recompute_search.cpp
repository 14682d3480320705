#include "planner/recompute/recompute_search.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "planner/recompute/segments.hpp"

namespace stowage {

namespace {

constexpr std::uint64_t seed = 1;
constexpr std::int64_t trials_between_polls = 16;
constexpr std::int64_t nodes_a_unit = 150;  // of work (work_budget.hpp), in one trial
constexpr int epochs = 64;
constexpr int greedy_rounds = 64;

class Search {
 public:
  Search(RecomputeModel& model, const SizedStep& step, const RecomputeSearchOptions& options)
      : model_(model),
        step_(step),
        options_(options),
        count_(model.groups().size()),
        decisions_(model.decisions()),
        work_of_trial_(1 + static_cast<std::int64_t>(step.graph->nodes.size()) / nodes_a_unit) {}

  FoundChoice run(const RecomputeChoice& hint) && {
    best_ = tried(RecomputeChoice(decisions_, false));
    if (fits(best_.outcome) || decisions_ == count_) return best_;
    set_price();
    if (hint.size() == decisions_) (void)tried(hint);
    try_segments();
    choose_greedily();
    accept_by_threshold();
    drop_needless_reruns();
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool fits(const RecomputeOutcome& outcome) const {
    return outcome.valid && outcome.peak <= options_.limit;
  }

  /// The order of outcomes: those that fit are better, then fewer seconds; without a fit, less
  /// excess.
  [[nodiscard]] bool is_better(const RecomputeOutcome& a, const RecomputeOutcome& b) const {
    if (a.valid != b.valid) return a.valid;
    if (fits(a) != fits(b)) return fits(a);
    if (!fits(a)) return a.excess < b.excess;
    return a.extra_seconds < b.extra_seconds ||
           (a.extra_seconds == b.extra_seconds && a.peak < b.peak);
  }

  FoundChoice tried(RecomputeChoice choice) {
    ++trials_;
    if (options_.work != nullptr) options_.work->spend(work_of_trial_);
    FoundChoice found{std::move(choice), {}};
    found.outcome = model_.outcome(found.choice, options_.limit);
    if (best_.choice.empty() || is_better(found.outcome, best_.outcome)) best_ = found;
    return found;
  }

  [[nodiscard]] bool is_over() {
    if (trials_ >= options_.most_trials) return true;
    if (stopped_ || options_.work == nullptr || ++polls_ % trials_between_polls != 0) {
      return stopped_;
    }
    return stopped_ = options_.work->is_over();
  }

  // Sets the price of excess: all of it costs four times as much as running everything again.
  void set_price() {
    for (std::size_t g = 0; g < count_; ++g) all_seconds_ += model_.seconds(g);
    price_ = 4 * all_seconds_ / std::max(1.0, best_.outcome.excess);
  }
  [[nodiscard]] double cost(const RecomputeOutcome& outcome) const {
    return outcome.extra_seconds + price_ * outcome.excess + (outcome.valid ? 0 : all_seconds_);
  }

  void try_segments() {
    const std::size_t most = std::min(count_, 4 * default_segment_count(model_));
    for (std::size_t segments = 2; segments <= most && !is_over(); ++segments) {
      const RecomputeChoice choice = segment_choice(model_, step_, segments);
      (void)tried(choice);
    }
    RecomputeChoice all(decisions_, false);
    std::fill_n(all.begin(), count_, true);
    (void)tried(std::move(all));
  }

  /// Groups that save memory, in the order of bytes saved for each second.
  [[nodiscard]] std::vector<std::size_t> by_bytes_per_second() const {
    std::vector<std::size_t> order;
    for (std::size_t g = 0; g < count_; ++g) {
      if (model_.saved(g) > Bytes()) order.push_back(g);
    }
    const auto ratio = [&](std::size_t g) {
      return static_cast<double>(model_.saved(g).count()) / std::max(1e-9, model_.seconds(g));
    };
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return ratio(a) > ratio(b); });
    return order;
  }

  struct Candidate {
    std::size_t group = 0;
    double ratio = 0;  // of excess saved to seconds
  };

  /// The first `most` groups of `left` that lower the excess, the best ratio first.
  [[nodiscard]] std::vector<Candidate> ranked(const FoundChoice& at,
                                              const std::vector<std::size_t>& left,
                                              std::size_t most) {
    std::vector<Candidate> ranked;
    for (std::size_t i = 0; i < std::min(left.size(), most) && !is_over(); ++i) {
      RecomputeChoice choice = at.choice;
      choice[left[i]] = true;
      const RecomputeOutcome outcome = tried(std::move(choice)).outcome;
      const double saves = at.outcome.excess - outcome.excess;
      if (saves <= 0 || !outcome.valid) continue;
      const double more = outcome.extra_seconds - at.outcome.extra_seconds;
      ranked.push_back({left[i], saves / std::max(more, 1e-9)});
    }
    std::ranges::stable_sort(ranked, std::greater(), &Candidate::ratio);
    return ranked;
  }

  // Groups whose results backward does not read are always chosen: they run again only for other
  // groups that do, and the later search tries to keep them instead. Of the rest some are added in
  // each round, one by one, until everything fits.
  void choose_greedily() {
    FoundChoice at{RecomputeChoice(decisions_, false), {}};
    for (std::size_t g = 0; g < count_; ++g) at.choice[g] = model_.saved(g) == Bytes();
    at = tried(std::move(at.choice));
    std::vector<std::size_t> left = by_bytes_per_second();
    const std::size_t taken_at_once = left.size() / greedy_rounds + 1;
    const auto looked_at = static_cast<std::size_t>(
        std::max<std::int64_t>(8, options_.most_trials / 3 / greedy_rounds));
    while (!left.empty() && !fits(at.outcome) && !is_over()) {
      std::vector<Candidate> best = ranked(at, left, looked_at);
      best.resize(std::min(best.size(), taken_at_once));
      for (const Candidate& candidate : best) {
        RecomputeChoice choice = at.choice;
        choice[candidate.group] = true;
        FoundChoice next = tried(std::move(choice));
        std::erase(left, candidate.group);
        if (next.outcome.excess < at.outcome.excess) at = std::move(next);
        if (fits(at.outcome)) return;
      }
      if (best.empty()) {
        const std::size_t useless = std::min(left.size(), looked_at);
        left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(useless));
      }
    }
  }

  [[nodiscard]] std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(random_() % static_cast<std::uint64_t>(n));
  }

  [[nodiscard]] std::size_t renewed_group(std::size_t decision) const {
    return static_cast<std::size_t>(model_.renewals()[decision - count_].group);
  }

  [[nodiscard]] RecomputeChoice neighbour(RecomputeChoice choice) {
    const std::size_t kind = below(20), group = below(count_);
    if (kind >= 16) {  // a renewal
      const std::size_t renewal = count_ + below(decisions_ - count_);
      choice[renewal] = !choice[renewal];
      if (kind >= 18) choice[renewed_group(renewal)] = true;
      return choice;
    }
    choice[group] = !choice[group];
    if (kind < 8) return choice;
    if (kind < 12) {  // and one the other way
      for (int attempt = 0; attempt < 8; ++attempt) {
        const std::size_t other = below(count_);
        if (other == group || choice[other] != choice[group]) continue;
        choice[other] = !choice[other];
        return choice;
      }
    } else if (kind < 14) {  // and what it reads
      for (const std::int32_t input : model_.inputs(group)) {
        choice[static_cast<std::size_t>(input)] = choice[group];
      }
    } else {  // and a row of its neighbours
      const std::size_t end = std::min(count_, group + 2 + below(8));
      for (std::size_t g = group + 1; g < end; ++g) choice[g] = choice[group];
    }
    return choice;
  }

  void accept_by_threshold() {
    FoundChoice at = best_;
    const std::int64_t each = std::max<std::int64_t>(1, (options_.most_trials - trials_) / epochs);
    const double first_threshold =
        2 * std::max(at.outcome.extra_seconds, all_seconds_ / 4) / static_cast<double>(count_);
    for (int epoch = 0; epoch < epochs && !is_over(); ++epoch) {
      const double left = 1.0 - (epoch + 1.0) / epochs;
      const double threshold = first_threshold * left * left;
      for (std::int64_t i = 0; i < each && !is_over(); ++i) {
        FoundChoice next = tried(neighbour(at.choice));
        if (cost(next.outcome) <= cost(at.outcome) + threshold) at = std::move(next);
      }
      price_ *= fits(at.outcome) ? 0.8 : 1.5;
      // Every eighth epoch goes on from the best choice.
      if (epoch % 8 == 7) at = best_;
    }
  }

  // Flips decisions of the best choice, groups with the longest second runs first, as long as that
  // saves time. Not limited by the number of trials: there are at most a few rounds.
  void drop_needless_reruns() {
    std::vector<std::size_t> order(count_);
    for (std::size_t g = 0; g < count_; ++g) order[g] = g;
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return model_.seconds(a) > model_.seconds(b); });
    bool improves = fits(best_.outcome);
    for (int round = 0; improves && round < 4 && !stopped_; ++round) {
      improves = false;
      for (const std::size_t decision : order) {
        RecomputeChoice choice = best_.choice;
        choice[decision] = !choice[decision];
        const double before = best_.outcome.extra_seconds;
        improves |= tried(std::move(choice)).outcome.valid && best_.outcome.extra_seconds < before;
      }
    }
  }

  RecomputeModel& model_;
  const SizedStep& step_;
  const RecomputeSearchOptions& options_;
  std::size_t count_, decisions_;  // groups; those and renewals
  std::int64_t work_of_trial_;
  FoundChoice best_;
  double all_seconds_ = 0, price_ = 0;
  std::int64_t trials_ = 0, polls_ = 0;
  bool stopped_ = false;
  std::mt19937_64 random_{seed};
};

}  // namespace

FoundChoice search_choice(RecomputeModel& model, const SizedStep& step,
                          const RecomputeSearchOptions& options, const RecomputeChoice& hint) {
  return Search(model, step, options).run(hint);
}

}  // namespace stowage
