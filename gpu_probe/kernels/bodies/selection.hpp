// Comparisons, logic on masks, and selection by masks. The index is an element of y.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

enum class Comparison : Byte { eq, ne, lt, le, gt, ge };

template <class T>
STOWAGE_BODY bool holds(Comparison comparison, T a, T b) {
  switch (comparison) {
    case Comparison::eq:
      return a == b;
    case Comparison::ne:
      return a != b;
    case Comparison::lt:
      return a < b;
    case Comparison::le:
      return a <= b;
    case Comparison::gt:
      return a > b;
    case Comparison::ge:
      return a >= b;
  }
  return false;
}

/// Compares floating-point numbers in any formats; without b, with `value`.
struct CompareFloats {
  Floats a, b;
  Byte* y;
  Strided of_a, of_b;
  double value;
  Comparison comparison;
  STOWAGE_BODY void operator()(Index i) const {
    const double first = a.at<double>(of_a.offset(i));
    const double second = b.is_there() ? b.at<double>(of_b.offset(i)) : value;
    y[i] = holds(comparison, first, second) ? 1 : 0;
  }
};

/// Compares whole numbers and booleans.
struct CompareIntegers {
  Integers a, b;
  Byte* y;
  Strided of_a, of_b;
  double value;
  Comparison comparison;
  STOWAGE_BODY void operator()(Index i) const {
    const Index first = a.at(of_a.offset(i));
    const bool result = b.is_there() ? holds(comparison, first, b.at(of_b.offset(i)))
                                     : holds(comparison, static_cast<double>(first), value);
    y[i] = result ? 1 : 0;
  }
};

enum class Connective : Byte { conjunction, disjunction, exclusive, negation };

/// Logic on masks; y may be an operand that is not repeated.
struct Logical {
  const Byte *a, *b;  ///< b: null for a negation
  Byte* y;
  Strided of_a, of_b;
  Connective connective;
  STOWAGE_BODY void operator()(Index i) const {
    const bool first = a[of_a.offset(i)] != 0;
    const bool second = b != nullptr && b[of_b.offset(i)] != 0;
    bool result = !first;
    if (connective == Connective::conjunction) result = first && second;
    if (connective == Connective::disjunction) result = first || second;
    if (connective == Connective::exclusive) result = first != second;
    y[i] = result ? 1 : 0;
  }
};

template <class Word>
struct Select {
  const Byte* condition;
  const Word *a, *b;
  Word* y;
  Strided of_condition, of_a, of_b;
  STOWAGE_BODY void operator()(Index i) const {
    y[i] = condition[of_condition.offset(i)] != 0 ? a[of_a.offset(i)] : b[of_b.offset(i)];
  }
};

/// Keeps a triangle of matrices of `columns`; y may be x.
template <class Word>
struct Triangle {
  const Word* x;
  Word* y;
  Index rows, columns, diagonal;
  bool upper;
  STOWAGE_BODY void operator()(Index i) const {
    const Index line = quotient(i, columns), column = i - line * columns;
    const Index row = line - quotient(line, rows) * rows;
    const bool stays = upper ? column - row >= diagonal : column - row <= diagonal;
    y[i] = stays ? x[i] : Word(0);
  }
};

}  // namespace stowage::body
