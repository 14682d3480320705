// Losses over classes. Logits (or log-probabilities) are lines along the classes, with one target
// for each line. The loss is the mean over the targets that are not `ignored`. A target that is no
// class makes NaN.
#pragma once

#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/bodies/lines.hpp"

namespace stowage::body {

struct Targets {
  Integers classes;
  Index ignored;
  Index count;

  [[nodiscard]] STOWAGE_BODY bool is_ignored(Index line) const {
    return classes.at(line) == ignored;
  }
};

/// The number of targets that are not ignored; the same for all threads of the group.
STOWAGE_BODY Index not_ignored(const Group& group, const Targets& targets) {
  Index counted = 0;
  for (Index i = group.rank(); i < targets.count; i += group.size()) {
    if (!targets.is_ignored(i)) ++counted;
  }
  return sum_of(group, counted);
}

/// Computes, with one group, the mean of term(line) over the targets that are not ignored.
template <class Real, class Term>
STOWAGE_BODY void mean_of_targets(const Group& group, const Targets& targets, const Floats& loss,
                                  Term term) {
  Real sum = 0;
  for (Index i = group.rank(); i < targets.count; i += group.size()) {
    if (!targets.is_ignored(i)) sum += term(i);
  }
  sum = sum_of(group, sum);
  const Index counted = not_ignored(group, targets);
  if (group.rank() == 0) loss.set(0, sum / static_cast<Real>(counted));
}

template <class T, class Real>
struct ClassLines {
  const T* x;
  Lines lines;
  Targets targets;

  [[nodiscard]] STOWAGE_BODY bool has_class(Index line) const {
    const Index target = targets.classes.at(line);
    return target >= 0 && target < lines.length;
  }
  /// The value at the target's class.
  [[nodiscard]] STOWAGE_BODY Real at_target(Index line) const {
    if (!has_class(line)) return not_a_number<Real>();
    return load<Real>(x, lines.first(line) + targets.classes.at(line) * lines.inner);
  }
};

/// The part of a line's loss that does not depend on other lines. `smoothing`: the share of a
/// target's weight that is spread over all classes.
template <class T, class Real>
struct SmoothedTarget {
  ClassLines<T, Real> logits;
  Real smoothing;

  /// The sum of the logits, weighted as the target weights the classes.
  template <class Threads>
  [[nodiscard]] STOWAGE_BODY Real wanted(Index line, const Threads& threads) const {
    const Real at_target = logits.at_target(line);
    if (smoothing == 0) return at_target;
    const Lines& lines = logits.lines;
    const T* const first = logits.x + lines.first(line);
    Real sum = 0;
    for (Index k = threads.rank(); k < lines.length; k += threads.size()) {
      sum += load<Real>(first, k * lines.inner);
    }
    sum = threads.combined(sum, Sum{});
    return (1 - smoothing) * at_target + smoothing * sum / static_cast<Real>(lines.length);
  }
};

// Cross-entropy's forward pass is three launches. They hand values on in the place of `logsumexp`.
// The first stores each line's own loss there, log(sum of e^x) - (weighted logits): this difference
// is taken before it is rounded, since for a sure prediction both terms are large and nearly equal.
// The second averages the losses. The third turns each loss into log(sum of e^x).

/// First launch. Where the target is ignored or is no class, it stores log(sum of e^x) at once.
template <class T, class Real>
struct CrossEntropyTerms {
  SmoothedTarget<T, Real> target;
  Floats terms;

  template <class Threads>
  STOWAGE_BODY void run(Index line, const Threads& threads) const {
    const ClassLines<T, Real>& logits = target.logits;
    const Lines& lines = logits.lines;
    const Exponentials<Real> e =
        exponentials<Real>(threads, logits.x + lines.first(line), lines.inner, lines.length);
    const bool counts = !logits.targets.is_ignored(line) && logits.has_class(line);
    const Real wanted = counts ? target.wanted(line, threads) : Real(0);
    if (threads.rank() == 0) terms.set(line, e.largest - wanted + body::log(e.sum));
  }
  STOWAGE_BODY void operator()(Index line) const { run(line, Alone{}); }
  STOWAGE_BODY void operator()(Index line, const Group& group) const { run(line, group); }
};

template <class T, class Real>
struct CrossEntropyMean {
  ClassLines<T, Real> logits;
  Floats terms, loss;

  STOWAGE_BODY void operator()(Index, const Group& group) const {
    mean_of_targets<Real>(group, logits.targets, loss, [&](Index line) {
      return logits.has_class(line) ? terms.at<Real>(line) : not_a_number<Real>();
    });
  }
};

template <class T, class Real>
struct CrossEntropySums {
  SmoothedTarget<T, Real> target;
  Floats sums;

  template <class Threads>
  STOWAGE_BODY void run(Index line, const Threads& threads) const {
    const ClassLines<T, Real>& logits = target.logits;
    const Lines& lines = logits.lines;
    if (logits.targets.is_ignored(line) || !logits.has_class(line)) return;
    Real sum = sums.at<Real>(line) + target.wanted(line, threads);
    if (!(fabs(sum) < infinity<Real>())) {  // a logit is not finite: follow the definition
      const Exponentials<Real> e =
          exponentials<Real>(threads, logits.x + lines.first(line), lines.inner, lines.length);
      sum = e.largest + body::log(e.sum);
    }
    if (threads.rank() == 0) sums.set(line, sum);
  }
  STOWAGE_BODY void operator()(Index line) const { run(line, Alone{}); }
  STOWAGE_BODY void operator()(Index line, const Group& group) const { run(line, group); }
};

/// A part of the elements of [outer, length, inner], for bodies whose group first counts all
/// targets. The index is the number of the part.
struct Parts {
  Index elements, of_part;

  /// Calls visit(element, line, position on the line), without dividing for each element.
  template <class Visit>
  STOWAGE_BODY void each(const Group& group, Index part, const Lines& lines, Visit visit) const {
    const Index begin = part * of_part + group.rank(), end = least((part + 1) * of_part, elements);
    const Index rows = begin / lines.inner, rows_a_step = group.size() / lines.inner;
    const Index inner_a_step = group.size() % lines.inner;
    const Index outer_a_step = rows_a_step / lines.length, k_a_step = rows_a_step % lines.length;
    Index inner = begin % lines.inner, outer = rows / lines.length, k = rows % lines.length;
    for (Index i = begin; i < end; i += group.size()) {
      visit(i, outer * lines.inner + inner, k);
      inner += inner_a_step;
      if (inner >= lines.inner) {
        inner -= lines.inner;
        ++k;
      }
      k += k_a_step;
      if (k >= lines.length) {
        k -= lines.length;
        ++outer;
      }
      outer += outer_a_step;
    }
  }
};

/// Backward; dlogits may be the logits.
template <class T, class Real>
struct CrossEntropyBackward {
  ClassLines<T, Real> logits;
  Floats sums;
  T* dlogits;
  Parts parts;
  Real smoothing, scale;

  STOWAGE_BODY void operator()(Index part, const Group& group) const {
    const Targets& targets = logits.targets;
    const Real factor = scale / static_cast<Real>(not_ignored(group, targets));
    const Real spread = smoothing / static_cast<Real>(logits.lines.length);
    parts.each(group, part, logits.lines, [&](Index i, Index line, Index k) {
      const Index target = targets.classes.at(line);
      if (target == targets.ignored) return store(dlogits, i, Real(0));
      const Real share = body::exp(load<Real>(logits.x, i) - sums.at<Real>(line));
      const Real wanted = !logits.has_class(line) ? not_a_number<Real>()
                          : k == target           ? spread + (1 - smoothing)
                                                  : spread;
      store(dlogits, i, factor * (share - wanted));
    });
  }
};

template <class T, class Real>
struct NllForward {
  ClassLines<T, Real> logp;
  Floats loss;

  STOWAGE_BODY void operator()(Index, const Group& group) const {
    mean_of_targets<Real>(group, logp.targets, loss,
                          [&](Index line) { return -logp.at_target(line); });
  }
};

template <class T, class Real>
struct NllBackward {
  ClassLines<T, Real> logp;
  T* dlogp;
  Parts parts;
  Real scale;

  STOWAGE_BODY void operator()(Index part, const Group& group) const {
    const Targets& targets = logp.targets;
    const Real factor = scale / static_cast<Real>(not_ignored(group, targets));
    parts.each(group, part, logp.lines, [&](Index i, Index line, Index k) {
      const Index target = targets.classes.at(line);
      const Real wanted = !logp.has_class(line) ? not_a_number<Real>()
                          : k == target         ? -factor
                                                : Real(0);
      store(dlogp, i, target == targets.ignored ? Real(0) : wanted);
    });
  }
};

}  // namespace stowage::body
