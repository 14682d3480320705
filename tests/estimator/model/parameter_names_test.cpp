// `parameter_names:` of a layer: the names that a foreign file gives its parameters.
#include <doctest/doctest.h>

#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

Result<ModelGraph> named_layers(const std::string& layers) {
  return load_model(std::make_shared<const SourceText>(
      SourceText{"m.yaml", "model: m\ninputs:\n  x: {shape: [batch, 4]}\nlayers:\n" + layers}));
}

std::string names_in(const std::string& layers) {
  const auto model = named_layers(layers);
  if (!model) return render(model.error());
  std::string names;
  for (const Parameter& parameter : model->parameters) names += parameter.name + " ";
  return names;
}

}  // namespace

TEST_CASE("a layer's parameters take the names that it states, the others keep their own") {
  CHECK(names_in("  - linear: {name: a, from: x, features: 4, parameter_names: {weight: "
                 "net.0.weight}}\n  - linear: {name: b, features: 2}\n") ==
        "net.0.weight a.bias b.weight b.bias ");
  CHECK(names_in("  - linear: {name: a, from: x, features: 4, parameter_names: {weight: "
                 "a.bias, bias: a.weight}}\n") == "a.bias a.weight ");
}

TEST_CASE("a tied parameter keeps its owner's name") {
  CHECK(names_in("  - linear: {name: a, from: x, features: 4, bias: false, parameter_names: "
                 "{weight: shared}}\n  - linear: {name: b, features: 4, bias: false, tie: {weight: "
                 "a.weight}, parameter_names: {weight: other}}\n") == "shared ");
}

TEST_CASE("names of parameters that are wrong have their place") {
  CHECK(names_in("  - linear: {name: a, from: x, features: 4, parameter_names: {wieght: w}}\n")
            .starts_with("m.yaml:5:63: error: 'a' has no parameter 'wieght'\n"));
  CHECK(names_in("  - linear: {name: a, from: x, features: 4, parameter_names: {weight: "
                 "b.weight}}\n  - linear: {name: b, features: 2}\n")
            .find("error: two parameters are called 'b.weight'\n") != std::string::npos);
  CHECK(names_in("  - linear: {name: a, from: x, features: 4, parameter_names: weight}\n")
            .find("error: expected a mapping, found 'weight'\n") != std::string::npos);
  CHECK(names_in("  - linear: {name: a, from: x, features: 4, parameter_names: {weight: [w]}}\n")
            .find("error: expected a parameter's name, found ") != std::string::npos);
  CHECK(names_in("  - linear: {name: a, from: x, features: 4, repeat: 2, parameter_names: "
                 "{weight: w}}\n")
            .find("error: 'parameter_names' is for single layers, outside of blocks and without "
                  "'repeat'\n") != std::string::npos);
}

}  // namespace stowage
