// Keras' preprocessing and augmentation layers, and arithmetic on tensors.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

Result<ModelGraph> preprocessed(const FileHead& file_head, const ImportOptions& options = {}) {
  auto imported = import_model(file_head, options);
  if (!imported) return tl::unexpected(imported.error());
  REQUIRE(imported->has_value());
  return load_model((*imported)->description);
}

Result<ModelGraph> preprocessed_text(const std::string& text, const ImportOptions& options = {}) {
  return preprocessed(
      file_head_of(std::make_shared<const SourceText>(SourceText{"net.json", text})), options);
}

/// A Sequential model of images [16, 16, 3] in these layers, of Keras 2's form.
std::string chain(const std::string& layers, const std::string& type = "float32") {
  return R"({"class_name": "Sequential", "config": {"name": "m", "layers": [)"
         R"({"class_name": "InputLayer", "config": {"name": "in", "batch_input_shape": )"
         R"([null, 16, 16, 3], "dtype": ")" +
         type + R"("}}, )" + layers + "]}}";
}

std::vector<std::string> rows_of_model(const ModelGraph& model) {
  std::vector<std::string> rows;
  for (const Operator& op : model.operators) rows.emplace_back(op.row->name);
  return rows;
}

std::vector<std::string> rows_of_chain(const std::string& layers,
                                       const std::string& type = "float32") {
  const auto model = preprocessed_text(chain(layers, type));
  if (!model) FAIL(render(model.error()));
  return rows_of_model(*model);
}

Shape output_shape(const ModelGraph& model) { return model.tensor(model.output).type.shape; }

/// Bytes of all tensors that the step's kernels make before the first convolution.
std::int64_t made_before_the_network(const ModelGraph& model, Mode mode) {
  const auto step = lower_step(model, {.kernels = KernelSet::stowage, .mode = mode});
  if (!step) FAIL(render(step.error()));
  std::int64_t bytes = 0;
  for (const KernelNode& node : step->nodes) {
    if (node.kernel == Kernel::convolution_forward) break;
    for (const TensorView& out : node.writes) {
      bytes += element_count(out.shape).at(1) * element_size(out.type);
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("every layer of augmentation, preprocessing and preprocess_input() is read") {
  const auto model =
      preprocessed(read_file_head(testing::source_path("/tests/keras/augmented.json")));
  if (!model) FAIL(render(model.error()));
  const std::vector<std::string> rows = rows_of_model(*model);
  CHECK(std::count(rows.begin(), rows.end(), "identity") == 6);
  // The caffe form: three channels in the other order, stacked.
  CHECK(std::count(rows.begin(), rows.end(), "concat") == 1);
  CHECK(std::count(rows.begin(), rows.end(), "linear") == 1);
  CHECK(output_shape(*model) == Shape{Affine{0, 1}, 5});
}

TEST_CASE("augmentation takes memory in training and none in inference") {
  const std::string head =
      R"({"class_name": "RandomFlip", "config": {"name": "f", "mode": "horizontal"}}, )"
      R"({"class_name": "RandomContrast", "config": {"name": "c", "factor": 0.1}}, )"
      R"({"class_name": "RandomZoom", "config": {"name": "z", "height_factor": 0.1}}, )";
  const std::string tail =
      R"({"class_name": "Conv2D", "config": {"name": "k", "filters": 2, "kernel_size": [3, 3]}}, )"
      R"({"class_name": "GlobalAveragePooling2D", "config": {"name": "g"}}, )"
      R"({"class_name": "Dense", "config": {"name": "d", "units": 2}})";
  const auto augmented = preprocessed_text(chain(head + tail));
  const auto plain = preprocessed_text(chain(tail));
  REQUIRE(augmented.has_value());
  REQUIRE(plain.has_value());
  constexpr std::int64_t image = 16 * 16 * 3 * 4;
  CHECK(made_before_the_network(*augmented, Mode::inference) ==
        made_before_the_network(*plain, Mode::inference));
  // The mirrored image and the choice; five of the contrast; one of the zoom.
  CHECK(made_before_the_network(*augmented, Mode::train) -
            made_before_the_network(*plain, Mode::train) ==
        8 * image);
}

TEST_CASE("images of bytes become floating-point numbers first") {
  using Rows = std::vector<std::string>;
  const std::string rescaling =
      R"({"class_name": "Rescaling", "config": {"name": "r", "scale": 0.5, "offset": -1}})";
  CHECK(rows_of_chain(rescaling) == Rows{"scale", "scale"});
  CHECK(rows_of_chain(rescaling, "uint8") == Rows{"cast", "scale", "scale"});
}

TEST_CASE("statistics that adapt() has learned are buffers; given ones are numbers") {
  const auto model = preprocessed_text(chain(
      R"({"class_name": "Normalization", "config": {"name": "n", "axis": [-1], "mean": null}})"));
  if (!model) FAIL(render(model.error()));
  REQUIRE(model->parameters.size() == 2);
  CHECK(model->parameters[0].name == "n/mean");
  CHECK(model->parameters[1].name == "n/variance");
  CHECK(model->parameters[1].is_buffer);
  CHECK(output_shape(*model) == Shape{Affine{0, 1}, 3, 16, 16});
  CHECK(rows_of_chain(
            R"({"class_name": "Normalization", "config": {"name": "n", "mean": [1, 2, 3]}})") ==
        std::vector<std::string>{"scale", "scale"});
}

TEST_CASE("Keras 2's arithmetic: TFOpLambda and SlicingOpLambda") {
  const std::string text = R"({"class_name": "Functional", "config": {"name": "m", "layers": [
    {"class_name": "InputLayer", "name": "in", "inbound_nodes": [],
     "config": {"name": "in", "batch_input_shape": [null, 16, 16, 3], "dtype": "float32"}},
    {"class_name": "SlicingOpLambda", "name": "s", "config": {"name": "s",
     "function": "__operators__.getitem"}, "inbound_nodes": [["in", 0, 0, {"slice_spec":
     [{"class_name": "__ellipsis__"}, {"start": null, "stop": null, "step": -1}]}]]},
    {"class_name": "TFOpLambda", "name": "b", "config": {"name": "b", "function": "nn.bias_add"},
     "inbound_nodes": [["s", 0, 0, {"bias": [1.0, 2.0, 3.0]}]]},
    {"class_name": "TFOpLambda", "name": "t", "config": {"name": "t", "function": "math.truediv"},
     "inbound_nodes": [["b", 0, 0, {"y": 127.5, "name": null}]]},
    {"class_name": "TFOpLambda", "name": "u", "config": {"name": "u", "function": "math.subtract"},
     "inbound_nodes": [["t", 0, 0, {"y": ["b", 0, 0], "name": null}]]}],
    "input_layers": [["in", 0, 0]], "output_layers": [["u", 0, 0]]}, "keras_version": "2.12.0"})";
  const auto model = preprocessed_text(text);
  if (!model) FAIL(render(model.error()));
  CHECK(rows_of_model(*model) == std::vector<std::string>{"scale", "scale", "scale", "sub"});
  std::string other = text;
  const std::string known = "math.truediv";
  other.replace(other.find(known), known.size(), "linalg.inv");
  const auto refused = preprocessed_text(other);
  REQUIRE_FALSE(refused.has_value());
  CHECK(render(refused.error()) ==
        "net.json: error: the catalogue cannot express TFOpLambda of this model\n"
        "  have unknown operators counted by their outputs\n"
        "note: TFOpLambda: it calls TensorFlow's linalg.inv\n");
}

TEST_CASE("a crop takes the middle; a smaller image is resized") {
  const auto cropped = [](const std::string& name, int height, int width) {
    const auto model = preprocessed_text(chain(fmt::format(
        R"({{"class_name": "{}", "config": {{"name": "c", "height": {}, "width": {}}}}})", name,
        height, width)));
    if (!model) FAIL(render(model.error()));
    return fmt::format("{} {}", model->operators.back().row->name, to_string(output_shape(*model)));
  };
  CHECK(cropped("CenterCrop", 11, 12) == "pad [batch, 3, 11, 12]");
  CHECK(cropped("RandomCrop", 16, 16) == "pad [batch, 3, 16, 16]");
  CHECK(cropped("CenterCrop", 24, 12) == "upsample [batch, 3, 24, 12]");
}

TEST_CASE("an unknown layer whose size the file lacks: which, and how to state it") {
  const std::string text = chain(R"({"class_name": "Lambda", "config": {"name": "f"}}, )"
                                 R"({"class_name": "Flatten", "config": {"name": "g"}})");
  const auto refused = preprocessed_text(text, {.allow_unknown = true});
  REQUIRE_FALSE(refused.has_value());
  CHECK(render(refused.error()) ==
        "net.json: error: layer 'f' (Lambda) is unknown, and the file does not say its output's "
        "size\n  state the size of the layer's output, without the batch\n");
  const auto stated = preprocessed_text(text, {.values = {{"f", "8x8x2"}}, .allow_unknown = true});
  if (!stated) FAIL(render(stated.error()));
  CHECK(output_shape(*stated) == Shape{Affine{0, 1}, 128});
  for (const std::string wrong : {"", "x", "8x", "0", "8x8x2x", "8,8", "99999999999"}) {
    CAPTURE(wrong);
    const auto model = preprocessed_text(text, {.values = {{"f", wrong}}, .allow_unknown = true});
    REQUIRE_FALSE(model.has_value());
    CHECK(
        render(model.error()) ==
        fmt::format("net.json: error: layer 'f' takes a size such as 64x64x3, not '{}'\n", wrong));
  }
}

}  // namespace stowage
