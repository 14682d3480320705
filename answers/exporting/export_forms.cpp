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
      {.form = json, .name = "json", .title = "JSON", .ending = ".json", .of_plan = true},
      {.form = tensorflow,
       .name = "tensorflow",
       .title = "TensorFlow",
       .ending = ".py",
       .comment = "#",
       .of_plan = true},
      {.form = deepspeed,
       .name = "deepspeed",
       .title = "DeepSpeed",
       .ending = ".json",
       .of_plan = true,
       .of_model = true,
       .is_sized = true},
      {.form = fsdp,
       .name = "fsdp",
       .title = "accelerate",
       .ending = ".yaml",
       .comment = "#",
       .of_model = true,
       .is_sized = true},
      {.form = accelerate,
       .name = "accelerate",
       .title = "accelerate",
       .ending = ".yaml",
       .plan_ending = ".json",
       .comment = "#",
       .of_plan = true,
       .of_model = true,
       .is_sized = true},
      {.form = torchtitan,
       .name = "torchtitan",
       .title = "torchtitan",
       .ending = ".toml",
       .comment = "#",
       .of_plan = true,
       .of_model = true,
       .is_sized = true},
      {.form = megatron,
       .name = "megatron",
       .title = "Megatron-LM",
       .ending = ".sh",
       .comment = "#",
       .of_plan = true,
       .of_model = true,
       .is_sized = true},
      {.form = axolotl,
       .name = "axolotl",
       .title = "axolotl",
       .ending = ".yaml",
       .comment = "#",
       .of_plan = true,
       .of_model = true,
       .is_sized = true},
      {.form = trl,
       .name = "trl",
       .title = "TRL",
       .ending = ".yaml",
       .comment = "#",
       .of_plan = true,
       .of_model = true,
       .is_sized = true},
      {.form = llama_cpp,
       .name = "llama.cpp",
       .title = "llama.cpp",
       .ending = ".sh",
       .comment = "#",
       .of_plan = true,
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
