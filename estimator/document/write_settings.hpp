// Writes the settings with which the step was lowered as the step file's text.
#pragma once

#include "estimator/document/step_text.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage::step_text {

/// The settings of both graphs: the evaluation differs only in its mode and in having one
/// micro-batch.
void put_settings(Text& text, const LoweringSettings& settings);

}  // namespace stowage::step_text
