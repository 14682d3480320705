"""The catalogue of models beyond those of models.py: whose implementation each is, under which
arguments, and what it is fed. Nothing is downloaded: the configurations of the Hugging Face models
are written out here from their published config.json, where they differ from the library's defaults.
"""

import contextlib
import dataclasses

import torch
import torch.nn.functional as functional

import models
from models import Reference, cross_entropy, language_model


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model of the catalogue: its Reference and the arguments that set it apart from the plain
    model of that name (`inception_v3` with {"aux": True})."""

    model: str
    reference: Reference
    arguments: dict = dataclasses.field(default_factory=dict)


def reals(reference, batch, _seq):
    """DCGAN's inputs: noise or images, and one label of 0 or 1 an image."""
    return torch.rand(batch, *reference.input_shape), torch.ones(batch)


def sequence_first(_reference, batch, seq):
    """Tokens as word_language_model's `get_batch` has them: [seq, batch], targets flattened."""
    return (torch.zeros(seq, batch, dtype=torch.int64),
            torch.zeros(seq * batch, dtype=torch.int64))


def with_auxiliaries(weight):
    """PyTorch's finetuning tutorial adds 0.4 of the auxiliary loss to Inception's; the GoogLeNet
    paper adds 0.3 of each of the two. The memory is the same whatever the weight."""
    def loss(model, inputs, target):
        outputs = model(inputs)
        total = functional.cross_entropy(outputs[0], target)
        for auxiliary in outputs[1:]:
            total = total + weight * functional.cross_entropy(auxiliary, target)
        return outputs, total

    loss.__name__ = f"cross_entropy + {weight} * cross_entropy of each auxiliary output"
    return loss


def binary_cross_entropy(model, inputs, target):
    """DCGAN's discriminator ends in a sigmoid; the example's criterion is nn.BCELoss."""
    output = model(inputs)
    return output, functional.binary_cross_entropy(output, target)


def generator_loss(model, inputs, _target):
    """The generator alone, without the discriminator that would judge it: the mean of its images."""
    output = model(inputs)
    return output, output.mean()


def negative_log_likelihood(model, inputs, target):
    output = model(inputs)
    return output, functional.nll_loss(output, target)


def sequence_to_sequence(model, inputs, target):
    output = model(input_ids=inputs, labels=target, use_cache=False)
    return output, output.loss


def masked_language_model(model, inputs, target):
    output = model(input_ids=inputs, labels=target)
    return output, output.loss


def without_loss(model, inputs, _target):
    return model(input_ids=inputs), None


def noise_prediction(model, inputs, target):
    sample, timestep, text_states = inputs
    output = model(sample, timestep, text_states).sample
    return output, functional.mse_loss(output, target)


def latents(reference, batch, _seq):
    """A latent image, a time step and the text encoder's states a sample; the target is noise."""
    shape = (batch, *reference.input_shape)
    timestep = torch.zeros(batch, dtype=torch.int64)
    return (torch.rand(shape), timestep, torch.rand(batch, 77, 768)), torch.rand(shape)


def stable_diffusion_unet(_seq):
    """The U-Net under the published unet/config.json of Stable Diffusion 1.5."""
    import diffusers

    attended = ("CrossAttnDownBlock2D",) * 3, ("CrossAttnUpBlock2D",) * 3
    return diffusers.UNet2DConditionModel(
        sample_size=64, in_channels=4, out_channels=4, layers_per_block=2,
        block_out_channels=(320, 640, 1280, 1280), cross_attention_dim=768, attention_head_dim=8,
        down_block_types=(*attended[0], "DownBlock2D"),
        up_block_types=("UpBlock2D", *attended[1]))


def torchvision_model(name, size=224, meta=True, **options):
    """`meta`: whether it can be built on the device "meta"; RegNet computes its widths in tensors."""
    def build(_seq):
        import torchvision

        with contextlib.nullcontext() if meta else torch.device("cpu"):
            model = getattr(torchvision.models, name)(weights=None, **options)
        return model if meta else model.to("meta")

    written = "".join(f", {key}={value}" for key, value in options.items() if key != "init_weights")
    return Reference(f"torchvision.models.{name}(weights=None{written})", None, build,
                     models.images(1000), cross_entropy, (3, size, size))


def timm_model(name, size=224, fused=True):
    """`fused`: timm's own default; its layers read it when they are made."""
    def build(_seq):
        import timm

        timm.layers.set_fused_attn(fused)
        try:
            return timm.create_model(name, pretrained=False)
        finally:
            timm.layers.set_fused_attn(True)

    return Reference(f"timm.create_model({name!r}){'' if fused else ', set_fused_attn(False)'}",
                     None, build, models.images(1000), cross_entropy, (3, size, size))


def frames(reference, batch, seq):
    """30 seconds of sound as Whisper takes them, and the tokens that were said."""
    return torch.rand(batch, *reference.input_shape), torch.zeros(batch, seq, dtype=torch.int64)


def speech_recognition(model, inputs, target):
    output = model(input_features=inputs, labels=target, use_cache=False)
    return output, output.loss


def hugging_face(class_name, loss=language_model, seq=128, attention="sdpa", **config):
    """`class_name` with its configuration class's defaults, but for `config`."""
    def build(_seq):
        import transformers

        model_class = getattr(transformers, class_name)
        settings = model_class.config_class(**config)
        settings._attn_implementation = attention
        return model_class(settings)

    written = ", ".join(f"{key}={value}" for key, value in config.items())
    return Reference(f"transformers.{class_name}({written})", None, build, models.tokens, loss,
                     seq=seq)


def with_auxiliary_heads(name, weight, size):
    """Torchvision's network with its auxiliary classifiers and without them."""
    heads = torchvision_model(name, size, aux_logits=True, init_weights=False)
    bare = torchvision_model(name, size, aux_logits=False, init_weights=False)
    return {name: Entry(name, dataclasses.replace(heads, loss=with_auxiliaries(weight)),
                        {"aux": True}),
            f"{name}-noaux": Entry(name, bare, {"aux": False})}


BERT = {
    "bert-base": dict(vocab_size=30522, hidden_size=768, num_hidden_layers=12,
                      num_attention_heads=12, intermediate_size=3072,
                      max_position_embeddings=512, type_vocab_size=2),
    "bert-large": dict(vocab_size=30522, hidden_size=1024, num_hidden_layers=24,
                       num_attention_heads=16, intermediate_size=4096,
                       max_position_embeddings=512, type_vocab_size=2),
}
GPT2 = {
    "gpt2": dict(n_embd=768, n_layer=12, n_head=12),
    "distilgpt2": dict(n_embd=768, n_layer=6, n_head=12),
    "gpt2-medium": dict(n_embd=1024, n_layer=24, n_head=16),
    "gpt2-large": dict(n_embd=1280, n_layer=36, n_head=20),
    "gpt2-xl": dict(n_embd=1600, n_layer=48, n_head=25),
}
LLAMA = {
    "llama-2-7b": dict(vocab_size=32000, hidden_size=4096, intermediate_size=11008,
                       num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32,
                       max_position_embeddings=4096, rms_norm_eps=1e-5,
                       tie_word_embeddings=False),
    "llama-3-8b": dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336,
                       num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                       max_position_embeddings=8192, rms_norm_eps=1e-5,
                       rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
                       tie_word_embeddings=False),
    "llama-3.2-1b": dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192,
                         num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
                         head_dim=64, max_position_embeddings=131072, rms_norm_eps=1e-5,
                         rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0,
                                          "factor": 32.0, "low_freq_factor": 1.0,
                                          "high_freq_factor": 4.0,
                                          "original_max_position_embeddings": 8192},
                         tie_word_embeddings=True),
}
MISTRAL_7B = dict(vocab_size=32000, hidden_size=4096, intermediate_size=14336,
                  num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                  max_position_embeddings=32768, rms_norm_eps=1e-5, sliding_window=4096,
                  tie_word_embeddings=False)
T5_SMALL = dict(vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8,
                feed_forward_proj="relu", tie_word_embeddings=True, decoder_start_token_id=0)
T5_BASE = dict(T5_SMALL, d_model=768, d_ff=3072, num_layers=12, num_heads=12)
OPT_125M = dict(vocab_size=50272, hidden_size=768, num_hidden_layers=12, ffn_dim=3072,
                num_attention_heads=12, max_position_embeddings=2048, dropout=0.1,
                attention_dropout=0.0, layerdrop=0.0, activation_function="relu",
                word_embed_proj_dim=768, tie_word_embeddings=True)
QWEN3_06B = dict(vocab_size=151936, hidden_size=1024, intermediate_size=3072,
                 num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
                 max_position_embeddings=40960, rms_norm_eps=1e-6, tie_word_embeddings=True,
                 rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})
GEMMA_2_2B = dict(vocab_size=256000, hidden_size=2304, intermediate_size=9216,
                  num_hidden_layers=26, num_attention_heads=8, num_key_value_heads=4, head_dim=256,
                  query_pre_attn_scalar=256, sliding_window=4096, attn_logit_softcapping=50.0,
                  final_logit_softcapping=30.0, tie_word_embeddings=True)
MIXTRAL_8X7B = dict(vocab_size=32000, hidden_size=4096, intermediate_size=14336,
                    num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
                    num_local_experts=8, num_experts_per_tok=2, rms_norm_eps=1e-5,
                    max_position_embeddings=32768, tie_word_embeddings=False,
                    rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})
PHI_2 = dict(vocab_size=51200, hidden_size=2560, intermediate_size=10240, num_hidden_layers=32,
             num_attention_heads=32, num_key_value_heads=32, partial_rotary_factor=0.4,
             hidden_act="gelu_new", resid_pdrop=0.1, max_position_embeddings=2048,
             tie_word_embeddings=False)
WHISPER_SMALL = dict(vocab_size=51865, d_model=768, encoder_layers=12, decoder_layers=12,
                     encoder_attention_heads=12, decoder_attention_heads=12,
                     encoder_ffn_dim=3072, decoder_ffn_dim=3072, num_mel_bins=80,
                     max_source_positions=1500, max_target_positions=448, pad_token_id=50257,
                     decoder_start_token_id=50258, dropout=0.0)


EFFICIENTNET_SIZES = {"b0": 224, "b1": 240, "b2": 260, "b3": 300, "b4": 380, "b5": 456, "b6": 528,
                      "b7": 600, "v2_s": 384, "v2_m": 480, "v2_l": 480}


def convolutional():
    plain = ["alexnet", *(f"vgg{n}{bn}" for n in (11, 13, 16, 19) for bn in ("", "_bn")),
             *(f"resnet{n}" for n in (18, 34, 50, 101, 152)), "resnext50_32x4d",
             "wide_resnet50_2", "densenet121", "densenet169", "densenet201", "mobilenet_v2",
             "squeezenet1_0", *(f"convnext_{n}" for n in ("tiny", "small", "base", "large")),
             "swin_t", "swin_s", "swin_b", *(f"mnasnet{n}" for n in ("0_5", "0_75", "1_0", "1_3")),
             "mobilenet_v3_large", "mobilenet_v3_small",
             *(f"shufflenet_v2_x{n}" for n in ("0_5", "1_0", "1_5", "2_0"))]
    result = {name: Entry(name, torchvision_model(name)) for name in plain}
    for size in ("t", "s", "b"):
        result[f"swin_v2_{size}"] = Entry(f"swin_v2_{size}",
                                          torchvision_model(f"swin_v2_{size}", 256))
    for width in ("050", "140"):
        name = f"mobilenetv2_{width}"
        result[name] = Entry(name, timm_model(name))
    result |= with_auxiliary_heads("inception_v3", 0.4, 299)
    result |= with_auxiliary_heads("googlenet", 0.3, 224)
    result["xception"] = Entry("xception", timm_model("legacy_xception", 299))
    for name, size in EFFICIENTNET_SIZES.items():
        name = f"efficientnet_{name}"
        result[name] = Entry(name, torchvision_model(name, size))
    for name in ("y_400mf", "y_1_6gf", "y_8gf", "y_16gf", "x_400mf", "x_3_2gf", "x_8gf"):
        name = f"regnet_{name}"
        result[name] = Entry(name, torchvision_model(name, meta=False))
    return result


def transformers_of_images():
    result = {f"vit_{size}_patch16_224": Entry(f"vit_{size}_patch16_224",
                                               timm_model(f"vit_{size}_patch16_224"))
              for size in ("tiny", "small", "base")}
    for name in ("vit_b_16", "vit_b_32", "vit_l_16", "vit_h_14"):
        result[name] = Entry(name, torchvision_model(name))
    result["mixer_b16"] = Entry("mixer_b16", timm_model("mixer_b16_224"))
    return result


def language_models():
    result = {}
    for name, config in BERT.items():
        result[name] = Entry(name, hugging_face("BertForMaskedLM", masked_language_model,
                                                **config))
    for name, config in GPT2.items():
        result[name] = Entry(name, hugging_face("GPT2LMHeadModel", **config))
    for name, config in LLAMA.items():
        result[name] = Entry(name, hugging_face("LlamaForCausalLM", **config))
    result["mistral-7b"] = Entry("mistral-7b", hugging_face("MistralForCausalLM", **MISTRAL_7B))
    for name, config in {"t5-small": T5_SMALL, "t5-base": T5_BASE}.items():
        result[name] = Entry(name, hugging_face("T5ForConditionalGeneration",
                                                sequence_to_sequence, **config))
    result["opt-125m"] = Entry("opt-125m", hugging_face("OPTForCausalLM", **OPT_125M))
    result["phi-2"] = Entry("phi-2", hugging_face("PhiForCausalLM", **PHI_2))
    result["qwen3-0.6b"] = Entry("qwen3-0.6b", hugging_face("Qwen3ForCausalLM", **QWEN3_06B))
    result["gemma-2-2b"] = Entry("gemma-2-2b", hugging_face(
        "Gemma2ForCausalLM", attention="eager", **GEMMA_2_2B))
    result["mixtral-8x7b"] = Entry("mixtral-8x7b", hugging_face("MixtralForCausalLM",
                                                                **MIXTRAL_8X7B))
    result["whisper-small"] = Entry("whisper-small", dataclasses.replace(
        hugging_face("WhisperForConditionalGeneration", speech_recognition, **WHISPER_SMALL),
        inputs=frames, input_shape=(80, 3000)))
    result["lstm-lm"] = Entry("lstm-lm", Reference(
        "tests/reference/models.py: WordLanguageModel", None,
        lambda _seq: models.WordLanguageModel(), sequence_first, negative_log_likelihood, seq=35))
    return result


def adversarial():
    return {
        "dcgan-generator": Entry("dcgan-generator", Reference(
            "tests/reference/models.py: dcgan_generator", None, models.dcgan_generator, reals,
            generator_loss, (100, 1, 1))),
        "dcgan-discriminator": Entry("dcgan-discriminator", Reference(
            "tests/reference/models.py: dcgan_discriminator", None, models.dcgan_discriminator,
            reals, binary_cross_entropy, (3, 64, 64))),
    }


def diffusion():
    return {"stable-diffusion-unet": Entry("stable-diffusion-unet", Reference(
        "diffusers 0.42.1 UNet2DConditionModel, configuration of Stable Diffusion 1.5", None,
        stable_diffusion_unet, latents, noise_prediction, (4, 64, 64)))}


def heads_of_bert():
    """BERT under its other heads, for the counts."""
    result = {}
    for name, config in BERT.items():
        for head in ("Model", "ForPreTraining", "ForSequenceClassification"):
            result[f"{name}-{head}"] = Entry(name, hugging_face(
                f"Bert{head}", without_loss, **config), {"head": head})
    return result


def few_layers():
    """The large language models cut to two layers: every layer is like the others."""
    result = {}
    for name in ("gpt2-large", "gpt2-xl"):
        result[name] = hugging_face("GPT2LMHeadModel", **{**GPT2[name], "n_layer": 2})
    for name, config in LLAMA.items():
        result[name] = hugging_face("LlamaForCausalLM", **{**config, "num_hidden_layers": 2})
    for name, class_name, config in (
            ("mistral-7b", "MistralForCausalLM", MISTRAL_7B), ("phi-2", "PhiForCausalLM", PHI_2),
            ("mixtral-8x7b", "MixtralForCausalLM", MIXTRAL_8X7B),
            ("qwen3-0.6b", "Qwen3ForCausalLM", QWEN3_06B)):
        result[name] = hugging_face(class_name, **{**config, "num_hidden_layers": 2})
    result["gemma-2-2b"] = hugging_face("Gemma2ForCausalLM", attention="eager",
                                        **{**GEMMA_2_2B, "num_hidden_layers": 2})
    result["bert-large"] = hugging_face("BertForMaskedLM", masked_language_model,
                                        **{**BERT["bert-large"], "num_hidden_layers": 2})
    entries = {f"{name}-2layers": Entry(name, reference, {"layers": 2})
               for name, reference in result.items()}
    # A window shorter than the sequence: PyTorch gets a mask, and key and value heads are repeated.
    windowed = hugging_face("MistralForCausalLM", **{**MISTRAL_7B, "num_hidden_layers": 2,
                                                     "sliding_window": 64})
    entries["mistral-7b-window-2layers"] = Entry("mistral-7b", windowed,
                                                 {"layers": 2, "window": 64})
    return entries


def written_out():
    """Models whose attention is written in tensor operations, by names of their own."""
    eager = {"attention": "eager"}
    short = dict(num_hidden_layers=2)
    models_of = {
        "gpt2": hugging_face("GPT2LMHeadModel", attention="eager", **GPT2["gpt2"]),
        "bert-base": hugging_face("BertForMaskedLM", masked_language_model, attention="eager",
                                  **BERT["bert-base"]),
        "t5-small": hugging_face("T5ForConditionalGeneration", sequence_to_sequence,
                                 attention="eager", **T5_SMALL),
        "opt-125m": hugging_face("OPTForCausalLM", attention="eager", **OPT_125M),
        "whisper-small": dataclasses.replace(
            hugging_face("WhisperForConditionalGeneration", speech_recognition, attention="eager",
                         **WHISPER_SMALL),
            inputs=frames, input_shape=(80, 3000)),
        "vit_base_patch16_224": timm_model("vit_base_patch16_224", fused=False),
    }
    cut = {
        "llama-3.2-1b": hugging_face("LlamaForCausalLM", attention="eager",
                                     **{**LLAMA["llama-3.2-1b"], **short}),
        "phi-2": hugging_face("PhiForCausalLM", attention="eager", **{**PHI_2, **short}),
        "qwen3-0.6b": hugging_face("Qwen3ForCausalLM", attention="eager",
                                   **{**QWEN3_06B, **short}),
        "mixtral-8x7b": hugging_face("MixtralForCausalLM", attention="eager",
                                     **{**MIXTRAL_8X7B, **short}),
    }
    return {**{f"{name}-eager": Entry(name, reference, eager)
               for name, reference in models_of.items()},
            **{f"{name}-2layers-eager": Entry(name, reference, {"layers": 2, **eager})
               for name, reference in cut.items()}}


ENTRIES = {
    **{name: Entry(name, models.MODELS[name])
       for name in ("mlp", "mnist-cnn", "keras-deep-16x16", "unet")},
    **convolutional(), **transformers_of_images(), **language_models(), **adversarial(),
    **diffusion(),
}


def cases():
    """Everything that a training step is measured of, by name."""
    large = {"gpt2-large", "gpt2-xl", "bert-large", "llama-2-7b", "llama-3-8b", "llama-3.2-1b",
             "mistral-7b", "phi-2", "mixtral-8x7b", "qwen3-0.6b", "gemma-2-2b"}
    return {**{name: entry for name, entry in ENTRIES.items() if name not in large},
            **few_layers()}
