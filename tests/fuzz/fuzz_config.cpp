// A config.json of transformers: described under varying values, and the description loaded.
#include <array>

#include "estimator/formats/import_model.hpp"
#include "estimator/huggingface/import_config.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FileHead file_head = file_head_of(fuzz::source_of(data, size));
  if (!is_hugging_face_model(file_head)) return -1;
  constexpr std::array<const char*, 4> heads{"causal-lm", "masked-lm", "sequence-classification",
                                             "base"};
  constexpr std::array<const char*, 4> versions{"4.10", "4.48", "5.24", "x"};
  const std::size_t choice = fuzz::choice(data, size);
  ImportOptions options;
  if (choice % 2 == 0) options.values["attention"] = choice % 4 == 0 ? "eager" : "sdpa";
  if (choice % 3 == 0) options.values["head"] = heads[choice / 3 % heads.size()];
  if (choice % 5 == 0) options.values["transformers"] = versions[choice / 5 % versions.size()];
  const auto imported = import_hugging_face_model(file_head, options);
  if (!imported) {
    fuzz::require_shown(imported.error());
    return 0;
  }
  const auto model = load_model(imported->description, {.seq = 16});
  if (!model) fuzz::require_shown(model.error());
  return 0;
}
