// A step file's settings as text: what the step was lowered with.
#pragma once

#include "estimator/document/step_text.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage::step_text {

/// Of both graphs: the evaluation's differ in the mode alone, and in that it has one micro-batch.
void put_settings(Text& text, const LoweringSettings& settings);

}  // namespace stowage::step_text
