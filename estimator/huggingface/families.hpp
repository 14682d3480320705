// The supported model types, one row each.
#pragma once

#include <span>
#include <string_view>

#include "estimator/huggingface/network.hpp"

namespace stowage {

struct Family {
  std::string_view type;          ///< "llama"
  std::string_view class_prefix;  ///< of its classes: "Llama"
  std::span<const Head> heads;    ///< the supported heads; the first is the default
  void (*write)(Network& network) = nullptr;
  bool has_heads = true;
  bool eager_only = false;  ///< its attention has no fused form
  bool has_sinks = false;   ///< of attention, which PyTorch's fused function does not have
};
[[nodiscard]] std::span<const Family> families();
/// Null: no such type.
[[nodiscard]] const Family* find_family(std::string_view type);

void write_llama_family(Network& network);
void write_qwen_family(Network& network);
void write_granite(Network& network);
void write_starcoder2(Network& network);
void write_first_gemma(Network& network);
void write_gemma_family(Network& network);
void write_phi3_family(Network& network);
void write_stablelm_family(Network& network);
void write_gpt_oss(Network& network);
void write_phi(Network& network);
void write_gpt_neox(Network& network);
void write_falcon(Network& network);
void write_gpt2(Network& network);
void write_opt(Network& network);
void write_bert_family(Network& network);
void write_distilbert(Network& network);
void write_t5(Network& network);
void write_bart(Network& network);
void write_whisper(Network& network);
void write_vit(Network& network);
void write_swin(Network& network);
void write_clip(Network& network);

}  // namespace stowage
