// `modules:` of a description: modules that have no block.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

Result<ModelGraph> with_modules(const std::string& modules) {
  return load_model(std::make_shared<const SourceText>(SourceText{
      "m.yaml",
      "model: m\ninputs:\n  x: {shape: [batch, 4]}\nblocks:\n  b:\n    layers:\n      - linear: "
      "{name: fc1, features: 4}\n      - relu\n      - linear: {name: fc2, features: 4}\n    "
      "modules: " +
          modules + "\nlayers:\n  - b: {name: s, repeat: 2}\n  - relu: {name: last}\n"}));
}

std::string error_of(const std::string& modules) {
  const auto model = with_modules(modules);
  return model ? "" : render(model.error());
}

}  // namespace

TEST_CASE("layers of a module have it in their paths, and not in their names") {
  const auto model = with_modules("{mlp: [fc1, relu_1], out: [fc2]}");
  REQUIRE(model.has_value());
  const auto is = [&](std::size_t op, std::string_view name, std::string_view path) {
    return model->operators[op].name == name && model->operators[op].path == path;
  };
  CHECK(is(0, "s.0.fc1", "s.0.mlp.fc1"));
  CHECK(is(1, "s.0.relu_1", "s.0.mlp.relu_1"));
  CHECK(is(2, "s.0.fc2", "s.0.out.fc2"));
  CHECK(is(3, "s.1.fc1", "s.1.mlp.fc1"));
  CHECK(is(6, "last", ""));
}

TEST_CASE("modules are nested, the outer one first") {
  const auto model = with_modules("{rest: [relu_1, fc2], last: [fc2]}");
  REQUIRE(model.has_value());
  CHECK(model->operators[0].path.empty());
  CHECK(model->operators[1].path == "s.0.rest.relu_1");
  CHECK(model->operators[2].path == "s.0.rest.last.fc2");
}

TEST_CASE("a chain that is called one by one has no module of its own") {
  const auto model = load_model(std::make_shared<const SourceText>(
      SourceText{"m.yaml",
                 "model: m\ninputs:\n  x: {shape: [batch, 4]}\nlayers:\n  - linear: {name: a, "
                 "features: 4, repeat: 2}\nmodules: {a: each}\n"}));
  REQUIRE(model.has_value());
  CHECK(model->operators[1].name == "a.1");
  CHECK(model->operators[1].path == "a#1");
}

TEST_CASE("modules that are wrong have their place") {
  CHECK(error_of("{mlp: [fc1, fc3]}").starts_with("m.yaml:10:26: error: 'fc3' is none of the "));
  CHECK(error_of("{mlp: [fc2, fc1]}").find("error: 'fc1' stands before 'fc2'\n") !=
        std::string::npos);
  CHECK(error_of("{mlp: [fc1, relu_1], rest: [relu_1, fc2]}")
            .find("error: 'relu_1' and 'fc2' are in different modules already\n") !=
        std::string::npos);
  CHECK(error_of("{fc1: each}").find("error: 'fc1' has no 'repeat'\n") != std::string::npos);
  CHECK(error_of("{mlp: fc1}").find("error: a module takes its first and its last layer") !=
        std::string::npos);
  CHECK(error_of("{m.p: [fc1]}").find("error: 'm.p' is not a name\n") != std::string::npos);
  CHECK(error_of("{" + std::string(300, 'm') + ": [fc1]}").find("a name has at most 256") !=
        std::string::npos);
  std::string within = "{m0: [fc1, fc2]";
  for (int i = 1; i < 40; ++i) within += fmt::format(", m{}: [fc1, fc2]", i);
  CHECK(error_of(within + "}").find("error: 'fc1' has 32 modules around it already\n") !=
        std::string::npos);
  CHECK(error_of("mlp").find("error: 'modules' takes 'name: [first, last]' entries") !=
        std::string::npos);
}

}  // namespace stowage
