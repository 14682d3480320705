// Questions that the tests of exports ask: a Llama of two layers, in words of the command line.
#pragma once

#include <map>
#include <string>

#include "answers/exporting/export.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::testing {

/// Two layers of Llama 3.2 1B, trained on an H100 with two samples of 64 tokens.
[[nodiscard]] inline ExportQuestion small_llama(ExportForm form) {
  ExportQuestion question;
  question.form = form;
  const ConfigDirectory configs{source_path("/configs")};
  question.step.model = {.source = "llama-3.2-1b",
                         .options = {.seq = 64, .arguments = {{"layers", "2"}}},
                         .configs = configs};
  question.step.asks_cudnn = false;
  question.card = CardQuestion{.name = "h100-80gb", .configs = configs};
  question.batch = 2;
  question.written_by = "stowage TEST";
  return question;
}

/// The same on eight GPUs.
[[nodiscard]] inline ExportQuestion sharded_llama(ExportForm form, int zero, bool fsdp) {
  ExportQuestion question = small_llama(form);
  question.step.model.options.precision = Precision::mixed_bf16;
  question.step.wishes.parallel.gpus = 8;
  question.step.wishes.parallel.zero = zero;
  question.step.wishes.parallel.fsdp.on = fsdp;
  return question;
}

/// The body of what is exported; what is said against it where it is refused.
[[nodiscard]] inline std::string exported_body(const ExportQuestion& question) {
  const auto found = answer(question);
  return found ? found->body : render(found.error());
}

}  // namespace stowage::testing
