// Extrema, variances and norms over some axes of a tensor, and their gradients. The index is an
// element of y; its elements of x lie at kept.offset(i) + gone.offset(j).
#pragma once

#include "gpu_probe/kernels/bodies/alone.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

enum class Statistic : Byte { maximum, minimum, variance, deviation, norm };

struct Minimum {  ///< NaN if one is, as in PyTorch
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};

/// `number`: the correction of a variance, or the p of a norm.
template <class T, class Real>
struct StatisticOver {
  const T* x;
  Strided kept, gone;
  Index together;
  Statistic statistic;
  Real number;

  [[nodiscard]] STOWAGE_BODY Real at(Index first, Index j) const {
    return load<Real>(x, first + gone.offset(j));
  }
  [[nodiscard]] STOWAGE_BODY bool is_extreme_norm() const {
    return statistic == Statistic::norm && fabs(number) == infinity<Real>();
  }
  /// The number of elements minus the correction, at least 0 as in PyTorch.
  [[nodiscard]] STOWAGE_BODY Real freedom() const {
    return most(static_cast<Real>(together) - number, Real(0));
  }

  template <class Threads, class Combine>
  [[nodiscard]] STOWAGE_BODY Real extremum(Index first, const Threads& threads,
                                           Combine combine) const {
    const auto element = [&](Index j) {
      return is_extreme_norm() ? fabs(at(first, j)) : at(first, j);
    };
    Real found = element(least(threads.rank(), together - 1));
    for (Index j = threads.rank(); j < together; j += threads.size()) {
      found = combine(found, element(j));
    }
    return threads.combined(found, combine);
  }

  template <class Threads, class Term>
  [[nodiscard]] STOWAGE_BODY Real sum(const Threads& threads, Term term) const {
    Real total = 0;
    for (Index j = threads.rank(); j < together; j += threads.size()) total += term(j);
    return threads.combined(total, Sum{});
  }

  template <class Threads>
  [[nodiscard]] STOWAGE_BODY Real mean(Index first, const Threads& threads) const {
    return sum(threads, [&](Index j) { return at(first, j); }) / static_cast<Real>(together);
  }

  /// The sum of |x|^p.
  template <class Threads>
  [[nodiscard]] STOWAGE_BODY Real powers(Index first, const Threads& threads) const {
    return sum(threads, [&](Index j) {
      const Real value = at(first, j), size = fabs(value);
      if (number == 0) return value == 0 ? Real(0) : Real(1);
      return number == 1 ? size : number == 2 ? value * value : pow(size, number);
    });
  }

  template <class Threads>
  [[nodiscard]] STOWAGE_BODY Real value(Index i, const Threads& threads) const {
    const Index first = kept.offset(i);
    if (statistic == Statistic::maximum || (is_extreme_norm() && number > 0)) {
      return extremum(first, threads, Maximum{});
    }
    if (statistic == Statistic::minimum || is_extreme_norm())
      return extremum(first, threads, Minimum{});
    if (statistic == Statistic::norm) {
      const Real total = powers(first, threads);
      if (number == 0 || number == 1) return total;
      return number == 2 ? sqrt(total) : pow(total, 1 / number);
    }
    const Real middle = mean(first, threads);
    const Real squares = sum(threads, [&](Index j) {
      const Real apart = at(first, j) - middle;
      return apart * apart;
    });
    const Real variance = squares / freedom();
    return statistic == Statistic::deviation ? sqrt(variance) : variance;
  }
};

template <class T, class Real>
struct StatisticForward {
  StatisticOver<T, Real> over;
  Floats y;

  template <class Threads>
  STOWAGE_BODY void run(Index i, const Threads& threads) const {
    const Real value = over.value(i, threads);
    if (threads.rank() == 0) y.set(i, value);
  }
  STOWAGE_BODY void operator()(Index i) const { run(i, Alone{}); }
  STOWAGE_BODY void operator()(Index i, const Group& group) const { run(i, group); }
};

/// Gradients by PyTorch's formulas (FunctionsManual.cpp: scale_grad_by_count, var_backward,
/// std_backward, linalg_vector_norm_backward). Equal extrema share the gradient; a norm or a
/// deviation of 0 gets none.
template <class T, class Real>
struct StatisticBackward {
  StatisticOver<T, Real> over;
  Floats y, dy;
  T* dx;

  /// A separate function, since device code cannot have a generic lambda here.
  template <class Threads, class Slope>
  STOWAGE_BODY void write(Index first, const Threads& threads, const Slope& slope) const {
    for (Index j = threads.rank(); j < over.together; j += threads.size()) {
      store(dx, first + over.gone.offset(j), slope(over.at(first, j)));
    }
  }

  template <class Threads>
  STOWAGE_BODY void run(Index i, const Threads& threads) const {
    const Index first = over.kept.offset(i);
    const Real result = y.at<Real>(i), arrives = dy.at<Real>(i);
    const bool extreme_norm = over.is_extreme_norm();
    if (over.statistic == Statistic::norm && !extreme_norm) {
      write(first, threads, [&](Real x) { return norm_slope(x, result) * arrives; });
    } else if (over.statistic == Statistic::variance || over.statistic == Statistic::deviation) {
      const Real middle = over.mean(first, threads);
      const Real spread = over.statistic == Statistic::variance ? Real(0.5) : result;
      const Real factor = result == 0 && over.statistic == Statistic::deviation
                              ? Real(0)
                              : arrives / (spread * over.freedom());
      write(first, threads, [&](Real x) { return factor * (x - middle); });
    } else {
      const auto is_extreme = [&](Real x) { return (extreme_norm ? fabs(x) : x) == result; };
      const Real count = over.sum(
          threads, [&](Index j) { return is_extreme(over.at(first, j)) ? Real(1) : Real(0); });
      write(first, threads, [&](Real x) {
        return !is_extreme(x) ? Real(0)
               : extreme_norm ? sign(x) * arrives / count
                              : arrives / count;
      });
    }
  }
  STOWAGE_BODY void operator()(Index i) const { run(i, Alone{}); }
  STOWAGE_BODY void operator()(Index i, const Group& group) const { run(i, group); }

 private:
  [[nodiscard]] STOWAGE_BODY static Real sign(Real x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

  [[nodiscard]] STOWAGE_BODY Real norm_slope(Real x, Real result) const {
    const Real p = over.number;
    if (p == 0) return 0;
    if (p == 1) return sign(x);
    if (result == 0 || (x == 0 && p != 2)) return 0;
    return p == 2 ? x / result : sign(x) * pow(fabs(x) / result, p - 1);
  }
};

}  // namespace stowage::body
