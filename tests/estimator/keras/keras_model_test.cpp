// Keras' JSON becomes a description with the parameters that summary() counts.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

std::string keras_file(const std::string& name) {
  return testing::source_path("/tests/keras/" + name + ".json");
}

Result<ModelGraph> keras_model_of(const FileHead& file_head, const ImportOptions& options = {}) {
  auto imported = import_model(file_head, options);
  if (!imported) return tl::unexpected(imported.error());
  REQUIRE(imported->has_value());
  return load_model((*imported)->description);
}

std::string refusal_of_keras(const std::string& text, const ImportOptions& options = {}) {
  const auto model = keras_model_of(
      file_head_of(std::make_shared<const SourceText>(SourceText{"net.json", text})), options);
  return model ? std::string() : render(model.error());
}

bool has_parameter(const ModelGraph& model, std::string_view name) {
  return std::any_of(model.parameters.begin(), model.parameters.end(),
                     [&](const Parameter& one) { return one.name == name; });
}

}  // namespace

TEST_CASE("parameters are those that Keras counts") {
  std::ifstream totals(testing::source_path("/tests/keras/totals.csv"));
  std::string line;
  std::getline(totals, line);
  int compared = 0;
  while (std::getline(totals, line)) {
    std::istringstream fields(line);
    std::string name;
    std::string trainable;
    std::string rest;
    std::getline(fields, name, ',');
    std::getline(fields, trainable, ',');
    std::getline(fields, rest, ',');
    CAPTURE(name);
    const auto model = keras_model_of(read_file_head(keras_file(name)));
    if (!model) FAIL(render(model.error()));
    CHECK(trainable_parameter_count(*model) == std::stoll(trainable));
    // Keras counts running statistics; PyTorch's counter of batches is no weight of Keras'.
    std::int64_t kept = 0;
    for (const Parameter& parameter : model->parameters) {
      const bool is_counter = parameter.name.ends_with("num_batches_tracked");
      if (!parameter.trainable && !is_counter) kept += element_count(parameter.type.shape).constant;
    }
    CHECK(kept == std::stoll(rest));
    ++compared;
  }
  CHECK(compared == 10);
}

TEST_CASE("weights keep Keras' names, the compile configuration is taken") {
  const auto model = keras_model_of(read_file_head(keras_file("cnn")));
  REQUIRE(model.has_value());
  CHECK(has_parameter(*model, "conv2d/kernel"));
  CHECK(has_parameter(*model, "batch_normalization/moving_variance"));
  CHECK(has_parameter(*model, "separable_conv2d/pointwise_kernel"));
  CHECK(model->optimizer.name == "adam");
}

TEST_CASE("what Keras cannot have written down is refused by name") {
  const std::string head = R"({"class_name": "Sequential", "config": {"name": "m", "layers": [)";
  const std::string input =
      R"({"class_name": "InputLayer", "config": {"name": "in", "batch_input_shape": [null, 4]}})";
  CHECK(refusal_of_keras(head + input +
                         R"(, {"class_name": "Lambda", "config": {"name": "f"}}, )"
                         R"({"class_name": "Foo", "config": {"name": "g"}}, )"
                         R"({"class_name": "Dense", "config": {"name": "h", "units": 2}}]}})") ==
        "net.json: error: the catalogue cannot express Foo, Lambda of this model\n"
        "  have unknown operators counted by their outputs\n"
        "note: Lambda: it holds Python code, which only Keras can run\n");
  CHECK(refusal_of_keras(head + "]}}") ==
        "net.json: error: no layer of the model makes an output\n");
  CHECK(refusal_of_keras(head + R"({"class_name": "Dense", "config": {"units": 2}}]}})") ==
        "net.json: error: the model's input has no shape\n"
        "  call the model on data, or build() it, before it is written\n");
  CHECK(refusal_of_keras(head.substr(0, 60)).find("net.json:1:") == 0);
}

TEST_CASE("an open sequence wants a length") {
  const std::string text =
      R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "Embedding", "config": )"
      R"({"batch_input_shape": [null, null], "input_dim": 9, "output_dim": 3, "dtype": "int32"}}, )"
      R"({"class_name": "LSTM", "config": {"units": 5}}]}})";
  CHECK(refusal_of_keras(text) ==
        "net.json: error: the input's sequence has no length\n  give the sequence a length\n");
  CHECK(refusal_of_keras(text, {.seq = 12}).empty());
}

}  // namespace stowage
