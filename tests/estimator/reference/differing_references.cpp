#include "tests/estimator/reference/differing_references.hpp"

#include <algorithm>

namespace stowage::reference {

bool concerns(const std::vector<std::string_view>& models, const ReferenceModel& reference) {
  return std::any_of(models.begin(), models.end(), [&](std::string_view name) {
    return name.ends_with('*') ? reference.model.starts_with(name.substr(0, name.size() - 1))
                               : reference.model == name;
  });
}

bool has_adapters(const ReferenceModel& reference) {
  return reference.options.fine_tuning.lora.has_value();
}

bool has_chunks(const ReferenceModel& reference) {
  return reference.options.fine_tuning.chunked_loss.has_value();
}

bool shifts_labels(const ReferenceModel& reference) {
  return concerns({"gpt2*", "llama*", "mistral*"}, reference) && !has_chunks(reference);
}

bool sees_moved_labels(const ReferenceModel& reference) {
  return reference.batch == 1 &&
         concerns({"opt-125m", "phi-2", "qwen3-0.6b", "mixtral-8x7b"}, reference);
}

bool copies_one_head(const ReferenceModel& reference) {
  return concerns({"small-falcon*", "small-classifier-falcon"}, reference);
}

bool takes_last_token(const ReferenceModel& reference) {
  return concerns({"small-classifier-llama", "small-classifier-gpt*", "small-classifier-opt",
                   "small-classifier-phi", "small-classifier-falcon", "small-clip"},
                  reference);
}

bool is_generator(const ReferenceModel& reference) {
  return concerns({"dcgan-generator"}, reference);
}

bool is_recurrent(const ReferenceModel& reference) { return concerns({"lstm-lm"}, reference); }

std::int64_t label_bytes(const ReferenceModel& reference, std::int64_t tokens) {
  return reference.batch * tokens * element_size(DataType::int64);
}

std::int64_t picture_bytes(const ReferenceModel& reference) {
  return reference.batch * 3 * 64 * 64 * element_size(DataType::float32);
}

}  // namespace stowage::reference
