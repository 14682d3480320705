#include "answers/exporting/plan_exports.hpp"

#include "answers/exporting/llama_cpp_plan.hpp"
#include "planner/export/dot.hpp"
#include "planner/export/plan_text.hpp"

namespace stowage {

std::vector<ExportForm> exports_of(const Plan& plan) {
  std::vector<ExportForm> forms;
  if (llama_cpp_plan(plan)) forms.push_back(ExportForm::llama_cpp);
  if (device_map(plan)) forms.push_back(ExportForm::accelerate);
  if (tensorflow_placement(plan)) forms.push_back(ExportForm::tensorflow);
  forms.push_back(ExportForm::json);
  if (export_dot(plan)) forms.push_back(ExportForm::dot);
  return forms;
}

}  // namespace stowage
