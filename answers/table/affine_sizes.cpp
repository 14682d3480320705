#include "answers/table/affine_sizes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "estimator/memory/step_memory.hpp"

namespace stowage {

namespace {

using SharedSizes = std::shared_ptr<const SizedSteps>;

constexpr std::int64_t shortest_stretch = 64;
constexpr int most_failures = 12;  // stretches that are not affine, before none is tried any more
// Values beyond all that were asked about are taken from a stretch that ends far away: one of
// these.
constexpr std::array<std::int64_t, 3> far_values{std::int64_t{1} << 24, std::int64_t{1} << 20,
                                                 std::int64_t{1} << 16};

/// a + b value + c ceil(value / block).
struct AffineBytes {
  std::int64_t a = 0, b = 0, c = 0;
};

std::int64_t blocks_of(std::int64_t value, std::int64_t block) {
  return (value + block - 1) / block;
}

std::int64_t bytes_at(const AffineBytes& bytes, std::int64_t value, std::int64_t block) {
  return bytes.a + bytes.b * value + bytes.c * blocks_of(value, block);
}

/// Values with what is affine in them, in the order of the points.
template <typename T>
using AtPoints = std::array<T, 4>;

/// Through the first three; none: the fourth, or one of them by rounding, is not on it.
std::optional<AffineBytes> through(const AtPoints<std::int64_t>& values,
                                   const AtPoints<std::int64_t>& bytes, std::int64_t block) {
  const auto from_first = [&](std::size_t i) {
    return std::array<long double, 3>{
        static_cast<long double>(values[i] - values[0]),
        static_cast<long double>(blocks_of(values[i], block) - blocks_of(values[0], block)),
        static_cast<long double>(bytes[i] - bytes[0])};
  };
  const auto [v1, u1, d1] = from_first(1);
  const auto [v2, u2, d2] = from_first(2);
  const long double determinant = v1 * u2 - v2 * u1;
  AffineBytes affine;
  if (determinant == 0) {
    affine.b = std::llround(d1 / v1);
  } else {
    affine.b = std::llround((d1 * u2 - d2 * u1) / determinant);
    affine.c = std::llround((v1 * d2 - v2 * d1) / determinant);
  }
  affine.a = bytes[0] - affine.b * values[0] - affine.c * blocks_of(values[0], block);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (bytes_at(affine, values[i], block) != bytes[i]) return std::nullopt;
  }
  return affine;
}

bool may_be_affine(const SizedStep& step) {
  return std::ranges::none_of(step.graph->nodes, wants_workspace) &&
         !step.graph->settings.parallel.is_parallel() &&
         !step.graph->settings.parallel.runs_zero() && step.graph->host_buffers.empty();
}

bool is_alike(const Storage& a, const Storage& b) {
  Storage same_bytes = b;
  same_bytes.bytes = a.bytes;
  return a == same_bytes;
}

bool is_alike(const KernelNode& a, const KernelNode& b) {
  return a.kernel == b.kernel && a.phase == b.phase && a.reads.size() == b.reads.size() &&
         a.writes.size() == b.writes.size() && a.temporaries == b.temporaries;
}

bool is_alike(const Touches& a, const Touches& b) {
  return a.empty() == b.empty() && (a.empty() || (a.front() == b.front() && a.back() == b.back()));
}

/// All but sizes, as far as a process's memory depends on it.
bool is_alike(const StepGraph& a, const StepGraph& b) {
  const auto alike = [](const auto& x, const auto& y) { return is_alike(x, y); };
  return std::ranges::equal(a.storages, b.storages, alike) && a.script_holds == b.script_holds &&
         std::ranges::equal(a.nodes, b.nodes, alike) &&
         std::ranges::equal(storage_touches(a), storage_touches(b), alike);
}

/// A step's sizes over a stretch of values.
struct AffineStep {
  SizedStep like;  ///< at one of the values
  AffineBytes batch;
  std::vector<AffineBytes> storages;
};

std::optional<AffineStep> affine_step(const AtPoints<std::int64_t>& values,
                                      const AtPoints<const SizedStep*>& steps, std::int64_t block) {
  const SizedStep& first = *steps[0];
  if (!may_be_affine(first)) return std::nullopt;
  const bool all_alike = std::ranges::all_of(
      steps, [&](const SizedStep* step) { return is_alike(*first.graph, *step->graph); });
  if (!all_alike) return std::nullopt;
  const auto of_points = [&](auto count_of) {
    AtPoints<std::int64_t> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = count_of(*steps[i]);
    return through(values, counts, block);
  };
  AffineStep affine{.like = first, .batch = {}, .storages = {}};
  affine.like.flops.clear();
  affine.like.bytes_moved.clear();
  const auto batch = of_points([](const SizedStep& step) { return step.batch; });
  if (!batch) return std::nullopt;
  affine.batch = *batch;
  affine.storages.reserve(first.storage_bytes.size());
  for (std::size_t i = 0; i < first.storage_bytes.size(); ++i) {
    const auto bytes =
        of_points([&](const SizedStep& step) { return step.storage_bytes[i].count(); });
    if (!bytes) return std::nullopt;
    affine.storages.push_back(*bytes);
  }
  return affine;
}

SizedStep step_at(const AffineStep& affine, std::int64_t value, std::int64_t block) {
  SizedStep step = affine.like;
  step.batch = bytes_at(affine.batch, value, block);
  for (std::size_t i = 0; i < step.storage_bytes.size(); ++i) {
    step.storage_bytes[i] = Bytes(bytes_at(affine.storages[i], value, block));
  }
  return step;
}

/// The steps from a sized value to the next one.
struct Stretch {
  bool is_tried = false;
  std::vector<AffineStep> steps;  ///< none: they are not affine
  bool by_blocks = false;         ///< the same for all values of a block
};

class AffineSizes {
 public:
  AffineSizes(SizedAt exact, std::int64_t block, std::vector<std::int64_t> kinks)
      : exact_(std::move(exact)), block_(block), kinks_(std::move(kinks)) {}

  Result<SharedSizes> at_value(std::int64_t value) {
    for (;;) {
      const auto above = points_.lower_bound(value);
      if (above != points_.end() && above->first == value) return above->second.sizes;
      if (above == points_.begin()) return sized(value);
      if (above == points_.end()) {
        if (has_far_ || !find_far(value)) return sized(value);
        continue;
      }
      Point& below = std::prev(above)->second;
      const std::int64_t from = std::prev(above)->first, to = above->first;
      if (to - from < shortest_stretch) return sized(value);
      const bool gives_up = !below.stretch.is_tried && failures_ == most_failures;
      if (gives_up) return sized(value);
      if (!below.stretch.is_tried && !try_stretch(from, to)) return sized(value);
      if (!below.stretch.steps.empty()) return at_stretch(below.stretch, value, to);
    }
  }

 private:
  struct Point {
    SharedSizes sizes;
    Stretch stretch = {};  ///< from here to the next point
  };

  Result<SharedSizes> sized(std::int64_t value) {
    const auto known = points_.find(value);
    if (known != points_.end()) return known->second.sizes;
    auto sizes = exact_(value);
    // A value within a stretch that is known would part it; none is sized there.
    if (sizes) points_.emplace(value, Point{.sizes = *sizes});
    return sizes;
  }

  bool find_far(std::int64_t value) {
    has_far_ = true;
    for (const std::int64_t kink : kinks_) (void)sized(kink);
    return std::ranges::any_of(far_values,
                               [&](std::int64_t far) { return far > value && sized(far); });
  }

  // Sizes two values within. False: one of them cannot be sized.
  bool try_stretch(std::int64_t from, std::int64_t to) {
    // Kinks lie at small values more often than at large ones: hence the geometric mean.
    const std::int64_t middle = from + (to - from) / 2;
    const auto lower = static_cast<std::int64_t>(
        std::sqrt(static_cast<double>(from + block_) * static_cast<double>(to)));
    const AtPoints<std::int64_t> values{from, to, middle / block_ * block_ + 1,
                                        lower / block_ * block_ + block_ / 2 + 1};
    if (values[3] <= from || values[3] >= values[2]) return false;
    AtPoints<SharedSizes> all;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto sizes =
          i < 2 ? Result<SharedSizes>(points_.at(values[i]).sizes) : exact_(values[i]);
      if (!sizes) return false;
      all[i] = *sizes;
    }
    Stretch stretch{.is_tried = true, .steps = {}};
    for (std::size_t pass = 0; pass < all[0]->steps.size(); ++pass) {
      AtPoints<const SizedStep*> steps{};
      for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = &all[i]->steps[pass];
      auto affine = affine_step(values, steps, block_);
      if (!affine) break;
      stretch.steps.push_back(*std::move(affine));
    }
    if (stretch.steps.size() != all[0]->steps.size()) {
      // Each part is a stretch to be tried by itself.
      points_.emplace(values[2], Point{.sizes = all[2]});
      points_.emplace(values[3], Point{.sizes = all[3]});
      ++failures_;
      return true;
    }
    const auto grows_by_token = [](const AffineBytes& bytes) { return bytes.b != 0; };
    stretch.by_blocks = std::ranges::none_of(stretch.steps, [&](const AffineStep& step) {
      return grows_by_token(step.batch) || std::ranges::any_of(step.storages, grows_by_token);
    });
    points_.at(from).stretch = std::move(stretch);
    return true;
  }

  SharedSizes at_stretch(const Stretch& stretch, std::int64_t value, std::int64_t to) {
    if (stretch.by_blocks) value = std::min(blocks_of(value, block_) * block_, to);
    SharedSizes& known = made_[value];
    if (known) return known;
    SizedSteps sizes;
    sizes.steps.reserve(stretch.steps.size());
    for (const AffineStep& step : stretch.steps) {
      sizes.steps.push_back(step_at(step, value, block_));
    }
    known = std::make_shared<const SizedSteps>(std::move(sizes));
    return known;
  }

  SizedAt exact_;
  std::int64_t block_;
  std::vector<std::int64_t> kinks_;
  std::map<std::int64_t, Point> points_;      // that exact_ has sized
  std::map<std::int64_t, SharedSizes> made_;  // within stretches
  int failures_ = 0;
  bool has_far_ = false;  // a far value was asked for
};

}  // namespace

SizedAt affine_sizes(SizedAt exact, std::int64_t block, std::vector<std::int64_t> kinks) {
  const auto sizes = std::make_shared<AffineSizes>(std::move(exact), block, std::move(kinks));
  return [sizes](std::int64_t value) { return sizes->at_value(value); };
}

}  // namespace stowage
