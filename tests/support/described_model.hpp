// Models from descriptions, for tests of what comes after the reader.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "estimator/model/load_model.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::testing {

inline ModelGraph described(const std::string& text) {
  auto model = load_model(std::make_shared<const SourceText>(SourceText{"test.yaml", text}));
  if (!model) throw std::runtime_error(render(model.error()));
  return *std::move(model);
}

inline ModelGraph shipped(const std::string& name, const ModelOptions& options = {}) {
  const auto source = find_model(name, testing::source_path("/configs/models"));
  if (!source) throw std::runtime_error(render(source.error()));
  auto model = load_model(source->source, overridden(source->options, options));
  if (!model) throw std::runtime_error(render(model.error()));
  return *std::move(model);
}

inline std::shared_ptr<const StepGraph> lowered(const ModelGraph& model,
                                                const LoweringSettings& settings) {
  auto graph = lower_step(model, settings);
  if (!graph) throw std::runtime_error(render(graph.error()));
  return std::make_shared<const StepGraph>(*std::move(graph));
}

}  // namespace stowage::testing
