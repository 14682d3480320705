#include "estimator/huggingface/families.hpp"

#include <algorithm>
#include <array>

#include "estimator/huggingface/decoder.hpp"

namespace stowage {

namespace {

constexpr std::array decoder_heads{Head::causal_lm, Head::sequence_classification, Head::none};
constexpr std::array encoder_heads{Head::masked_lm, Head::sequence_classification,
                                   Head::token_classification, Head::question_answering,
                                   Head::none};
constexpr std::array sequence_heads{Head::conditional_generation, Head::none};
constexpr std::array generation_heads{Head::conditional_generation};
constexpr std::array image_heads{Head::image_classification, Head::none};
constexpr std::array no_heads{Head::none};

}  // namespace

std::span<const Family> families() {
  static constexpr std::array table{
      Family{"llama", "Llama", decoder_heads, write_llama_family},
      Family{"mistral", "Mistral", decoder_heads, write_llama_family},
      Family{"mixtral", "Mixtral", decoder_heads, write_llama_family},
      Family{"qwen2", "Qwen2", decoder_heads, write_qwen_family},
      Family{"qwen2_moe", "Qwen2Moe", decoder_heads, write_qwen_family},
      Family{"qwen3", "Qwen3", decoder_heads, write_qwen_family},
      Family{"qwen3_moe", "Qwen3Moe", decoder_heads, write_qwen_family},
      Family{"granite", "Granite", decoder_heads, write_granite},
      Family{"starcoder2", "Starcoder2", decoder_heads, write_starcoder2},
      Family{"gemma", "Gemma", decoder_heads, write_first_gemma},
      Family{"gemma2", "Gemma2", decoder_heads, write_gemma_family, true, true},
      Family{"gemma3_text", "Gemma3", decoder_heads, write_gemma_family},
      Family{"phi3", "Phi3", decoder_heads, write_phi3_family},
      Family{"stablelm", "StableLm", decoder_heads, write_stablelm_family},
      Family{"gpt_oss", "GptOss", decoder_heads, write_gpt_oss, true, true, true},
      Family{"phi", "Phi", decoder_heads, write_phi},
      Family{"gpt_neox", "GPTNeoX", decoder_heads, write_gpt_neox},
      Family{"falcon", "Falcon", decoder_heads, write_falcon},
      Family{"gpt2", "GPT2", decoder_heads, write_gpt2},
      Family{"opt", "OPT", decoder_heads, write_opt},
      Family{"bert", "Bert", encoder_heads, write_bert_family},
      Family{"roberta", "Roberta", encoder_heads, write_bert_family},
      Family{"xlm-roberta", "XLMRoberta", encoder_heads, write_bert_family},
      Family{"camembert", "Camembert", encoder_heads, write_bert_family},
      Family{"electra", "Electra", encoder_heads, write_bert_family},
      Family{"distilbert", "DistilBert", encoder_heads, write_distilbert},
      Family{"t5", "T5", generation_heads, write_t5},
      Family{"bart", "Bart", sequence_heads, write_bart},
      Family{"whisper", "Whisper", sequence_heads, write_whisper},
      Family{"vit", "ViT", image_heads, write_vit},
      Family{"swin", "Swin", image_heads, write_swin},
      Family{"clip", "CLIP", no_heads, write_clip},
      Family{"clip_text_model", "CLIPText", no_heads, write_clip},
      Family{"clip_vision_model", "CLIPVision", no_heads, write_clip},
  };
  return table;
}

const Family* find_family(std::string_view type) {
  const auto all = families();
  const auto found =
      std::ranges::find_if(all, [&](const Family& family) { return family.type == type; });
  return found == all.end() ? nullptr : &*found;
}

void write_llama_family(Network& network) { write_decoder(network, read_llama(network)); }
void write_qwen_family(Network& network) { write_decoder(network, read_qwen(network)); }
void write_gemma_family(Network& network) { write_decoder(network, read_gemma(network)); }
void write_granite(Network& network) { write_decoder(network, read_granite(network)); }
void write_starcoder2(Network& network) { write_decoder(network, read_starcoder2(network)); }
void write_first_gemma(Network& network) { write_decoder(network, read_first_gemma(network)); }
void write_phi3_family(Network& network) { write_decoder(network, read_phi3(network)); }
void write_stablelm_family(Network& network) { write_decoder(network, read_stablelm(network)); }
void write_gpt_oss(Network& network) { write_decoder(network, read_gpt_oss(network)); }

}  // namespace stowage
