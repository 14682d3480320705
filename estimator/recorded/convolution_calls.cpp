// aten::convolution and its backward: as the lowering of conv2d and conv_transpose2d has them
// (catalogue/convolution.cpp), data gradient, filter's, bias's.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/pytorch/convolution.hpp"
#include "estimator/recorded/aten_table.hpp"

namespace stowage {

namespace {

using Direction = ConvolutionCall::Direction;

constexpr std::int64_t most_window = std::int64_t{1} << 31;

/// One number for all axes, or one an axis.
std::vector<std::int64_t> window_numbers(const AtenCall& call, std::string_view name,
                                         std::size_t axes, std::int64_t least) {
  std::vector<std::int64_t> numbers = call.integers(name);
  if (numbers.size() == 1) numbers.resize(axes, numbers.front());
  const bool fits = std::ranges::all_of(
      numbers, [&](std::int64_t number) { return number >= least && number <= most_window; });
  if (numbers.size() != axes || !fits) {
    call.refuse(fmt::format("whose '{}' is no window of {} axes", name, axes));
  }
  return numbers;
}

struct RecordedConvolution {
  TensorView x, w;
  ConvolutionWindow window;
  bool transposed = false, channels_last = false;
};

RecordedConvolution recorded_convolution(const AtenCall& call) {
  RecordedConvolution found{.x = call.tensor("input")};
  const std::size_t rank = found.x.shape.size();
  if (rank < 3 || rank > 5) {
    call.refuse(fmt::format("whose 'input' is {}: no signal, image or volume with channels",
                            to_string(found.x.shape)));
  }
  found.w = call.tensor("weight", rank);
  const std::size_t axes = rank - 2;
  found.window.stride = window_numbers(call, "stride", axes, 1);
  found.window.padding = window_numbers(call, "padding", axes, 0);
  found.window.dilation = window_numbers(call, "dilation", axes, 1);
  found.window.groups = call.integer("groups");
  if (found.window.groups < 1 || found.window.groups > most_window) {
    call.refuse("whose 'groups' is no number of groups");
  }
  found.transposed = call.boolean("transposed", false);
  found.channels_last = convolves_channels_last(found.x, found.w);
  return found;
}

/// A transposed convolution is the data gradient of a plain one, of which its input is y.
ConvolutionCall asked(const RecordedConvolution& of, Direction direction, const TensorView& x,
                      const TensorView& w, const TensorView& y) {
  if (!of.transposed) return convolution_call(of.window, direction, x, w, y);
  const Direction turned = direction == Direction::forward         ? Direction::backward_data
                           : direction == Direction::backward_data ? Direction::forward
                                                                   : direction;
  return convolution_call(of.window, turned, y, w, x);
}

class ConvolutionGradients {
 public:
  explicit ConvolutionGradients(CallCompletion& completion)
      : completion_(completion),
        of_(recorded_convolution(completion.call())),
        x_(completion.contiguous(of_.x, "input", of_.channels_last)),
        dy_(completion.contiguous(completion.call().tensor("grad_output", of_.x.shape.size()),
                                  "grad", of_.channels_last)) {}

  bool emit() {
    const AtenCall& call = completion_.call();
    const TensorView* const data = call.find_result(0);
    const TensorView* const filter = call.find_result(1);
    const TensorView* const bias = call.find_result(2);
    if (data == nullptr && filter == nullptr && bias == nullptr) return false;
    if (data != nullptr) {
      const TensorView w = completion_.contiguous(of_.w, "weight", of_.channels_last);
      add(of_.transposed ? Kernel::transposed_convolution_backward_data
                         : Kernel::convolution_backward_data,
          "data", {dy_, w}, *data, w, Direction::backward_data);
    }
    if (filter != nullptr) {
      add(of_.transposed ? Kernel::transposed_convolution_backward_filter
                         : Kernel::convolution_backward_filter,
          "filter", {x_, dy_}, *filter, of_.w, Direction::backward_filter);
    }
    if (bias != nullptr) {
      completion_.emit(Kernel::channel_sum, "bias", {dy_}, {*bias},
                       {.flops = element_count(dy_.shape)});
    }
    return true;
  }

 private:
  void add(Kernel kernel, std::string_view suffix, std::vector<TensorView> reads,
           const TensorView& result, const TensorView& w, Direction direction) {
    completion_.emit(
        kernel, suffix, std::move(reads), {result},
        {.flops = convolution_flops(of_.w, of_.transposed ? x_ : dy_),
         .convolution = completion_.add_convolution(asked(of_, direction, x_, w, dy_))});
  }

  CallCompletion& completion_;
  RecordedConvolution of_;
  TensorView x_, dy_;
};

}  // namespace

bool complete_convolution(CallCompletion& completion) {
  const AtenCall& call = completion.call();
  const RecordedConvolution of = recorded_convolution(call);
  const TensorView y = call.result(0);
  if (y.shape.size() != of.x.shape.size()) {
    call.refuse(fmt::format("whose result is {}", to_string(y.shape)));
  }
  const TensorView x = completion.contiguous(of.x, "input", of.channels_last);
  const TensorView w = completion.contiguous(of.w, "weight", of.channels_last);
  std::vector<TensorView> reads{x, w};
  if (const TensorView* bias = call.find("bias")) reads.push_back(*bias);
  completion.emit(
      of.transposed ? Kernel::transposed_convolution_forward : Kernel::convolution_forward, {},
      std::move(reads), {y},
      {.flops = convolution_flops(w, of.transposed ? x : y),
       .convolution = completion.add_convolution(asked(of, Direction::forward, x, w, y))});
  return true;
}

bool complete_convolution_backward(CallCompletion& completion) {
  return ConvolutionGradients(completion).emit();
}

}  // namespace stowage
