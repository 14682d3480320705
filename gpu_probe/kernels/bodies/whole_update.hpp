// Updates that read a whole parameter before they change it: LAMB and both Adafactors. One group of
// threads runs all of it, since there is no other place for the values that it finds first.
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/update.hpp"

namespace stowage::body {

/// LAMB: computes the norms, then updates. The corrections are Adam's.
template <class T, class Real>
struct Lamb {
  T* p;
  Floats g;
  T *moment, *square;
  Index elements;
  Real rate, decay, share1, beta2, share2, epsilon, correction1, correction2;

  STOWAGE_BODY void operator()(Index, const Group& group) const {
    Pair<Real> sums{0, 0};  // the sums of the squares of weights and of updates
    for (Index i = group.rank(); i < elements; i += group.size()) {
      const Real gradient = g.at<Real>(i), weight = load<Real>(p, i);
      store(moment, i, lerp(load<Real>(moment, i), gradient, share1));
      store(square, i, beta2 * load<Real>(square, i) + share2 * gradient * gradient);
      const Real change = update(i);
      sums = sums + Pair<Real>{weight * weight, change * change};
    }
    sums = sum_of(group, sums);
    const bool adapts = decay != 0 && sums.first > 0 && sums.second > 0;
    const Real by = rate * (adapts ? body::sqrt(sums.first / sums.second) : Real(1));
    for (Index i = group.rank(); i < elements; i += group.size()) {
      store(p, i, load<Real>(p, i) - by * update(i));
    }
  }

 private:
  [[nodiscard]] STOWAGE_BODY Real update(Index i) const {
    const Real root = body::sqrt(load<Real>(square, i));
    return load<Real>(moment, i) / correction1 / (root / correction2 + epsilon) +
           decay * load<Real>(p, i);
  }
};

/// Adafactor. The second moment of a matrix (the axes before the last two are a batch) is kept as
/// rows and columns; that of a parameter with one axis is kept as it is. The update's root mean
/// square is clipped.
template <class T, class Real>
struct Adafactor {
  T* p;
  Floats g;
  Floats moment;       ///< of the update; without an address: none
  Floats row, column;  ///< or, in `row`, the second moment as it is
  Index elements, rows, columns;
  bool is_factored;
  Real relative;  ///< the rate divided by the parameter's root mean square
  Real kept;      ///< the factor of the parameter before the update
  Real decay;     ///< share of the parameter in the update, times the rate
  Real share;     ///< share of the gradient in the second moment
  Real share1;    ///< share of the update in its moment
  Real clip;      ///< the update's largest root mean square
  Real addend;    ///< added to the gradient's squares
  Real estimate;  ///< the smallest second moment
  Real mean;      ///< the smallest mean of its rows

  STOWAGE_BODY void operator()(Index, const Group& group) const {
    constexpr Real smallest_scale = static_cast<Real>(1e-3);
    Real squares = 0;
    for (Index i = group.rank(); i < elements; i += group.size()) {
      const Real value = load<Real>(p, i);
      squares += value * value;
    }
    squares = sum_of(group, squares);
    const Real root = body::sqrt(squares / static_cast<Real>(elements));
    const Real rate = relative * most(smallest_scale, root);
    if (kept != 1) {
      for (Index i = group.rank(); i < elements; i += group.size()) {
        store(p, i, load<Real>(p, i) * kept);
      }
    }
    follow(group);
    group.synchronize();
    Real updates = 0;
    each_estimate(group, [&](Index i, Real of) {
      const Real update = g.at<Real>(i) / body::sqrt(most(of, estimate));
      updates += update * update;
    });
    updates = sum_of(group, updates);
    const Real clipped = most(Real(1), body::sqrt(updates / static_cast<Real>(elements)) / clip);
    each_estimate(group, [&](Index i, Real of) {
      apply(i, g.at<Real>(i) / body::sqrt(most(of, estimate)) / clipped * rate, rate);
    });
  }

 private:
  STOWAGE_BODY void apply(Index i, Real update, Real rate) const {
    if (moment.is_there()) {
      update = lerp(moment.at<Real>(i), update, share1);
      moment.set(i, update);
    }
    store(p, i, load<Real>(p, i) * (1 - decay * rate) - update);
  }

  STOWAGE_BODY void follow(const Group& group) const {
    if (!is_factored) {
      for (Index i = group.rank(); i < elements; i += group.size()) {
        const Real gradient = g.at<Real>(i);
        row.set(i, lerp(row.at<Real>(i), gradient * gradient + addend, share));
      }
      return;
    }
    for (Index r = group.rank(); r < quotient(elements, columns); r += group.size()) {
      row.set(r, lerp(row.at<Real>(r), mean_square(r * columns, columns, 1), share));
    }
    for (Index c = group.rank(); c < quotient(elements, rows); c += group.size()) {
      const Index matrix = quotient(c, columns);
      const Index first = matrix * rows * columns + (c - matrix * columns);
      column.set(c, lerp(column.at<Real>(c), mean_square(first, rows, columns), share));
    }
  }
  [[nodiscard]] STOWAGE_BODY Real mean_square(Index first, Index count, Index step) const {
    Real squares = 0;
    for (Index i = 0; i < count; ++i) {
      const Real gradient = g.at<Real>(first + i * step);
      squares += gradient * gradient + addend;
    }
    return squares / static_cast<Real>(count);
  }

  /// Calls visit(i, the estimate of the second moment), distributed over the threads: a thread
  /// always gets the same elements.
  template <class Visit>
  STOWAGE_BODY void each_estimate(const Group& group, Visit visit) const {
    if (!is_factored) {
      for (Index i = group.rank(); i < elements; i += group.size()) visit(i, row.at<Real>(i));
      return;
    }
    const Index area = rows * columns;
    if (area < group.size()) {  // small matrices: each thread computes its element's mean
      for (Index i = group.rank(); i < elements; i += group.size()) {
        const Index matrix = quotient(i, area);
        visit(i, factored(matrix, i - matrix * area, sum_of_rows(matrix, 0, 1)));
      }
      return;
    }
    for (Index matrix = 0; matrix < quotient(elements, area); ++matrix) {
      const Real sum = sum_of(group, sum_of_rows(matrix, group.rank(), group.size()));
      for (Index k = group.rank(); k < area; k += group.size()) {
        visit(matrix * area + k, factored(matrix, k, sum));
      }
    }
  }
  /// The sum of the rows begin, begin + step, ... of a matrix.
  [[nodiscard]] STOWAGE_BODY Real sum_of_rows(Index matrix, Index begin, Index step) const {
    Real sum = 0;
    for (Index r = begin; r < rows; r += step) sum += row.at<Real>(matrix * rows + r);
    return sum;
  }
  [[nodiscard]] STOWAGE_BODY Real factored(Index matrix, Index k, Real sum) const {
    const Index r = quotient(k, columns), c = k - r * columns;
    // Divided first, since the product of the smallest rows and columns is below float32's range.
    const Real mean_of_rows = most(sum / static_cast<Real>(rows), mean);
    return row.at<Real>(matrix * rows + r) / mean_of_rows * column.at<Real>(matrix * columns + c);
  }
};

}  // namespace stowage::body
