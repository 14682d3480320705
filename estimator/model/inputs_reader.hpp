// Reads the section `inputs:`: the model's input tensors with their shapes and types.
#pragma once

#include "estimator/model/model_description.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// Adds to model.inputs. Precondition: the model's values have been read.
void read_inputs(const YamlNode& root, ModelDescription& model, Mistakes& mistakes);

}  // namespace stowage
