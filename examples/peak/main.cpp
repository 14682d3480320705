// peak MODEL BATCH: the tensor bytes at a training step's peak. MODEL is a description.
#include <cstdlib>
#include <iostream>
#include <memory>

#include "estimator/memory/footprint.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"

int main(int argc, char** argv) try {
  if (argc != 3) return std::cerr << "usage: peak MODEL BATCH\n", 2;
  const stowage::FoundModel found = stowage::find_model(argv[1], "").value();
  const stowage::ModelGraph model = stowage::load_model(found.source, found.options).value();
  const auto step = std::make_shared<const stowage::StepGraph>(stowage::lower(model, {}).value());
  const auto workspaces = stowage::rule_workspace_source(step->settings.compute_capability);
  const auto sized = stowage::size_step(step, std::atoll(argv[2]), *workspaces).value();
  const auto peak = stowage::peak_footprint(sized, {}, stowage::storage_touches(*step));
  std::cout << peak.total.count() << " bytes\n";
} catch (const tl::bad_expected_access<std::vector<stowage::Diagnostic>>& refused) {
  return std::cerr << stowage::render(refused.error()), 2;
}
