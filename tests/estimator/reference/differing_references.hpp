// What the known differences ask of a reference: which models it is one of, and sizes of what
// differs in it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/estimator/reference/reference_model.hpp"

namespace stowage::reference {

/// `models` are names, or beginnings of names with a * behind.
[[nodiscard]] bool concerns(const std::vector<std::string_view>& models,
                            const ReferenceModel& reference);
[[nodiscard]] bool has_adapters(const ReferenceModel& reference);
[[nodiscard]] bool has_chunks(const ReferenceModel& reference);
[[nodiscard]] bool shifts_labels(const ReferenceModel& reference);
/// ForCausalLMLoss: labels = pad(labels, (0, 1)); labels[..., 1:].contiguous(). Of one sample the
/// moved labels lie contiguously, and are seen, not copied; a description copies them always.
[[nodiscard]] bool sees_moved_labels(const ReferenceModel& reference);
[[nodiscard]] bool copies_one_head(const ReferenceModel& reference);
[[nodiscard]] bool is_generator(const ReferenceModel& reference);
[[nodiscard]] bool is_recurrent(const ReferenceModel& reference);

[[nodiscard]] std::int64_t label_bytes(const ReferenceModel& reference, std::int64_t tokens);
/// 64 x 64 pixels of three colours a picture.
[[nodiscard]] std::int64_t picture_bytes(const ReferenceModel& reference);
/// Of one head: in each of the two layers, of keys and of values.
inline constexpr int index_tensors = 4;
/// transformers' decoders as classifiers take the logits of the last token by two lists of indices,
/// one number a sample each.
[[nodiscard]] bool takes_last_token(const ReferenceModel& reference);
inline constexpr int last_token_lists = 2;

}  // namespace stowage::reference
