// einsum, lowered as PyTorch runs it: each operand with the next one (einsum_equation.hpp), as a
// batched product of matrices where labels are contracted, else element by element. Its views are
// autograd's own, so that products keep operands as they are given to them, copies included.
//
// A step of our executor has the same products; where an operand's axes stand in another order, a
// permuted copy goes in.
#include <fmt/format.h>

#include <map>

#include "estimator/catalogue/einsum_equation.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

using LabelSizes = std::map<char, Affine>;

Shape label_shape(std::string_view labels, const LabelSizes& sizes) {
  Shape shape;
  for (const char label : labels) shape.push_back(sizes.at(label));
  return shape;
}

EinsumEquation equation_of(const OperatorLowering& lowering) {
  return *read_equation(lowering.attributes().text("equation"),
                        static_cast<std::size_t>(lowering.input_count()));
}

LabelSizes label_sizes(const EinsumEquation& equation, const OperatorLowering& lowering) {
  LabelSizes sizes;
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Shape& shape = lowering.input(static_cast<int>(i)).shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      sizes.emplace(equation.operands[i][axis], shape[axis]);
    }
  }
  return sizes;
}

tl::expected<Inference, InferenceError> infer_einsum(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const auto equation = read_equation(attributes.text("equation"), inputs.size());
  if (!equation) return refuse(equation.error(), "equation");
  LabelSizes sizes;
  int batched = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int input = static_cast<int>(i);
    const std::string& labels = equation->operands[i];
    if (auto error = want_floating(inputs[i], input)) return tl::unexpected(*error);
    if (labels.size() != inputs[i].shape.size()) {
      return refuse(fmt::format("'{}' names {} axes, and the operand is {}", labels, labels.size(),
                                to_string(inputs[i].shape)),
                    "equation", input);
    }
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      const Affine& size = inputs[i].shape[axis];
      const auto [known, fresh] = sizes.emplace(labels[axis], size);
      if (fresh && !size.is_constant()) ++batched;
      if (known->second == size) continue;
      return refuse(fmt::format("axis '{}' is {} and {}", labels[axis], known->second.to_string(),
                                size.to_string()),
                    "equation", input);
    }
  }
  if (batched > 1) return refuse("more than one axis depends on the batch", "equation");
  TensorType y{label_shape(equation->result, sizes), inputs[0].type};
  Inference result;
  for (const TensorType& input : inputs) y.type = promoted(y.type, input.type);
  for (const EinsumStep& step : einsum_steps(*equation)) {
    result.flops = result.flops + element_count(label_shape(step.result, sizes)) *
                                      element_count(label_shape(step.contracted, sizes)) *
                                      Affine(2);
  }
  result.outputs = {std::move(y)};
  return result;
}

std::vector<std::int64_t> order_from(std::string_view labels, std::string_view wanted) {
  std::vector<std::int64_t> axes;
  for (const char label : wanted) axes.push_back(static_cast<std::int64_t>(labels.find(label)));
  return axes;
}

/// How a kernel set turns a tensor's axes: a view, or a copy.
struct ViewedTurn {
  static TensorView turn(OperatorLowering&, const TensorView& view, std::string_view labels,
                         std::string_view wanted, std::string_view) {
    return permuted(view, order_from(labels, wanted));
  }
};
struct CopiedTurn {
  static TensorView turn(OperatorLowering& lowering, const TensorView& view,
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
};

/// A tensor with a letter an axis.
struct Labelled {
  TensorView view;
  std::string labels;
};

template <class Turn>
class Einsum {
 public:
  explicit Einsum(OperatorLowering& lowering)
      : lowering_(lowering),
        equation_(equation_of(lowering)),
        sizes_(label_sizes(equation_, lowering)),
        steps_(einsum_steps(equation_)) {}

  void forward() {
    Labelled made{lowering_.input(0), equation_.operands[0]};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      made = product(i, made, {lowering_.input(static_cast<int>(i) + 1), steps_[i].right});
    }
    std::string sums;
    for (const char label : made.labels) {
      if (equation_.result.find(label) == std::string::npos) sums += label;
    }
    made = summed(made, sums, "sum");
    lowering_.set_output(0, turned(made, equation_.result, "result"));
  }

  void backward() {
    lowering_.hold_by_hand();
    Labelled gradient{lowering_.output_gradient(), equation_.result};
    std::string whole = steps_.empty() ? equation_.operands[0] : steps_.back().result;
    gradient = repeated(gradient, whole, "backward.sum");
    std::vector<std::pair<int, Labelled>> gradients;
    for (std::size_t i = steps_.size(); i-- > 0;) {
      const EinsumStep& step = steps_[i];
      gradient = {turned(gradient, step.result, fmt::format("backward.result{}", i)), step.result};
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

  TensorView turned(const Labelled& of, std::string_view wanted, const std::string& suffix) {
    return Turn::turn(lowering_, of.view, of.labels, wanted, suffix);
  }

  /// `view`, its axes in the order of `wanted`, under a shape of as many elements: a copy where its
  /// strides do not allow a view.
  TensorView arranged(const Labelled& of, const std::string& wanted, const Shape& shape,
                      const std::string& suffix) {
    const TensorView view = turned(of, wanted, suffix);
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

  /// The gradient of a sum: over all labels of `whole`.
  Labelled repeated(const Labelled& of, const std::string& whole, const std::string& suffix) {
    if (of.labels.size() == whole.size()) return of;
    std::string kept;
    for (const char label : whole) {
      if (of.labels.find(label) != std::string::npos) kept += label;
    }
    TensorView view = turned(of, kept, suffix + ".turned");
    for (std::size_t axis = 0; axis < whole.size(); ++axis) {
      if (kept.find(whole[axis]) != std::string::npos) continue;
      view.shape.insert(view.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      view.strides.insert(view.strides.begin() + static_cast<std::ptrdiff_t>(axis), 0);
    }
    const Shape shape = label_shape(whole, sizes_);
    return {spread(view, shape, suffix), whole};
  }

  TensorView spread(TensorView view, const Shape& shape, const std::string& suffix) {
    if constexpr (std::is_same_v<Turn, ViewedTurn>) {
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
    return {turned({whole, labels}, step.result, fmt::format("product{}.turned", i)), step.result};
  }

  /// Both with all labels of the result, ones where they lack it.
  TensorView widened(const Labelled& of, const EinsumStep& step, const std::string& suffix) {
    std::string kept;
    for (const char label : step.result) {
      if (of.labels.find(label) != std::string::npos) kept += label;
    }
    TensorView view = turned(of, kept, suffix);
    for (std::size_t axis = 0; axis < step.result.size(); ++axis) {
      if (kept.find(step.result[axis]) != std::string::npos) continue;
      const auto at = static_cast<std::ptrdiff_t>(axis);
      const Affine stride =
          axis < view.shape.size() ? view.shape[axis] * view.strides[axis] : Affine(1);
      view.shape.insert(view.shape.begin() + at, 1);
      view.strides.insert(view.strides.begin() + at, stride);
    }
    return view;
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

  /// Whether the operands up to step i, or the one behind it, have a gradient.
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

  /// A product's gradient under its labels, repeated along those that were summed before it.
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
    // The engine sums what was repeated before it lets go of what arrived and of what was saved.
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
    const std::string& wanted = equation_.operands[static_cast<std::size_t>(input)];
    lowering_.give_input_gradient(input,
                                  turned(gradient, wanted, fmt::format("grad_input{}", input)));
  }

  OperatorLowering& lowering_;
  EinsumEquation equation_;
  LabelSizes sizes_;
  std::vector<EinsumStep> steps_;
};

template <class Turn>
void forward_einsum(OperatorLowering& lowering) {
  Einsum<Turn>(lowering).forward();
}
template <class Turn>
void backward_einsum(OperatorLowering& lowering) {
  Einsum<Turn>(lowering).backward();
}

}  // namespace

OperatorRow rows::einsum() {
  return {
      .name = "einsum",
      .doc = "sums of products of tensors by an equation of letters, an axis each",
      .attributes = {{.name = "equation",
                      .type = AttributeType::text,
                      .doc =
                          "a letter an axis; in quotes where it has a comma: \"bhid,bhjd->bhij\""}},
      .min_inputs = 1,
      .max_inputs = -1,
      .infer = infer_einsum,
      .lowering = {.stowage = {forward_einsum<CopiedTurn>, backward_einsum<CopiedTurn>},
                   .pytorch = {forward_einsum<ViewedTurn>, backward_einsum<ViewedTurn>}},
      .autocast = AutocastClass::lower};
}

}  // namespace stowage
