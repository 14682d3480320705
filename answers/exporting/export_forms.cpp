#include <algorithm>

#include "answers/exporting/export.hpp"

namespace stowage {

const std::vector<ExportFormRow>& export_forms() {
  using enum ExportForm;
  static const std::vector<ExportFormRow> forms{
      {.form = dot,
       .name = "dot",
       .title = "graphviz",
       .ending = ".dot",
       .of_plan = true,
       .of_model = true},
      {.form = deepspeed,
       .name = "deepspeed",
       .title = "DeepSpeed",
       .ending = ".json",
       .of_model = true,
       .is_sized = true},
  };
  return forms;
}

const ExportFormRow& row_of(ExportForm form) {
  return *std::ranges::find(export_forms(), form, &ExportFormRow::form);
}

const ExportFormRow* find_export_form(std::string_view name) {
  const auto found = std::ranges::find(export_forms(), name, &ExportFormRow::name);
  return found == export_forms().end() ? nullptr : &*found;
}

}  // namespace stowage
