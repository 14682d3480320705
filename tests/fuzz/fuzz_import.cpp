// A model's file of another format (ONNX, Keras): recognised, described, and the description
// loaded.
#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::size_t choice = fuzz::choice(data, size);
  ImportOptions options{.allow_unknown = choice % 2 == 0};
  if (choice % 3 == 0) options.seq = 16;
  const auto imported = import_model(file_head_of(fuzz::source_of(data, size)), options);
  if (!imported) {
    fuzz::require_shown(imported.error());
    return 0;
  }
  if (!*imported) return -1;
  const auto model = load_model((*imported)->description);
  if (!model) fuzz::require_shown(model.error());
  return 0;
}
