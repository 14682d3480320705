// Cross-entropy over classes, of logits or (nll_loss) of log-probabilities, averaged over the
// targets that are not `ignore_index` (PyTorch's default: -100). Cross-entropy may smooth the
// targets. Backward multiplies by the attribute `scale`, which is the gradient of the loss.
#include "gpu_probe/kernels/bodies/loss.hpp"

#include <algorithm>

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/integers.hpp"
#include "gpu_probe/kernels/rows/lines.hpp"

namespace stowage::kernels {
namespace {

/// logits [n, classes, area], target [n, area].
struct Classes {
  body::Lines lines;
  body::Targets targets;
};

Classes classes_of(const KernelCall& call) {
  const auto &logits = call.reads[0], &target = call.reads[1];
  const Sizes& shape = logits.shape;
  require(shape.size() >= 2, "{} has no class axis", shape_text(shape));
  Sizes expected = shape;
  expected.erase(expected.begin() + 1);
  require_shape("the target", target, expected);
  return {
      .lines = {shape[1], count(shape, 2, shape.size())},
      .targets = {any_integers(target), integer(call, "ignore_index", -100), count(target.shape)}};
}

/// Checks the targets where they can be read. Elsewhere the bodies write NaN for a target that is
/// no class.
void require_classes(const Classes& c, Arithmetic arithmetic) {
  if (arithmetic != Arithmetic::host) return;
  for (std::int64_t i = 0; i < c.targets.count; ++i) {
    const std::int64_t target = c.targets.classes.at(i);
    require(target == c.targets.ignored || (target >= 0 && target < c.lines.length),
            "target {} is not one of {} classes", target, c.lines.length);
  }
}

void require_scalar(const TensorArgument& loss) {
  require(count(loss.shape) == 1, "the loss is {}, not one number", shape_text(loss.shape));
}

template <class T, class Real>
body::ClassLines<T, Real> class_lines(const KernelCall& call, const Classes& c) {
  return {elements<T>(call.reads[0]), c.lines, c.targets};
}

/// How the elements are divided into parts. The group of each part counts the targets, so a device
/// has as many parts as keep it busy and the host has one.
body::Parts parts_of(const TensorArgument& logits, Arithmetic arithmetic) {
  constexpr std::int64_t smallest = std::int64_t{8} * body::largest_group, most = 256;
  const std::int64_t elements = count(logits.shape);
  const std::int64_t share = (elements + most - 1) / most;
  return {elements, arithmetic == Arithmetic::host ? elements : std::max(smallest, share)};
}

template <class Body>
Launch each_part(const Body& body, const body::Parts& parts) {
  const std::int64_t count =
      parts.elements == 0 ? 0 : (parts.elements + parts.of_part - 1) / parts.of_part;
  return each_group(body, count, body::largest_group);
}

}  // namespace

Launches cross_entropy_forward(const KernelCall& call, Arithmetic arithmetic) {
  const Classes c = classes_of(call);
  require_scalar(call.writes[0]);
  require_same_shape("logsumexp", call.writes[1], call.reads[1]);
  require_classes(c, arithmetic);
  const body::Floats loss = any_floats(call.writes[0]), sums = any_floats(call.writes[1]);
  const double smoothing = real(call, "label_smoothing", 0);
  Launches launches;
  in_formats(call.reads[0].type, arithmetic, [&]<class T, class Real>() {
    const auto logits = class_lines<T, Real>(call, c);
    const body::SmoothedTarget<T, Real> target{logits, static_cast<Real>(smoothing)};
    const body::CrossEntropySums<T, Real> last{target, sums};
    launches = {
        each_line(body::CrossEntropyTerms<T, Real>{target, sums}, c.lines, c.targets.count),
        each_group(body::CrossEntropyMean<T, Real>{logits, sums, loss}, 1, body::largest_group),
        // Without smoothing one element of a line, with smoothing all of them.
        smoothing == 0 ? each_index(last, c.targets.count)
                       : each_line(last, c.lines, c.targets.count)};
  });
  return launches;
}

Launches cross_entropy_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &logits = call.reads[0], &dlogits = call.writes[0];
  const Classes c = classes_of(call);
  require_same_shape("logsumexp", call.reads[2], call.reads[1]);
  require_same_shape("dlogits", dlogits, logits);
  const double scale = real(call, "scale", 1), smoothing = real(call, "label_smoothing", 0);
  const body::Parts parts = parts_of(logits, arithmetic);
  return {in_formats(logits.type, arithmetic, [&]<class T, class Real>() {
    return each_part(
        body::CrossEntropyBackward<T, Real>{class_lines<T, Real>(call, c),
                                            any_floats(call.reads[2]), elements<T>(dlogits), parts,
                                            static_cast<Real>(smoothing), static_cast<Real>(scale)},
        parts);
  })};
}

Launches nll_loss_forward(const KernelCall& call, Arithmetic arithmetic) {
  const Classes c = classes_of(call);
  require_scalar(call.writes[0]);
  require_classes(c, arithmetic);
  const body::Floats loss = any_floats(call.writes[0]);
  return {in_formats(call.reads[0].type, arithmetic, [&]<class T, class Real>() {
    return each_group(body::NllForward<T, Real>{class_lines<T, Real>(call, c), loss}, 1,
                      body::largest_group);
  })};
}

Launches nll_loss_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &logp = call.reads[0], &dlogp = call.writes[0];
  const Classes c = classes_of(call);
  require_same_shape("dlogp", dlogp, logp);
  require_classes(c, arithmetic);
  const double scale = real(call, "scale", 1);
  const body::Parts parts = parts_of(logp, arithmetic);
  return {in_formats(logp.type, arithmetic, [&]<class T, class Real>() {
    return each_part(body::NllBackward<T, Real>{class_lines<T, Real>(call, c), elements<T>(dlogp),
                                                parts, static_cast<Real>(scale)},
                     parts);
  })};
}

}  // namespace stowage::kernels
