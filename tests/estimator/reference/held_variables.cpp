#include "tests/estimator/reference/held_variables.hpp"

namespace stowage::reference {

namespace {

const HeldOutput held_output_table[] = {
    // torchvision: x = self.features(x) ... x = self.classifier(x)
    {{"alexnet"}, "avgpool", "fc8"},
    {{"squeezenet1_0"}, "fire9.concat_1", "avgpool"},
    // torchvision: x = torch.cat([batch_class_token, x], dim=1); x = self.encoder(x)
    {{"vit_b_16"}, "tokens", "ln"},
    // timm: x = self.forward_features(x); x = self.forward_head(x)
    {{"mobilenetv2*"}, "relu6_2", "classifier"},
    {{"mixer_b16"}, "norm", "head"},
    // transformers: hidden_states = transformer_outputs[0]; sequence_output = outputs[0]
    {{"gpt2"}, "ln_f", "loss.nll_loss", "amp"},
    {{"bert-base"}, "layer.11.output_norm", "loss.nll_loss", "amp"},
    {{"llama-3.2-1b"}, "norm", "loss.nll_loss", "amp"},
    // transformers, from configurations: ForCausalLMLoss keeps the padded labels in a variable
    {{"small-falcon*", "small-gemma*", "small-gpt*", "small-llama*", "small-mi*", "small-opt*",
      "small-phi*", "small-qwen*", "small-stablelm*", "small-granite", "small-starcoder2"},
     "padded_labels",
     "loss.nll_loss"},
    {{"opt-125m", "phi-2", "qwen3-0.6b", "mixtral-8x7b"}, "padded_labels", "loss.nll_loss"},
    // transformers, from configurations: outputs.last_hidden_state
    {{"small-llama*", "small-mi*", "small-qwen*", "small-gemma*", "small-phi3*", "small-stablelm*",
      "small-granite", "small-starcoder2", "small-gpt-oss"},
     "model.norm",
     "loss.nll_loss",
     "amp"},
    {{"small-phi"}, "model.final_layernorm", "loss.nll_loss", "amp"},
    {{"small-gpt-neox"}, "gpt_neox.final_layer_norm", "loss.nll_loss", "amp"},
    {{"small-gpt2", "small-falcon*"}, "transformer.ln_f", "loss.nll_loss", "amp"},
    {{"small-opt"}, "model.decoder.final_layer_norm", "loss.nll_loss", "amp"},
    {{"small-bert"}, "bert.encoder.layer.1.output.LayerNorm", "loss.nll_loss", "amp"},
    {{"small-tokens-bert"}, "bert.encoder.layer.1.output.LayerNorm", "loss.nll_loss"},
    {{"small-camembert"}, "roberta.encoder.layer.1.output.LayerNorm", "loss.nll_loss"},
    {{"small-roberta", "small-xlm-roberta"},
     "roberta.encoder.layer.1.output.LayerNorm",
     "loss.nll_loss",
     "amp"},
    {{"small-electra"}, "electra.encoder.layer.1.output.LayerNorm", "loss.nll_loss", "amp"},
    {{"small-distilbert"},
     "distilbert.transformer.layer.1.output_layer_norm",
     "loss.nll_loss",
     "amp"},
    {{"small-bart"}, "model.decoder.layers.1.final_layer_norm", "loss.nll_loss", "amp"},
    {{"small-whisper"}, "model.decoder.layer_norm", "loss.nll_loss", "amp"},
    // transformers' encoders: hidden_states = self.dropout(hidden_states), which the sum has read,
    // while the norm runs
    {{"small-classifier-bert", "small-tokens-bert", "small-answers-bert"},
     "bert.encoder.layer.1.output.dropped",
     "bert.encoder.layer.1.output.LayerNorm"},
    {{"small-classifier-roberta", "small-classifier-xlm-roberta", "small-camembert"},
     "roberta.encoder.layer.1.output.dropped",
     "roberta.encoder.layer.1.output.LayerNorm"},
    {{"small-classifier-electra"},
     "electra.encoder.layer.1.output.dropped",
     "electra.encoder.layer.1.output.LayerNorm"},
    {{"small-classifier-distilbert"},
     "distilbert.transformer.layer.1.ffn.dropped",
     "distilbert.transformer.layer.1.output_layer_norm"},
    // transformers' decoders as classifiers, whose peak lies within the last block: inputs_embeds
    // and position_embeds (pos_embeds) of the model's forward, where they are added or dropped, and
    // where 16 bits are normed in float32
    {{"small-classifier-gpt2"}, "transformer.wte", "transformer.ln_f"},
    {{"small-classifier-gpt2"}, "transformer.wpe", "transformer.ln_f"},
    {{"small-classifier-opt"}, "model.decoder.embed_tokens", "model.decoder.final_layer_norm"},
    {{"small-classifier-opt"}, "model.decoder.embed_positions", "model.decoder.final_layer_norm"},
    {{"small-classifier-phi"}, "model.embed_tokens", "model.final_layernorm"},
    {{"small-classifier-llama"}, "model.embed_tokens", "model.norm", "bf16"},
    // ... its position_ids, and the mask that Falcon's layers share
    {{"small-classifier-phi"}, "model.rotary_emb.positions", "model.layers.1.done"},
    {{"small-classifier-llama"}, "model.rotary_emb.positions", "model.norm", "bf16"},
    {{"small-classifier-falcon"}, "transformer.rotary_emb.positions", "transformer.h.1.done"},
    {{"small-classifier-falcon"}, "transformer.mask_once", "transformer.h.1.done"},
    {{"small-classifier-gpt-neox"}, "gpt_neox.rotary_emb.positions", "gpt_neox.layers.1.done"},
    // ... attn_output and mlp_output of a block, which the sum has read
    {{"small-classifier-gpt2"}, "transformer.h.1.attn.resid_dropout", "transformer.h.1.done"},
    {{"small-classifier-gpt2"}, "transformer.h.1.ln_2", "transformer.h.1.done", "amp"},
    {{"small-classifier-gpt-neox"}, "gpt_neox.layers.1.attention.dense", "gpt_neox.layers.1.done"},
    {{"small-classifier-gpt-neox"},
     "gpt_neox.layers.1.mlp.dense_4h_to_h",
     "gpt_neox.layers.1.done"},
    {{"small-classifier-falcon"}, "transformer.h.1.self_attention.dense", "transformer.h.1.done"},
    // SwinLayer.forward: attention_output, attn_mask and attention_windows are variables while the
    // feed-forward network runs; at its worst in the last block
    {{"small-swin*"},
     "swin.encoder.layers_1.blocks.1.attention.o_proj",
     "swin.encoder.layers_1.blocks.1.done"},
    {{"small-swin-padded"},
     "swin.encoder.layers_1.blocks.1.attention.shift_mask",
     "swin.encoder.layers_1.blocks.1.done"},
    {{"small-swin-padded"},
     "swin.encoder.layers_1.blocks.1.cropped",
     "swin.encoder.layers_1.blocks.1.done"},
    // transformers' encoders: embedding_output, of which autocast saves a cast
    {{"small-classifier-bert", "small-tokens-bert", "small-answers-bert"},
     "bert.embeddings.dropout",
     "bert.encoder.layer.1.output.LayerNorm",
     "amp"},
    {{"small-classifier-roberta", "small-classifier-xlm-roberta", "small-camembert"},
     "roberta.embeddings.dropout",
     "roberta.encoder.layer.1.output.LayerNorm",
     "amp"},
    {{"small-classifier-distilbert"},
     "distilbert.embeddings.dropout",
     "distilbert.transformer.layer.1.output_layer_norm",
     "amp"},
    // transformers' encoders: the layer's input and attention_output, of which autocast saves casts
    {{"small-classifier-bert", "small-tokens-bert", "small-answers-bert"},
     "bert.encoder.layer.0.output.LayerNorm",
     "bert.encoder.layer.1.output.LayerNorm",
     "amp"},
    {{"small-classifier-bert", "small-tokens-bert", "small-answers-bert"},
     "bert.encoder.layer.1.attention.output.LayerNorm",
     "bert.encoder.layer.1.output.LayerNorm",
     "amp"},
    {{"small-classifier-roberta", "small-classifier-xlm-roberta", "small-camembert"},
     "roberta.encoder.layer.0.output.LayerNorm",
     "roberta.encoder.layer.1.output.LayerNorm",
     "amp"},
    {{"small-classifier-roberta", "small-classifier-xlm-roberta", "small-camembert"},
     "roberta.encoder.layer.1.attention.output.LayerNorm",
     "roberta.encoder.layer.1.output.LayerNorm",
     "amp"},
    {{"small-classifier-electra"},
     "electra.encoder.layer.0.output.LayerNorm",
     "electra.encoder.layer.1.output.LayerNorm",
     "amp"},
    {{"small-classifier-electra"},
     "electra.encoder.layer.1.attention.output.LayerNorm",
     "electra.encoder.layer.1.output.LayerNorm",
     "amp"},
    {{"small-classifier-distilbert"},
     "distilbert.transformer.layer.0.output_layer_norm",
     "distilbert.transformer.layer.1.output_layer_norm",
     "amp"},
    {{"small-classifier-distilbert"},
     "distilbert.transformer.layer.1.sa_layer_norm",
     "distilbert.transformer.layer.1.output_layer_norm",
     "amp"},
    // SwinLayer.forward: self.mlp(hidden_states)
    {{"small-swin*"},
     "swin.encoder.layers_1.blocks.1.layernorm_after",
     "swin.encoder.layers_1.blocks.1.mlp.fc2",
     "amp"},
    // Under autocast, whose casts are saved instead: SwinLayer's and SwinAttention's variables, and
    // in the loops over blocks and stages the input of the one that runs
    {{"small-swin"},
     "swin.encoder.layers_1.blocks.1.padded",
     "swin.encoder.layers_1.blocks.1.done",
     "amp"},
    {{"small-swin-padded"},
     "swin.encoder.layers_1.blocks.1.windows.copy",
     "swin.encoder.layers_1.blocks.1.done",
     "amp"},
    {{"small-swin-padded"},
     "swin.encoder.layers_1.blocks.1.padded",
     "swin.encoder.layers_1.blocks.1.attention.attention",
     "amp"},
    {{"small-swin-padded"},
     "swin.encoder.layers_1.blocks.1.attention.masks.copy",
     "swin.encoder.layers_1.blocks.1.attention.attention",
     "amp"},
    {{"small-swin-padded"},
     "swin.encoder.layers_1.blocks.1.attention.relative_position_bias",
     "swin.encoder.layers_1.blocks.1.attention.attention",
     "amp"},
    {{"small-swin*"},
     "swin.encoder.layers_1.blocks.0.done",
     "swin.encoder.layers_1.blocks.1.done",
     "amp"},
    {{"small-swin*"},
     "swin.encoder.layers_0.downsample.reduction",
     "swin.encoder.layers_1.blocks.1.done",
     "amp"},
    // The same beside adapters: the frozen output layer does not save it.
    {{"gpt2"}, "ln_f", "loss.nll_loss", "adapters"},
    {{"llama-3.2-1b"}, "norm", "loss.nll_loss", "adapters"},
    // transformers: sequence_output = decoder_outputs[0]; then sequence_output * factor
    {{"t5-small"}, "dropout_4", "loss.nll_loss"},
    {{"small-t5"}, "decoder.decoded", "loss.nll_loss"},
    {{"t5-small", "small-t5"}, "scaled", "loss.nll_loss", "amp"},
    {{"small-t5-gated"}, "decoder.decoded", "loss.nll_loss", "amp"},
    // word_language_model: output, hidden = self.rnn(embedded, hidden)
    {{"lstm-lm"}, "rnn.hn", "log_probabilities"},
    {{"lstm-lm"}, "rnn.cn", "log_probabilities"},
    // diffusers: sample = upsample_block(hidden_states=sample, ...), and within it
    // output = self._get_output_for_continuous_inputs(hidden_states, ...)
    {{"stable-diffusion-unet"}, "up3.upsampler.conv", "up4.attention3.add_4"},
    {{"stable-diffusion-unet"}, "up4.attention3.add_3", "up4.attention3.add_4"},
    // x + self.mlp(self.norm2(x)), at its worst in the last block
    {{"vit_tiny*"}, "blocks.11.norm2", "blocks.11.fc2", "checkpoint"},
    {{"swin_t"}, "stage4.1.norm2", "stage4.1.fc2", "amp"},
    // nn.Sequential: input = module(input), the stages' and the last stage's blocks'
    {{"swin_t"}, "merging3.reduction", "stage4.1.add_2", "amp"},
    {{"swin_t"}, "stage4.0.add_2", "stage4.1.add_2", "amp"},
};

const MissingCopy missing_copy_table[] = {
    // SwinStage.forward: its result once more with its channels first, which nobody reads
    {{"small-swin*"},
     "swin.encoder.layers_0.downsample.reduction",
     "swin.encoder.layers_1.blocks.0.layernorm_before.forward",
     "swin.encoder.layers_1.blocks.1.done.forward"},
    // A fake layer norm's gradient lies as the gradient of the mean that it is made of, and the
    // product's view copies it; CUDA's kernel makes it contiguous.
    {{"small-swin"},
     "swin.layernorm.grad_input",
     "swin.encoder.layers_1.blocks.1.mlp.fc2.backward",
     "swin.encoder.layers_1.blocks.1.mlp.fc2.backward",
     "fp32"},
    {{"small-swin"},
     "swin.layernorm.cast_gradient",
     "swin.encoder.layers_1.blocks.1.mlp.fc2.backward",
     "swin.encoder.layers_1.blocks.1.mlp.fc2.backward",
     "amp"},
};

}  // namespace

std::span<const HeldOutput> held_outputs() { return held_output_table; }

std::span<const MissingCopy> missing_copies() { return missing_copy_table; }

}  // namespace stowage::reference
