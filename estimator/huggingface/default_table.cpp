// Written by tests/reference/hf_defaults.py from the configuration classes of transformers
// 5.24.0; not by hand.
#include "estimator/huggingface/default_table.hpp"

namespace stowage {

// clang-format off
std::span<const ConfigDefaults> config_default_table() {
  static constexpr ConfigDefaults table[] = {
    {"gpt2", "GPT2Config",
     R"({"activation_function": "gelu_new", "add_cross_attention": false, "architectures": null,
"attn_pdrop": 0.1, "bos_token_id": 50256, "chunk_size_feed_forward": 0, "dtype": null,
"embd_pdrop": 0.1, "eos_token_id": 50256, "id2label": null, "initializer_range": 0.02,
"is_encoder_decoder": false, "label2id": null, "layer_norm_epsilon": 1e-05, "n_embd": 768,
"n_head": 12, "n_inner": null, "n_layer": 12, "n_positions": 1024, "output_hidden_states":
false, "pad_token_id": null, "problem_type": null, "reorder_and_upcast_attn": false,
"resid_pdrop": 0.1, "return_dict": true, "scale_attn_by_inverse_layer_idx": false,
"scale_attn_weights": true, "summary_activation": null, "summary_first_dropout": 0.1,
"summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
"tie_word_embeddings": true, "use_cache": true, "vocab_size": 50257})",
     R"({"hidden_size": "n_embd", "max_position_embeddings": "n_positions", "num_attention_heads":
"n_head", "num_hidden_layers": "n_layer"})"},
    {"llama", "LlamaConfig",
     R"({"architectures": null, "attention_bias": false, "attention_dropout": 0.0, "bos_token_id":
1, "chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": 2, "head_dim": null,
"hidden_act": "silu", "hidden_size": 4096, "id2label": null, "initializer_range": 0.02,
"intermediate_size": 11008, "is_encoder_decoder": false, "label2id": null,
"max_position_embeddings": 2048, "mlp_bias": false, "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": null, "output_hidden_states": false,
"pad_token_id": null, "pretraining_tp": 1, "problem_type": null, "return_dict": true,
"rms_norm_eps": 1e-06, "rope_parameters": null, "tie_word_embeddings": false, "use_cache":
true, "vocab_size": 32000})",
     R"({})"},
    {"mistral", "MistralConfig",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": 1,
"chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": 2, "head_dim": null,
"hidden_act": "silu", "hidden_size": 4096, "id2label": null, "initializer_range": 0.02,
"intermediate_size": 14336, "is_encoder_decoder": false, "label2id": null,
"max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32,
"num_key_value_heads": 8, "output_hidden_states": false, "pad_token_id": null,
"problem_type": null, "return_dict": true, "rms_norm_eps": 1e-06, "rope_parameters": null,
"sliding_window": 4096, "tie_word_embeddings": false, "use_cache": true, "vocab_size":
32000})",
     R"({})"},
    {"mixtral", "MixtralConfig",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": 1,
"chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": 2, "head_dim": null,
"hidden_act": "silu", "hidden_size": 4096, "id2label": null, "initializer_range": 0.02,
"intermediate_size": 14336, "is_encoder_decoder": false, "label2id": null,
"max_position_embeddings": 131072, "num_attention_heads": 32, "num_experts_per_tok": 2,
"num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
"output_hidden_states": false, "output_router_logits": false, "pad_token_id": null,
"problem_type": null, "return_dict": true, "rms_norm_eps": 1e-05, "rope_parameters": null,
"router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "sliding_window": null,
"tie_word_embeddings": false, "use_cache": true, "vocab_size": 32000})",
     R"({"num_experts": "num_local_experts"})"},
    {"qwen2", "Qwen2Config",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": null,
"chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": null, "hidden_act": "silu",
"hidden_size": 4096, "id2label": null, "initializer_range": 0.02, "intermediate_size":
22016, "is_encoder_decoder": false, "label2id": null, "layer_types": null,
"max_position_embeddings": 32768, "max_window_layers": 28, "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 32, "output_hidden_states": false,
"pad_token_id": null, "problem_type": null, "return_dict": true, "rms_norm_eps": 1e-06,
"rope_parameters": null, "sliding_window": 4096, "tie_word_embeddings": false,
"use_cache": true, "use_sliding_window": false, "vocab_size": 151936})",
     R"({})"},
    {"qwen2_moe", "Qwen2MoeConfig",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": null,
"chunk_size_feed_forward": 0, "decoder_sparse_step": 1, "dtype": null, "eos_token_id":
null, "hidden_act": "silu", "hidden_size": 2048, "id2label": null, "initializer_range":
0.02, "intermediate_size": 5632, "is_encoder_decoder": false, "label2id": null,
"layer_types": null, "max_position_embeddings": 32768, "max_window_layers": 28,
"mlp_only_layers": null, "moe_intermediate_size": 1408, "norm_topk_prob": false,
"num_attention_heads": 16, "num_experts": 60, "num_experts_per_tok": 4,
"num_hidden_layers": 24, "num_key_value_heads": 16, "output_hidden_states": false,
"output_router_logits": false, "pad_token_id": null, "problem_type": null, "qkv_bias":
true, "return_dict": true, "rms_norm_eps": 1e-06, "rope_parameters": null,
"router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 5632, "sliding_window":
4096, "tie_word_embeddings": false, "use_cache": true, "use_sliding_window": false,
"vocab_size": 151936})",
     R"({})"},
    {"qwen3", "Qwen3Config",
     R"({"architectures": null, "attention_bias": false, "attention_dropout": 0.0, "bos_token_id":
null, "chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": null, "head_dim": 128,
"hidden_act": "silu", "hidden_size": 4096, "id2label": null, "initializer_range": 0.02,
"intermediate_size": 22016, "is_encoder_decoder": false, "label2id": null, "layer_types":
null, "max_position_embeddings": 32768, "max_window_layers": 28, "num_attention_heads":
32, "num_hidden_layers": 32, "num_key_value_heads": 32, "output_hidden_states": false,
"pad_token_id": null, "problem_type": null, "return_dict": true, "rms_norm_eps": 1e-06,
"rope_parameters": null, "sliding_window": 4096, "tie_word_embeddings": false,
"use_cache": true, "use_sliding_window": false, "vocab_size": 151936})",
     R"({})"},
    {"qwen3_moe", "Qwen3MoeConfig",
     R"({"architectures": null, "attention_bias": false, "attention_dropout": 0.0, "bos_token_id":
null, "chunk_size_feed_forward": 0, "decoder_sparse_step": 1, "dtype": null,
"eos_token_id": null, "hidden_act": "silu", "hidden_size": 2048, "id2label": null,
"initializer_range": 0.02, "intermediate_size": 6144, "is_encoder_decoder": false,
"label2id": null, "max_position_embeddings": 32768, "mlp_only_layers": null,
"moe_intermediate_size": 768, "norm_topk_prob": false, "num_attention_heads": 32,
"num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 24,
"num_key_value_heads": 4, "output_hidden_states": false, "output_router_logits": false,
"pad_token_id": null, "problem_type": null, "return_dict": true, "rms_norm_eps": 1e-06,
"rope_parameters": null, "router_aux_loss_coef": 0.001, "sliding_window": 4096,
"tie_word_embeddings": false, "use_cache": true, "use_sliding_window": false,
"vocab_size": 151936})",
     R"({"num_experts": "num_local_experts"})"},
    {"granite", "GraniteConfig",
     R"({"architectures": null, "attention_bias": false, "attention_dropout": 0.0,
"attention_multiplier": 1.0, "bos_token_id": 1, "chunk_size_feed_forward": 0, "dtype":
null, "embedding_multiplier": 1.0, "eos_token_id": 2, "hidden_act": "silu", "hidden_size":
4096, "id2label": null, "initializer_range": 0.02, "intermediate_size": 11008,
"is_encoder_decoder": false, "label2id": null, "logits_scaling": 1.0,
"max_position_embeddings": 2048, "mlp_bias": false, "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": null, "output_hidden_states": false,
"pad_token_id": null, "problem_type": null, "residual_multiplier": 1.0, "return_dict":
true, "rms_norm_eps": 1e-06, "rope_parameters": null, "tie_word_embeddings": false,
"use_cache": true, "vocab_size": 32000})",
     R"({})"},
    {"starcoder2", "Starcoder2Config",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": 50256,
"chunk_size_feed_forward": 0, "dtype": null, "embedding_dropout": 0.0, "eos_token_id":
50256, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072, "id2label": null,
"initializer_range": 0.018042, "intermediate_size": 12288, "is_encoder_decoder": false,
"label2id": null, "max_position_embeddings": 4096, "norm_epsilon": 1e-05,
"num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2,
"output_hidden_states": false, "pad_token_id": null, "problem_type": null,
"residual_dropout": 0.0, "return_dict": true, "rope_parameters": null, "sliding_window":
null, "tie_word_embeddings": true, "use_bias": true, "use_cache": true, "vocab_size":
49152})",
     R"({})"},
    {"gemma", "GemmaConfig",
     R"({"architectures": null, "attention_bias": false, "attention_dropout": 0.0, "bos_token_id":
2, "chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": 1, "head_dim": 256,
"hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072, "id2label": null,
"initializer_range": 0.02, "intermediate_size": 24576, "is_encoder_decoder": false,
"label2id": null, "max_position_embeddings": 8192, "num_attention_heads": 16,
"num_hidden_layers": 28, "num_key_value_heads": 16, "output_hidden_states": false,
"pad_token_id": 0, "problem_type": null, "return_dict": true, "rms_norm_eps": 1e-06,
"rope_parameters": null, "tie_word_embeddings": true, "use_bidirectional_attention": null,
"use_cache": true, "vocab_size": 256000})",
     R"({})"},
    {"gemma2", "Gemma2Config",
     R"({"architectures": null, "attention_bias": false, "attention_dropout": 0.0,
"attn_logit_softcapping": 50.0, "bos_token_id": 2, "chunk_size_feed_forward": 0, "dtype":
null, "eos_token_id": 1, "final_logit_softcapping": 30.0, "head_dim": 256,
"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304, "id2label": null,
"initializer_range": 0.02, "intermediate_size": 9216, "is_encoder_decoder": false,
"label2id": null, "layer_types": null, "max_position_embeddings": 8192,
"num_attention_heads": 8, "num_hidden_layers": 26, "num_key_value_heads": 4,
"output_hidden_states": false, "pad_token_id": 0, "problem_type": null,
"query_pre_attn_scalar": 256, "return_dict": true, "rms_norm_eps": 1e-06,
"rope_parameters": null, "sliding_window": 4096, "tie_word_embeddings": true,
"use_bidirectional_attention": null, "use_cache": true, "vocab_size": 256000})",
     R"({})"},
    {"gemma3_text", "Gemma3TextConfig",
     R"({"architectures": null, "attention_bias": false, "attention_dropout": 0.0,
"attn_logit_softcapping": null, "bos_token_id": 2, "chunk_size_feed_forward": 0, "dtype":
null, "eos_token_id": 1, "final_logit_softcapping": null, "head_dim": 256,
"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304, "id2label": null,
"initializer_range": 0.02, "intermediate_size": 9216, "is_encoder_decoder": false,
"label2id": null, "layer_types": null, "max_position_embeddings": 131072,
"num_attention_heads": 8, "num_hidden_layers": 26, "num_key_value_heads": 4,
"output_hidden_states": false, "pad_token_id": 0, "problem_type": null,
"query_pre_attn_scalar": 256, "return_dict": true, "rms_norm_eps": 1e-06,
"rope_parameters": null, "sliding_window": 4096, "tie_word_embeddings": true,
"use_bidirectional_attention": false, "use_cache": true, "vocab_size": 262208})",
     R"({})"},
    {"phi", "PhiConfig",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": 1,
"chunk_size_feed_forward": 0, "dtype": null, "embd_pdrop": 0.0, "eos_token_id": 2,
"hidden_act": "gelu_new", "hidden_size": 2048, "id2label": null, "initializer_range":
0.02, "intermediate_size": 8192, "is_encoder_decoder": false, "label2id": null,
"layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "num_attention_heads": 32,
"num_hidden_layers": 24, "num_key_value_heads": null, "output_hidden_states": false,
"pad_token_id": null, "problem_type": null, "qk_layernorm": false, "resid_pdrop": 0.0,
"return_dict": true, "rope_parameters": null, "tie_word_embeddings": false, "use_cache":
true, "vocab_size": 51200})",
     R"({})"},
    {"phi3", "Phi3Config",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": 1,
"chunk_size_feed_forward": 0, "dtype": null, "embd_pdrop": 0.0, "eos_token_id": 32000,
"hidden_act": "silu", "hidden_size": 3072, "id2label": null, "initializer_range": 0.02,
"intermediate_size": 8192, "is_encoder_decoder": false, "label2id": null,
"max_position_embeddings": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
"num_key_value_heads": null, "original_max_position_embeddings": 4096,
"output_hidden_states": false, "pad_token_id": 32000, "problem_type": null, "resid_pdrop":
0.0, "return_dict": true, "rms_norm_eps": 1e-05, "rope_parameters": null,
"sliding_window": null, "tie_word_embeddings": false, "use_cache": true, "vocab_size":
32064})",
     R"({})"},
    {"falcon", "FalconConfig",
     R"({"activation": "gelu", "alibi": false, "architectures": null, "attention_dropout": 0.0,
"bias": false, "bos_token_id": 11, "chunk_size_feed_forward": 0, "dtype": null,
"eos_token_id": 11, "ffn_hidden_size": null, "hidden_dropout": 0.0, "hidden_size": 4544,
"id2label": null, "initializer_range": 0.02, "is_encoder_decoder": false, "label2id":
null, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 2048, "multi_query": true,
"new_decoder_architecture": false, "num_attention_heads": 71, "num_hidden_layers": 32,
"num_kv_heads": null, "num_ln_in_parallel_attn": null, "output_hidden_states": false,
"pad_token_id": null, "parallel_attn": true, "problem_type": null, "return_dict": true,
"rope_parameters": null, "tie_word_embeddings": true, "use_cache": true, "vocab_size":
65024})",
     R"({})"},
    {"stablelm", "StableLmConfig",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": 0,
"chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": 0, "hidden_act": "silu",
"hidden_dropout": 0.0, "hidden_size": 2560, "id2label": null, "initializer_range": 0.02,
"intermediate_size": 6912, "is_encoder_decoder": false, "label2id": null,
"layer_norm_eps": 1e-05, "max_position_embeddings": 4096, "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 32, "output_hidden_states": false,
"pad_token_id": null, "problem_type": null, "qk_layernorm": false, "return_dict": true,
"rope_parameters": null, "tie_word_embeddings": false, "use_cache": true,
"use_parallel_residual": false, "use_qkv_bias": false, "vocab_size": 50304})",
     R"({})"},
    {"bert", "BertConfig",
     R"({"add_cross_attention": false, "architectures": null, "attention_probs_dropout_prob": 0.1,
"bos_token_id": null, "chunk_size_feed_forward": 0, "classifier_dropout": null, "dtype":
null, "eos_token_id": null, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
"hidden_size": 768, "id2label": null, "initializer_range": 0.02, "intermediate_size":
3072, "is_decoder": false, "is_encoder_decoder": false, "label2id": null,
"layer_norm_eps": 1e-12, "max_position_embeddings": 512, "num_attention_heads": 12,
"num_hidden_layers": 12, "output_hidden_states": false, "pad_token_id": 0, "problem_type":
null, "return_dict": true, "tie_word_embeddings": true, "type_vocab_size": 2, "use_cache":
true, "vocab_size": 30522})",
     R"({})"},
    {"roberta", "RobertaConfig",
     R"({"add_cross_attention": false, "architectures": null, "attention_probs_dropout_prob": 0.1,
"bos_token_id": 0, "chunk_size_feed_forward": 0, "classifier_dropout": null, "dtype":
null, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size":
768, "id2label": null, "initializer_range": 0.02, "intermediate_size": 3072, "is_decoder":
false, "is_encoder_decoder": false, "label2id": null, "layer_norm_eps": 1e-12,
"max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
"output_hidden_states": false, "pad_token_id": 1, "problem_type": null, "return_dict":
true, "tie_word_embeddings": true, "type_vocab_size": 2, "use_cache": true, "vocab_size":
50265})",
     R"({})"},
    {"xlm-roberta", "XLMRobertaConfig",
     R"({"add_cross_attention": false, "architectures": null, "attention_probs_dropout_prob": 0.1,
"bos_token_id": 0, "chunk_size_feed_forward": 0, "classifier_dropout": null, "dtype":
null, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size":
768, "id2label": null, "initializer_range": 0.02, "intermediate_size": 3072, "is_decoder":
false, "is_encoder_decoder": false, "label2id": null, "layer_norm_eps": 1e-12,
"max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
"output_hidden_states": false, "pad_token_id": 1, "problem_type": null, "return_dict":
true, "tie_word_embeddings": true, "type_vocab_size": 2, "use_cache": true, "vocab_size":
30522})",
     R"({})"},
    {"camembert", "CamembertConfig",
     R"({"add_cross_attention": false, "architectures": null, "attention_probs_dropout_prob": 0.1,
"bos_token_id": 0, "chunk_size_feed_forward": 0, "classifier_dropout": null, "dtype":
null, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size":
768, "id2label": null, "initializer_range": 0.02, "intermediate_size": 3072, "is_decoder":
false, "is_encoder_decoder": false, "label2id": null, "layer_norm_eps": 1e-12,
"max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
"output_hidden_states": false, "pad_token_id": 1, "problem_type": null, "return_dict":
true, "tie_word_embeddings": true, "type_vocab_size": 2, "use_cache": true, "vocab_size":
30522})",
     R"({})"},
    {"distilbert", "DistilBertConfig",
     R"({"activation": "gelu", "architectures": null, "attention_dropout": 0.1, "bos_token_id":
null, "chunk_size_feed_forward": 0, "dim": 768, "dropout": 0.1, "dtype": null,
"eos_token_id": null, "hidden_dim": 3072, "id2label": null, "initializer_range": 0.02,
"is_encoder_decoder": false, "label2id": null, "max_position_embeddings": 512, "n_heads":
12, "n_layers": 6, "output_hidden_states": false, "pad_token_id": 0, "problem_type": null,
"qa_dropout": 0.1, "return_dict": true, "seq_classif_dropout": 0.2,
"sinusoidal_pos_embds": false, "tie_word_embeddings": true, "vocab_size": 30522})",
     R"({"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"})"},
    {"electra", "ElectraConfig",
     R"({"add_cross_attention": false, "architectures": null, "attention_probs_dropout_prob": 0.1,
"bos_token_id": null, "chunk_size_feed_forward": 0, "classifier_dropout": null, "dtype":
null, "embedding_size": 128, "eos_token_id": null, "hidden_act": "gelu",
"hidden_dropout_prob": 0.1, "hidden_size": 256, "id2label": null, "initializer_range":
0.02, "intermediate_size": 1024, "is_decoder": false, "is_encoder_decoder": false,
"label2id": null, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
"num_attention_heads": 4, "num_hidden_layers": 12, "output_hidden_states": false,
"pad_token_id": 0, "problem_type": null, "return_dict": true, "summary_activation":
"gelu", "summary_last_dropout": 0.1, "summary_type": "first", "summary_use_proj": true,
"tie_word_embeddings": true, "type_vocab_size": 2, "use_cache": true, "vocab_size": 30522})",
     R"({})"},
    {"t5", "T5Config",
     R"({"architectures": null, "chunk_size_feed_forward": 0, "classifier_dropout": 0.0, "d_ff":
2048, "d_kv": 64, "d_model": 512, "dropout_rate": 0.1, "dtype": null, "eos_token_id": 1,
"feed_forward_proj": "relu", "id2label": null, "initializer_factor": 1.0, "is_decoder":
false, "is_encoder_decoder": true, "label2id": null, "layer_norm_epsilon": 1e-06,
"num_decoder_layers": null, "num_heads": 8, "num_layers": 6, "output_hidden_states":
false, "pad_token_id": 0, "problem_type": null, "relative_attention_max_distance": 128,
"relative_attention_num_buckets": 32, "return_dict": true, "use_cache": true,
"vocab_size": 32128})",
     R"({"head_dim": "d_kv", "hidden_size": "d_model", "num_attention_heads": "num_heads",
"num_hidden_layers": "num_layers"})"},
    {"bart", "BartConfig",
     R"({"activation_dropout": 0.0, "activation_function": "gelu", "architectures": null,
"attention_dropout": 0.0, "bos_token_id": 0, "chunk_size_feed_forward": 0,
"classifier_dropout": 0.0, "d_model": 1024, "decoder_attention_heads": 16,
"decoder_ffn_dim": 4096, "decoder_layerdrop": 0.0, "decoder_layers": 12,
"decoder_start_token_id": 2, "dropout": 0.1, "dtype": null, "encoder_attention_heads": 16,
"encoder_ffn_dim": 4096, "encoder_layerdrop": 0.0, "encoder_layers": 12, "eos_token_id":
2, "forced_eos_token_id": 2, "id2label": null, "init_std": 0.02, "is_decoder": false,
"is_encoder_decoder": true, "label2id": null, "max_position_embeddings": 1024,
"output_hidden_states": false, "pad_token_id": 1, "problem_type": null, "return_dict":
true, "scale_embedding": false, "tie_word_embeddings": true, "use_cache": true,
"vocab_size": 50265})",
     R"({"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads",
"num_hidden_layers": "encoder_layers"})"},
    {"opt", "OPTConfig",
     R"({"_remove_final_layer_norm": false, "activation_function": "relu", "architectures": null,
"attention_dropout": 0.0, "bos_token_id": 2, "chunk_size_feed_forward": 0,
"do_layer_norm_before": true, "dropout": 0.1, "dtype": null, "enable_bias": true,
"eos_token_id": 2, "ffn_dim": 3072, "hidden_size": 768, "id2label": null, "init_std":
0.02, "is_encoder_decoder": false, "label2id": null, "layer_norm_elementwise_affine":
true, "layerdrop": 0.0, "max_position_embeddings": 2048, "num_attention_heads": 12,
"num_hidden_layers": 12, "output_hidden_states": false, "pad_token_id": 1, "problem_type":
null, "return_dict": true, "tie_word_embeddings": true, "use_cache": true, "vocab_size":
50272, "word_embed_proj_dim": null})",
     R"({})"},
    {"gpt_neox", "GPTNeoXConfig",
     R"({"architectures": null, "attention_bias": true, "attention_dropout": 0.0, "bos_token_id":
0, "chunk_size_feed_forward": 0, "classifier_dropout": 0.1, "dtype": null, "eos_token_id":
2, "hidden_act": "gelu", "hidden_dropout": 0.0, "hidden_size": 6144, "id2label": null,
"initializer_range": 0.02, "intermediate_size": 24576, "is_decoder": false,
"is_encoder_decoder": false, "label2id": null, "layer_norm_eps": 1e-05,
"max_position_embeddings": 2048, "num_attention_heads": 64, "num_hidden_layers": 44,
"output_hidden_states": false, "pad_token_id": null, "problem_type": null, "return_dict":
true, "rope_parameters": null, "tie_word_embeddings": false, "use_cache": true,
"use_parallel_residual": true, "vocab_size": 50432})",
     R"({})"},
    {"vit", "ViTConfig",
     R"({"architectures": null, "attention_probs_dropout_prob": 0.0, "chunk_size_feed_forward": 0,
"dtype": null, "encoder_stride": 16, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
"hidden_size": 768, "id2label": null, "image_size": 224, "initializer_range": 0.02,
"intermediate_size": 3072, "is_encoder_decoder": false, "label2id": null,
"layer_norm_eps": 1e-12, "num_attention_heads": 12, "num_channels": 3,
"num_hidden_layers": 12, "output_hidden_states": false, "patch_size": 16, "pooler_act":
"tanh", "pooler_output_size": null, "problem_type": null, "qkv_bias": true, "return_dict":
true})",
     R"({})"},
    {"swin", "SwinConfig",
     R"({"_out_features": null, "_out_indices": null, "architectures": null,
"attention_probs_dropout_prob": 0.0, "chunk_size_feed_forward": 0, "depths": [2, 2, 6, 2],
"drop_path_rate": 0.1, "dtype": null, "embed_dim": 96, "encoder_stride": 32, "hidden_act":
"gelu", "hidden_dropout_prob": 0.0, "id2label": null, "image_size": 224,
"initializer_range": 0.02, "is_encoder_decoder": false, "label2id": null,
"layer_norm_eps": 1e-05, "mlp_ratio": 4.0, "num_channels": 3, "num_heads": [3, 6, 12, 24],
"output_hidden_states": false, "patch_size": 4, "problem_type": null, "qkv_bias": true,
"return_dict": true, "use_absolute_embeddings": false, "window_size": 7})",
     R"({"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"})"},
    {"clip", "CLIPConfig",
     R"({"architectures": null, "chunk_size_feed_forward": 0, "dtype": null, "id2label": null,
"initializer_factor": 1.0, "is_encoder_decoder": false, "label2id": null,
"logit_scale_init_value": 2.6592, "output_hidden_states": false, "problem_type": null,
"projection_dim": 512, "return_dict": true, "text_config": null, "vision_config": null})",
     R"({})"},
    {"clip_text_model", "CLIPTextConfig",
     R"({"architectures": null, "attention_dropout": 0.0, "bos_token_id": 49406,
"chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": 49407, "hidden_act":
"quick_gelu", "hidden_size": 512, "id2label": null, "initializer_factor": 1.0,
"initializer_range": 0.02, "intermediate_size": 2048, "is_encoder_decoder": false,
"label2id": null, "layer_norm_eps": 1e-05, "max_position_embeddings": 77,
"num_attention_heads": 8, "num_hidden_layers": 12, "output_hidden_states": false,
"pad_token_id": 1, "problem_type": null, "projection_dim": 512, "return_dict": true,
"vocab_size": 49408})",
     R"({})"},
    {"clip_vision_model", "CLIPVisionConfig",
     R"({"architectures": null, "attention_dropout": 0.0, "chunk_size_feed_forward": 0, "dtype":
null, "hidden_act": "quick_gelu", "hidden_size": 768, "id2label": null, "image_size": 224,
"initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 3072,
"is_encoder_decoder": false, "label2id": null, "layer_norm_eps": 1e-05,
"num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12,
"output_hidden_states": false, "patch_size": 32, "problem_type": null, "projection_dim":
512, "return_dict": true})",
     R"({})"},
    {"whisper", "WhisperConfig",
     R"({"activation_dropout": 0.0, "activation_function": "gelu", "apply_spec_augment": false,
"architectures": null, "attention_dropout": 0.0, "begin_suppress_tokens": [220, 50256],
"bos_token_id": 50256, "chunk_size_feed_forward": 0, "classifier_proj_size": 256,
"d_model": 384, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536,
"decoder_layerdrop": 0.0, "decoder_layers": 4, "decoder_start_token_id": 50257, "dropout":
0.0, "dtype": null, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536,
"encoder_layerdrop": 0.0, "encoder_layers": 4, "eos_token_id": 50256, "id2label": null,
"init_std": 0.02, "is_encoder_decoder": true, "label2id": null, "mask_feature_length": 10,
"mask_feature_min_masks": 0, "mask_feature_prob": 0.0, "mask_time_length": 10,
"mask_time_min_masks": 2, "mask_time_prob": 0.05, "max_source_positions": 1500,
"max_target_positions": 448, "median_filter_width": 7, "num_mel_bins": 80,
"output_hidden_states": false, "pad_token_id": 50256, "problem_type": null, "return_dict":
true, "scale_embedding": false, "suppress_tokens": null, "tie_word_embeddings": true,
"use_cache": true, "use_weighted_layer_sum": false, "vocab_size": 51865})",
     R"({"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads",
"num_hidden_layers": "encoder_layers", "num_key_value_heads": "encoder_attention_heads"})"},
    {"gpt_oss", "GptOssConfig",
     R"({"architectures": null, "attention_bias": true, "attention_dropout": 0.0, "bos_token_id":
null, "chunk_size_feed_forward": 0, "dtype": null, "eos_token_id": null, "head_dim": 64,
"hidden_act": "silu", "hidden_size": 2880, "id2label": null, "initializer_range": 0.02,
"intermediate_size": 2880, "is_encoder_decoder": false, "label2id": null, "layer_types":
null, "max_position_embeddings": 131072, "num_attention_heads": 64, "num_experts_per_tok":
4, "num_hidden_layers": 36, "num_key_value_heads": 8, "num_local_experts": 128,
"output_hidden_states": false, "output_router_logits": false, "pad_token_id": null,
"problem_type": null, "return_dict": true, "rms_norm_eps": 1e-05, "rope_parameters": null,
"router_aux_loss_coef": 0.001, "sliding_window": 128, "swiglu_alpha": 1.702,
"swiglu_limit": 7.0, "tie_word_embeddings": false, "use_cache": true, "vocab_size":
201088})",
     R"({"num_experts": "num_local_experts"})"},
  };
  return table;
}
// clang-format on

}  // namespace stowage
