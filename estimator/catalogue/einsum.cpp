// einsum, lowered as PyTorch runs it: each operand with the next one (einsum_equation.hpp), as a
// batched product of matrices where labels are contracted, else element by element. Its views are
// autograd's own, so that products keep operands as they are given to them, copies included.
// Diagonals are taken first (einsum_diagonal.hpp), and axes of one element are left out until the
// result is there.
//
// A step of our executor has the same products; where an operand's axes stand in another order, a
// permuted copy goes in.
#include <fmt/format.h>

#include <optional>

#include "estimator/catalogue/einsum_diagonal.hpp"
#include "estimator/catalogue/einsum_equation.hpp"
#include "estimator/catalogue/einsum_shapes.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

std::vector<Shape> operand_shapes(const OperatorLowering& lowering) {
  std::vector<Shape> shapes(static_cast<std::size_t>(lowering.input_count()));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    shapes[i] = lowering.input(static_cast<int>(i)).shape;
  }
  return shapes;
}

std::vector<std::int64_t> order_from(std::string_view labels, std::string_view wanted) {
  std::vector<std::int64_t> axes;
  for (const char label : wanted) axes.push_back(static_cast<std::int64_t>(labels.find(label)));
  return axes;
}

/// How a kernel set permutes a tensor's axes: as a view, or as a copy.
struct ViewPermutation {
  static TensorView permute(OperatorLowering&, const TensorView& view, std::string_view labels,
                            std::string_view wanted, std::string_view) {
    return permuted(view, order_from(labels, wanted));
  }
  static TensorView diagonal(OperatorLowering&, const TensorView& view, const DiagonalAxes& axes,
                             const std::string&) {
    return diagonal_view(view, axes);
  }
  static constexpr auto diagonal_backward = diagonal_view_backward;
};
struct CopyPermutation {
  static TensorView permute(OperatorLowering& lowering, const TensorView& view,
                            std::string_view labels, std::string_view wanted,
                            std::string_view suffix) {
    if (labels == wanted) return view;
    Attributes attributes;
    attributes.set("axes", order_from(labels, wanted));
    Shape shape;
    for (const std::int64_t axis : attributes.integers("axes")) {
      shape.push_back(view.shape[static_cast<std::size_t>(axis)]);
    }
    TensorView copy = lowering.new_tensor(suffix, shape, view.type, StorageClass::activation);
    lowering.emit(Kernel::permute, suffix, {view}, {copy}, {.attributes = std::move(attributes)});
    return copy;
  }
  static constexpr auto diagonal = diagonal_copy;
  static constexpr auto diagonal_backward = diagonal_copy_backward;
};

/// The next label that occurs twice in `labels`; nullopt: none does.
std::optional<DiagonalAxes> next_diagonal(std::string_view labels) {
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    const std::size_t again = labels.find(labels[axis], axis + 1);
    if (again != std::string_view::npos) return DiagonalAxes{axis, again};
  }
  return std::nullopt;
}

std::string without_diagonal(std::string labels, const DiagonalAxes& axes) {
  const char label = labels[axes.first];
  labels.erase(axes.second, 1);
  labels.erase(axes.first, 1);
  return labels + label;
}

/// `view`, which has the labels `kept`, with axes of one element inserted for the other labels of
/// `whole`, or without them again.
TensorView with_axes_of_one(TensorView view, std::string_view kept, std::string_view whole) {
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    if (kept.find(whole[axis]) != std::string_view::npos) continue;
    const auto at = static_cast<std::ptrdiff_t>(axis);
    const Affine stride =
        axis < view.shape.size() ? view.shape[axis] * view.strides[axis] : Affine(1);
    view.shape.insert(view.shape.begin() + at, 1);
    view.strides.insert(view.strides.begin() + at, stride);
  }
  return view;
}
TensorView without_axes_of_one(TensorView view, std::string_view whole, std::string_view kept) {
  for (std::size_t axis = whole.size(); axis-- > 0;) {
    if (kept.find(whole[axis]) != std::string_view::npos) continue;
    view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return view;
}

/// A tensor with one label per axis.
struct Labelled {
  TensorView view;
  std::string labels;
};

template <class Permutation>
class Einsum {
 public:
  explicit Einsum(OperatorLowering& lowering)
      : lowering_(lowering),
        shapes_(operand_shapes(lowering)),
        equation_(*read_equation(lowering.attributes().text("equation"), ranks_of(shapes_))),
        reduced_(reduced_equation(equation_, shapes_)),
        sizes_(*label_sizes(equation_, shapes_)),
        steps_(einsum_steps(reduced_)) {}

  void forward() {
    Labelled made = operand(0);
    for (std::size_t i = 0; i < steps_.size(); ++i) made = product(i, made, operand(i + 1));
    std::string sums;
    for (const char label : made.labels) {
      if (reduced_.result.find(label) == std::string::npos) sums += label;
    }
    made = summed(made, sums, "sum");
    // The caller's list of operands lives until the call returns.
    const bool calls_kernels = !steps_.empty() || !sums.empty();
    if (std::is_same_v<Permutation, ViewPermutation> && calls_kernels)
      lowering_.also_hold(operand_storages());
    lowering_.set_output(0, with_axes_of_one(permuted_operand(made, reduced_.result, "result"),
                                             reduced_.result, equation_.result));
  }

  void backward() {
    lowering_.hold_by_hand();
    Labelled gradient{
        without_axes_of_one(lowering_.output_gradient(), equation_.result, reduced_.result),
        reduced_.result};
    std::string whole = steps_.empty() ? reduced_.operands[0] : steps_.back().result;
    gradient = repeated(gradient, whole, "backward.sum");
    std::vector<std::pair<int, Labelled>> gradients;
    for (std::size_t i = steps_.size(); i-- > 0;) {
      const EinsumStep& step = steps_[i];
      gradient = {permuted_operand(gradient, step.result, fmt::format("backward.result{}", i)),
                  step.result};
      auto [left, right] =
          step.contracted.empty() ? element_gradients(i, gradient) : product_gradients(i, gradient);
      if (right) give(static_cast<int>(i) + 1, *right);
      if (!left) return;
      gradient = *left;
    }
    if (lowering_.input_needs_gradient(0)) give(0, gradient);
  }

 private:
  using Sides = std::pair<std::optional<Labelled>, std::optional<Labelled>>;

  [[nodiscard]] std::vector<StorageId> operand_storages() const {
    std::vector<StorageId> storages(shapes_.size());
    for (std::size_t i = 0; i < storages.size(); ++i) {
      storages[i] = lowering_.input(static_cast<int>(i)).storage;
    }
    return storages;
  }

  /// The operand with its diagonals taken and axes of one element removed.
  Labelled operand(std::size_t i) {
    std::string labels = equation_.operands[i];
    TensorView view = lowering_.input(static_cast<int>(i));
    for (int count = 0; const auto axes = next_diagonal(labels); ++count) {
      view = Permutation::diagonal(lowering_, view, *axes, fmt::format("diagonal{}.{}", i, count));
      labels = without_diagonal(labels, *axes);
    }
    std::string kept;
    for (const char label : labels) {
      if (reduced_.operands[i].find(label) != std::string::npos) kept += label;
    }
    return {without_axes_of_one(view, labels, kept), kept};
  }

  TensorView permuted_operand(const Labelled& of, std::string_view wanted,
                              const std::string& suffix) {
    return Permutation::permute(lowering_, of.view, of.labels, wanted, suffix);
  }

  /// `view` with its axes in the order of `wanted`, reshaped: a copy if its strides do not allow a
  /// view.
  TensorView arranged(const Labelled& of, const std::string& wanted, const Shape& shape,
                      const std::string& suffix) {
    const TensorView view = permuted_operand(of, wanted, suffix);
    if (const auto seen = reshaped(view, shape)) return *seen;
    return *reshaped(lowering_.contiguous(view, suffix), shape);
  }

  Affine size_of(std::string_view labels) const {
    return element_count(label_shape(labels, sizes_));
  }

  Labelled summed(const Labelled& of, const std::string& sums, const std::string& suffix,
                  std::vector<StorageId> holds = {}) {
    if (sums.empty()) return of;
    std::vector<std::int64_t> axes = order_from(of.labels, sums);
    std::string labels;
    for (const char label : of.labels) {
      if (sums.find(label) == std::string::npos) labels += label;
    }
    Attributes attributes;
    attributes.set("axes", std::move(axes));
    attributes.set("operation", std::string("sum"));
    const TensorView sum = lowering_.new_tensor(suffix, label_shape(labels, sizes_), of.view.type,
                                                StorageClass::activation);
    lowering_.emit(Kernel::reduce, suffix, {of.view}, {sum},
                   {.attributes = std::move(attributes),
                    .holds = std::move(holds),
                    .flops = element_count(of.view.shape)});
    return {sum, labels};
  }

  /// The gradient of a sum, repeated to all labels of `whole`.
  Labelled repeated(const Labelled& of, const std::string& whole, const std::string& suffix) {
    if (of.labels.size() == whole.size()) return of;
    std::string kept;
    for (const char label : whole) {
      if (of.labels.find(label) != std::string::npos) kept += label;
    }
    TensorView view = permuted_operand(of, kept, suffix + ".turned");
    for (std::size_t axis = 0; axis < whole.size(); ++axis) {
      if (kept.find(whole[axis]) != std::string::npos) continue;
      view.shape.insert(view.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      view.strides.insert(view.strides.begin() + static_cast<std::ptrdiff_t>(axis), 0);
    }
    const Shape shape = label_shape(whole, sizes_);
    return {spread(view, shape, suffix), whole};
  }

  TensorView spread(TensorView view, const Shape& shape, const std::string& suffix) {
    if constexpr (std::is_same_v<Permutation, ViewPermutation>) {
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (view.shape[axis] != shape[axis]) view.strides[axis] = 0;
      }
      view.shape = shape;
      view.is_view = true;
      return view;
    }
    TensorView copy =
        lowering_.new_tensor(suffix, shape, view.type, StorageClass::activation_gradient);
    view = contiguous_view(view.storage, view.shape, view.type);
    lowering_.emit(Kernel::expand, suffix, {view}, {copy});
    return copy;
  }

  Labelled product(std::size_t i, const Labelled& left, const Labelled& right) {
    const EinsumStep& step = steps_[i];
    const Labelled a = summed(left, step.left_sums, fmt::format("left{}.sum", i));
    const Labelled b = summed(right, step.right_sums, fmt::format("right{}.sum", i));
    if (step.contracted.empty()) return element_product(i, a, b);
    const Affine batch = size_of(step.batch), rows = size_of(step.left_only),
                 columns = size_of(step.right_only), depth = size_of(step.contracted);
    const TensorView x = arranged(a, step.batch + step.left_only + step.contracted,
                                  {batch, rows, depth}, fmt::format("left{}", i));
    const TensorView w = arranged(b, step.batch + step.contracted + step.right_only,
                                  {batch, depth, columns}, fmt::format("right{}", i));
    const TensorView y = lowering_.new_tensor(fmt::format("product{}", i), {batch, rows, columns},
                                              product_type(), StorageClass::activation);
    lowering_.emit(Kernel::matmul, fmt::format("product{}", i), {x, w}, {y},
                   {.attributes = product_form(false, false),
                    .flops = element_count(y.shape) * depth * Affine(2)});
    lowering_.save(fmt::format("left{}", i), x);
    lowering_.save(fmt::format("right{}", i), w);
    const std::string labels = step.batch + step.left_only + step.right_only;
    const TensorView whole = *reshaped(y, label_shape(labels, sizes_));
    return {permuted_operand({whole, labels}, step.result, fmt::format("product{}.turned", i)),
            step.result};
  }

  /// Both factors with all labels of the result, with length 1 where they do not have one.
  TensorView widened(const Labelled& of, const EinsumStep& step, const std::string& suffix) {
    std::string kept;
    for (const char label : step.result) {
      if (of.labels.find(label) != std::string::npos) kept += label;
    }
    return with_axes_of_one(permuted_operand(of, kept, suffix), kept, step.result);
  }

  Labelled element_product(std::size_t i, const Labelled& left, const Labelled& right) {
    const EinsumStep& step = steps_[i];
    const TensorView a = widened(left, step, fmt::format("left{}", i));
    const TensorView b = widened(right, step, fmt::format("right{}", i));
    const TensorView y =
        lowering_.new_tensor(fmt::format("product{}", i), label_shape(step.result, sizes_),
                             product_type(), StorageClass::activation);
    lowering_.emit(Kernel::multiply, fmt::format("product{}", i), {a, b}, {y},
                   {.flops = element_count(y.shape)});
    if (needs_right(i)) lowering_.save(fmt::format("left{}", i), a);
    if (needs_left(i)) lowering_.save(fmt::format("right{}", i), b);
    return {y, step.result};
  }

  [[nodiscard]] DataType product_type() const { return lowering_.output_type().type; }

  /// Whether the operands up to step i, or the next one, need a gradient.
  [[nodiscard]] bool needs_left(std::size_t i) const {
    for (std::size_t k = 0; k <= i; ++k) {
      if (lowering_.input_needs_gradient(static_cast<int>(k))) return true;
    }
    return false;
  }
  [[nodiscard]] bool needs_right(std::size_t i) const {
    return lowering_.input_needs_gradient(static_cast<int>(i) + 1);
  }

  static Attributes product_form(bool transpose_a, bool transpose_b) {
    Attributes attributes;
    attributes.set("transpose_a", transpose_a);
    attributes.set("transpose_b", transpose_b);
    attributes.set("alpha", 1.0);
    return attributes;
  }

  Sides product_gradients(std::size_t i, const Labelled& gradient) {
    const EinsumStep& step = steps_[i];
    const TensorView x = lowering_.saved(fmt::format("left{}", i)),
                     w = lowering_.saved(fmt::format("right{}", i));
    const TensorView dy =
        arranged(gradient, step.batch + step.left_only + step.right_only,
                 {x.shape[0], x.shape[1], w.shape[2]}, fmt::format("backward.product{}", i));
    Sides sides;
    const std::vector<StorageId> held{x.storage, w.storage, dy.storage};
    const auto emit = [&](const std::string& name, const TensorView& a, const TensorView& b,
                          const Shape& shape, const Attributes& form) {
      TensorView made = lowering_.new_tensor(fmt::format("grad_{}", name), shape, dy.type,
                                             StorageClass::activation_gradient);
      lowering_.emit(Kernel::matmul, fmt::format("backward.{}", name), {a, b}, {made},
                     {.attributes = form,
                      .holds = held,
                      .flops = element_count(x.shape) * w.shape[2] * Affine(2)});
      return made;
    };
    if (needs_left(i)) {
      const TensorView dx =
          emit(fmt::format("left{}", i), dy, w, x.shape, product_form(false, true));
      sides.first =
          unsummed(i, dx, step.batch + step.left_only + step.contracted, step.left, "left");
    }
    if (needs_right(i)) {
      const TensorView dw =
          emit(fmt::format("right{}", i), x, dy, w.shape, product_form(true, false));
      sides.second =
          unsummed(i, dw, step.batch + step.contracted + step.right_only, step.right, "right");
    }
    return sides;
  }

  /// A product's gradient with its labels, repeated along the labels that were summed before the
  /// product.
  Labelled unsummed(std::size_t i, const TensorView& gradient, const std::string& labels,
                    const std::string& whole, const std::string& side) {
    const TensorView seen = *reshaped(gradient, label_shape(labels, sizes_));
    return repeated({seen, labels}, whole, fmt::format("backward.{}{}.sum", side, i));
  }

  Sides element_gradients(std::size_t i, const Labelled& gradient) {
    const EinsumStep& step = steps_[i];
    Sides products;
    const auto multiply = [&](const std::string& side, const TensorView& other) {
      const TensorView made =
          lowering_.new_tensor(fmt::format("grad_{}{}", side, i), gradient.view.shape,
                               gradient.view.type, StorageClass::activation_gradient);
      lowering_.emit(Kernel::multiply, fmt::format("backward.{}{}", side, i),
                     {gradient.view, other}, {made},
                     {.holds = held_factors(i), .flops = element_count(made.shape)});
      return Labelled{made, step.result};
    };
    if (needs_left(i)) {
      products.first = multiply("left", lowering_.saved(fmt::format("right{}", i)));
    }
    if (needs_right(i)) {
      products.second = multiply("right", lowering_.saved(fmt::format("left{}", i)));
    }
    // The engine sums repeated axes before it releases the arrived gradient and the saved tensors.
    std::vector<StorageId> held = held_factors(i);
    held.push_back(gradient.view.storage);
    if (products.first) products.first = narrowed(i, *products.first, "left", held);
    if (products.second) products.second = narrowed(i, *products.second, "right", held);
    return products;
  }

  std::vector<StorageId> held_factors(std::size_t i) const {
    std::vector<StorageId> held;
    for (const std::string_view side : {"left", "right"}) {
      const std::string role = fmt::format("{}{}", side, i);
      if (lowering_.has_saved(role)) held.push_back(lowering_.saved(role).storage);
    }
    return held;
  }

  Labelled narrowed(std::size_t i, const Labelled& gradient, const std::string& side,
                    std::vector<StorageId> holds) {
    const EinsumStep& step = steps_[i];
    const std::string& whole = side == "left" ? step.left : step.right;
    const std::string& alone = side == "left" ? step.right_only : step.left_only;
    const Labelled sum =
        summed(gradient, alone, fmt::format("backward.{}{}.narrowed", side, i), std::move(holds));
    return repeated(sum, whole, fmt::format("backward.{}{}.sum", side, i));
  }

  void give(int input, const Labelled& gradient) {
    const auto i = static_cast<std::size_t>(input);
    std::vector<std::string> stages{equation_.operands[i]};
    std::vector<DiagonalAxes> diagonals;
    while (const auto axes = next_diagonal(stages.back())) {
      diagonals.push_back(*axes);
      stages.push_back(without_diagonal(stages.back(), *axes));
    }
    std::string kept;
    for (const char label : stages.back()) {
      if (reduced_.operands[i].find(label) != std::string::npos) kept += label;
    }
    TensorView dx = with_axes_of_one(
        permuted_operand(gradient, kept, fmt::format("grad_input{}", input)), kept, stages.back());
    for (std::size_t k = diagonals.size(); k-- > 0;) {
      dx =
          Permutation::diagonal_backward(lowering_, dx, diagonal_stage_shape(i, stages[k]),
                                         diagonals[k], fmt::format("backward.diagonal{}.{}", i, k));
    }
    lowering_.give_input_gradient(input, dx);
  }

  /// An operand's own shape in the order of other labels: an axis of one element may differ from
  /// the label's size.
  [[nodiscard]] Shape diagonal_stage_shape(std::size_t i, std::string_view labels) const {
    Shape shape;
    for (const char label : labels) {
      shape.push_back(shapes_[i][equation_.operands[i].find(label)]);
    }
    return shape;
  }

  OperatorLowering& lowering_;
  std::vector<Shape> shapes_;
  EinsumEquation equation_;  ///< as it is written
  EinsumEquation reduced_;
  LabelSizes sizes_;
  std::vector<EinsumStep> steps_;
};

template <class Permutation>
void forward_einsum(OperatorLowering& lowering) {
  Einsum<Permutation>(lowering).forward();
}
template <class Permutation>
void backward_einsum(OperatorLowering& lowering) {
  Einsum<Permutation>(lowering).backward();
}

}  // namespace

OperatorRow rows::einsum() {
  return {
      .name = "einsum",
      .doc = "sums of products of tensors by an equation of letters, an axis each",
      .attributes = {{.name = "equation",
                      .type = AttributeType::text,
                      .doc = "a letter an axis, twice for a diagonal, ... for further axes; in "
                             "quotes where it has a comma: \"bhid,bhjd->bhij\""}},
      .min_inputs = 1,
      .max_inputs = -1,
      .infer = infer_einsum,
      .lowering = {.stowage = {forward_einsum<CopyPermutation>, backward_einsum<CopyPermutation>},
                   .pytorch = {forward_einsum<ViewPermutation>, backward_einsum<ViewPermutation>}},
      .autocast = AutocastClass::lower};
}

}  // namespace stowage
