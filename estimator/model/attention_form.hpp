// AttentionForm: how the attention of a model runs, as asked for by the argument `attention` of a
// description that declares no argument of that name.
//
// The words are transformers' own: `sdpa` is PyTorch's scaled_dot_product_attention, `eager` the
// same in tensor operations, and the flash-attn package's functions are sized as `sdpa`
// (docs/huggingface.md, "Attention").
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace stowage {

enum class AttentionForm {
  as_described,
  fused,        ///< asked for as such; a description's own scaled_dot_product_attention is
  written_out,  ///< in products around a softmax (adapt/written_attention.hpp)
};

struct AttentionWord {
  std::string_view word;
  AttentionForm form;
  bool sized_as_sdpa = false;  ///< a function of the flash-attn package
};
inline constexpr std::string_view attention_argument = "attention";
inline constexpr std::array<AttentionWord, 6> attention_words{
    {{"sdpa", AttentionForm::fused},
     {"eager", AttentionForm::written_out},
     {"flash", AttentionForm::fused, true},
     {"flash_attention_2", AttentionForm::fused, true},
     {"flash_attention_3", AttentionForm::fused, true},
     {"flash_attention_4", AttentionForm::fused, true}}};

}  // namespace stowage
