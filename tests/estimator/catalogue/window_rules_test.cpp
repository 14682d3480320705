// Refusals and corner cases of the shape rules of convolutions, pooling, normalization, padding and
// resampling, in the input language.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

/// The first mistake of a model of one layer, or the shape that it makes.
std::string of_layer(const std::string& shape, const std::string& layer) {
  const std::string text =
      fmt::format("model: one\ninputs: {{x: {{shape: {}}}}}\nlayers:\n  - {}\n", shape, layer);
  const auto model = load_model(std::make_shared<const SourceText>(SourceText{"one.yaml", text}));
  if (model) return to_string(model->tensor(model->output).type.shape);
  const std::string& message = model.error().front().message;
  return message.substr(message.find(": ") + 2);
}

constexpr const char* sequence = "[batch, 4, 16]";
constexpr const char* image_dimensions = "[batch, 4, 8, 6]";
constexpr const char* volume = "[batch, 4, 5, 8, 6]";

}  // namespace

TEST_CASE("convolutions: shapes") {
  CHECK(of_layer(sequence, "conv1d: {channels: 8, kernel: 3, stride: 2}") == "[batch, 8, 7]");
  CHECK(of_layer(sequence, "conv1d: {channels: 8, kernel: 4, padding: same}") == "[batch, 8, 16]");
  CHECK(of_layer(sequence, "conv1d: {channels: 8, kernel: 4, padding: [3, 0]}") ==
        "[batch, 8, 16]");
  CHECK(of_layer(image_dimensions, "conv2d: {channels: 8, kernel: 3, padding: valid}") ==
        "[batch, 8, 6, 4]");
  CHECK(of_layer(image_dimensions,
                 "conv2d: {channels: 8, kernel: 3, padding: [0, 1, 2, 2], stride: 2}") ==
        "[batch, 8, 4, 4]");
  CHECK(of_layer(volume, "conv3d: {channels: 8, kernel: [1, 3, 3]}") == "[batch, 8, 5, 6, 4]");
  CHECK(of_layer(sequence,
                 "conv_transpose1d: {channels: 2, kernel: 3, stride: 2, output_padding: 1}") ==
        "[batch, 2, 34]");
  CHECK(of_layer(volume, "conv_transpose3d: {channels: 2, kernel: 2, stride: 2, dilation: 3}") ==
        "[batch, 2, 12, 18, 14]");
}

TEST_CASE("convolutions: refusals") {
  CHECK(of_layer(image_dimensions, "conv1d: {channels: 8, kernel: 3}") ==
        "wants [batch, channels, length], but its input has shape [batch, 4, 8, 6]");
  CHECK(of_layer(image_dimensions, "conv3d: {channels: 8, kernel: 3}") ==
        "wants [batch, channels, depth, height, width], but its input has shape [batch, 4, 8, 6]");
  CHECK(of_layer(image_dimensions, "conv2d: {channels: 8, kernel: 3, padding: same, stride: 2}") ==
        "padding 'same' goes with stride 1 only");
  CHECK(of_layer(image_dimensions, "conv2d: {channels: 8, kernel: 9, padding: [0, 0, 1, 1]}") ==
        "kernel 9 is larger than the padded input 8");
  CHECK(of_layer(image_dimensions, "conv_transpose2d: {channels: 6, kernel: 3, groups: 4}") ==
        "groups 4 does not divide its 6 output channels");
  CHECK(
      of_layer(image_dimensions, "conv_transpose2d: {channels: 8, kernel: 3, output_padding: 1}") ==
      "output_padding 1 is less than neither the stride 1 nor the dilation 1");
  CHECK(of_layer("[batch, 4, batch]", "conv1d: {channels: 8, kernel: 1}") ==
        "its channels and length (batch) may not depend on the batch");
}

TEST_CASE("pooling: shapes and refusals") {
  CHECK(of_layer(sequence, "max_pool1d: {kernel: 3, stride: 2, dilation: 2}") == "[batch, 4, 6]");
  CHECK(of_layer(volume, "avg_pool3d: {kernel: 2, ceil_mode: true}") == "[batch, 4, 3, 4, 3]");
  CHECK(of_layer(volume, "adaptive_max_pool3d: {size: [1, 2, 3]}") == "[batch, 4, 1, 2, 3]");
  CHECK(of_layer(sequence, "adaptive_avg_pool1d: {size: 20}") == "[batch, 4, 20]");
  CHECK(of_layer(image_dimensions, "max_pool2d: {kernel: 3, padding: 2}") ==
        "padding 2 is more than half the kernel 3");
  CHECK(of_layer(image_dimensions, "max_pool2d: {kernel: 3, padding: 2, dilation: 2}") ==
        "[batch, 4, 3, 2]");
  CHECK(of_layer(image_dimensions, "max_pool2d: {kernel: 4, dilation: 2}") ==
        "kernel 7 is larger than the padded input 6");
  CHECK(of_layer(image_dimensions, "adaptive_avg_pool3d: {size: 1}") ==
        "wants [batch, channels, depth, height, width], but its input has shape [batch, 4, 8, 6]");
}

TEST_CASE("normalizations: refusals") {
  CHECK(of_layer(image_dimensions, "group_norm: {groups: 3}") ==
        "groups 3 does not divide its 4 input channels");
  CHECK(of_layer("[batch, 4]", "instance_norm") ==
        "wants [batch, channels, ...] with at least one more axis, but its input has shape "
        "[batch, 4]");
  CHECK(of_layer("[batch, 4]", "local_response_norm: {size: 3}") ==
        "wants [batch, channels, ...] with at least one more axis, but its input has shape "
        "[batch, 4]");
  CHECK(of_layer("[batch, 4]", "rms_norm: {axes: 3}") ==
        "normalizes the last 3 axes, but its input has shape [batch, 4]");
  CHECK(of_layer("[batch, 4]", "rms_norm: {axes: 2}") ==
        "its normalized axes (batch) may not depend on the batch");
  CHECK(of_layer(image_dimensions, "batch_norm: {training: false, track_running_stats: false}") ==
        "without running statistics there is nothing else to normalize by");
  CHECK(of_layer("[4, batch]", "batch_norm") == "its channels (batch) may not depend on the batch");
}

TEST_CASE("pad: shapes and refusals") {
  CHECK(of_layer(image_dimensions, "pad: {before: [1, 0], after: [2, 3]}") == "[batch, 4, 11, 9]");
  CHECK(of_layer(image_dimensions, "pad: {after: 1}") == "[batch, 4, 8, 7]");
  CHECK(of_layer(image_dimensions, "pad: {before: [1, 0, 0, 0]}") == "[batch+1, 4, 8, 6]");
  CHECK(of_layer(image_dimensions, "pad: {before: -2, after: [-7, 0]}") == "[batch, 4, 1, 4]");
  CHECK(of_layer(image_dimensions, "pad: {before: -6}") ==
        "nothing is left of its input's axis 3 of 6");
  CHECK(of_layer("[batch]", "pad: {before: [1, 1]}") ==
        "has more numbers than its input [batch] has axes");
  CHECK(of_layer(image_dimensions, "pad: {before: [0, 6], mode: reflect}") ==
        "mode 'reflect' pads an axis of 6 by at most 5, not 6");
  CHECK(of_layer(image_dimensions, "pad: {after: [9, 0], mode: circular}") ==
        "mode 'circular' pads an axis of 8 by at most 8, not 9");
  CHECK(of_layer(image_dimensions, "pad: {after: [9, -1], mode: replicate}") ==
        "mode 'replicate' does not crop: -1");
  CHECK(of_layer(image_dimensions, "pad: {after: 1, mode: reflect}") ==
        "mode 'reflect' pads all axes after [batch, channels], or after [batch], up to three, and "
        "its input has shape [batch, 4, 8, 6]");
}

TEST_CASE("resampling: shapes and refusals") {
  CHECK(of_layer(image_dimensions, "upsample: {scale: 1.3}") == "[batch, 4, 10, 7]");
  CHECK(of_layer(image_dimensions, "upsample: {size: [3, 20], mode: bicubic}") ==
        "[batch, 4, 3, 20]");
  CHECK(of_layer(image_dimensions, "upsample") == "wants either a size or a scale");
  CHECK(of_layer(image_dimensions, "upsample: {size: 4, scale: 2}") ==
        "wants either a size or a scale");
  CHECK(of_layer(image_dimensions, "upsample: {size: [4, 4, 4]}") ==
        "wants one extent or 2, not 3");
  CHECK(of_layer(image_dimensions, "upsample: {scale: 0.1}") == "its output would have size 0");
  CHECK(of_layer(image_dimensions, "upsample: {scale: 1e300}") ==
        "a size of this layer leaves the 64-bit range");
  CHECK(of_layer(sequence, "upsample: {scale: 2, mode: bilinear}") ==
        "wants [batch, channels, height, width], but its input has shape [batch, 4, 16]");
  CHECK(of_layer(image_dimensions, "upsample: {scale: 2, align_corners: true}") ==
        "mode 'nearest' has no corners to align");
  CHECK(of_layer(image_dimensions, "pixel_shuffle: {factor: 2}") == "[batch, 1, 16, 12]");
  CHECK(of_layer(image_dimensions, "pixel_shuffle: {factor: 3}") ==
        "factor 3 wants channels in multiples of 9, not 4");
  CHECK(of_layer(image_dimensions, "pixel_shuffle: {factor: 4611686018427387905}") ==
        "a size of this layer leaves the 64-bit range");
  CHECK(of_layer(image_dimensions, "pixel_unshuffle: {factor: 2}") == "[batch, 16, 4, 3]");
  CHECK(of_layer(image_dimensions, "pixel_unshuffle: {factor: 4}") ==
        "factor 4 does not divide its input's 6");
}

}  // namespace stowage
