#include "estimator/huggingface/quantised_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "estimator/base/bytes.hpp"
#include "estimator/huggingface/quantisation_reader.hpp"

namespace stowage {

namespace {

constexpr std::array<std::string_view, 7> methods{
    "gptq", "awq", "fp8", "fbgemm_fp8", "compressed-tensors", "bitsandbytes", "torchao"};

void read_awq(QuantisationReader& reader, CheckpointFormats& stored) {
  const std::string_view bits_key = reader.is_set("bits") ? "bits" : "w_bit";
  const std::string_view group_key = reader.is_set("group_size") ? "group_size" : "q_group_size";
  if (const std::int64_t bits = reader.config().integer(bits_key, 1, 8); bits != 4) {
    reader.refuse(bits_key, fmt::format("AWQ of {} bits", bits), "AWQ has 4 bits");
  }
  PackedLayout layout = awq_layout(reader.group_size(group_key, 128));
  std::string version = reader.text("version", "format");
  for (char& letter : version) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
  }
  if (version == "gemv" || version == "gemv_fast") {
    layout.kind = version == "gemv" ? PackedKind::awq_gemv : PackedKind::awq_gemv_fast;
    layout.name = fmt::format("AWQ {}", version);
  } else if (!version.empty() && version != "gemm") {
    reader.refuse(reader.is_set("version") ? "version" : "format",
                  fmt::format("AWQ in the version '{}'", version),
                  "the versions gemm, gemv and gemv_fast are sized");
  }
  reader.keep(stored, "modules_to_not_convert", LayerRule::Kind::conversion);
  stored.keeps_output = true;  // add_default_skips
  stored.converts_experts = true;
  stored.groups.push_back(group_of_all(packed_base(std::move(layout))));
}

void read_fp8(QuantisationReader& reader, CheckpointFormats& stored) {
  constexpr std::int64_t usual_block = 128;
  PackedLayout layout{.kind = PackedKind::scaled,
                      .name = "fp8",
                      .bits = 8,
                      .block_rows = usual_block,
                      .block_columns = usual_block,
                      .scale_name = "weight_scale_inv",
                      .scale_type = DataType::float32,
                      .inputs = true};
  const YamlNode* block = reader.config().written("weight_block_size");
  if (reader.is_set("weight_block_size")) {
    const std::vector<std::int64_t> sizes = reader.config().integers("weight_block_size");
    if (sizes.size() == 2) {
      layout.block_rows = sizes[0];
      layout.block_columns = sizes[1];
    } else {
      reader.refuse("weight_block_size", fmt::format("fp8 in blocks of {} numbers", sizes.size()),
                    "a block has rows and columns");
    }
  } else if (block != nullptr || reader.loader().is_paged) {
    layout.block_rows = layout.block_columns = 0;
  }
  const std::string scheme = reader.text("activation_scheme");
  if (scheme == "static") {
    layout.scalars = 1;
  } else if (!scheme.empty() && scheme != "dynamic") {
    reader.refuse("activation_scheme", fmt::format("fp8 with the scheme '{}'", scheme),
                  "dynamic and static are sized");
  }
  if (reader.text("scale_fmt") == "ue8m0") layout.scale_type = DataType::uint8;
  if (reader.is_set("modules_to_convert")) reader.refuse("modules_to_convert", "fp8 embeddings");
  reader.keep(stored,
              reader.is_set("modules_to_not_convert") ? "modules_to_not_convert" : "ignored_layers",
              LayerRule::Kind::conversion);
  stored.converts_experts = true;
  BaseSettings base = packed_base(std::move(layout));
  base.trains_adapters = reader.loader().version >= LibraryVersion{5, 0};
  stored.groups.push_back(group_of_all(std::move(base)));
}

void read_fbgemm(QuantisationReader& reader, CheckpointFormats& stored) {
  BaseSettings base = packed_base({.kind = PackedKind::scaled,
                                   .name = "fp8",
                                   .bits = 8,
                                   .block_columns = 0,
                                   .scale_type = DataType::float32,
                                   .scalars = 1,
                                   .inputs = true});
  base.trains_adapters = false;
  reader.keep(stored, "modules_to_not_convert", LayerRule::Kind::conversion);
  stored.groups.push_back(group_of_all(std::move(base)));
}

/// BitsAndBytesConfig, whose defaults are fp4 without double quantisation.
void read_bitsandbytes(QuantisationReader& reader, CheckpointFormats& stored) {
  BaseSettings base;
  if (reader.is_set("load_in_8bit") || reader.is_set("_load_in_8bit")) {
    base.format = BaseFormat::int8;
  } else if (reader.is_set("load_in_4bit") || reader.is_set("_load_in_4bit")) {
    const std::string code = reader.text("bnb_4bit_quant_type");
    if (!code.empty() && code != "nf4" && code != "fp4") {
      reader.refuse("bnb_4bit_quant_type", fmt::format("bitsandbytes' code '{}'", code),
                    "nf4 and fp4 are sized");
    }
    base.format = code == "nf4" ? BaseFormat::nf4 : BaseFormat::fp4;
    base.double_quantised = reader.is_set("bnb_4bit_use_double_quant");
  } else {
    const std::string_view key = reader.is_set("quant_method") ? "quant_method" : "load_in_4bit";
    return reader.refuse(key, "bitsandbytes of neither 8 nor 4 bits",
                         "load_in_8bit and load_in_4bit are sized");
  }
  if (base.format == BaseFormat::int8 && reader.is_set("llm_int8_has_fp16_weight")) return;
  reader.keep(stored, "llm_int8_skip_modules", LayerRule::Kind::conversion);
  stored.groups.push_back(group_of_all(base));
}

/// The experts of gpt-oss: blocks of 32 values of 4 bits along an expert's input, and a byte of
/// scale a block. vLLM packs all of them, whatever the file lists.
void read_mxfp4(QuantisationReader& reader, CheckpointFormats& stored) {
  BaseSettings base =
      packed_base({.kind = PackedKind::fp4_packed, .name = "mxfp4", .block_columns = 32});
  base.trains_adapters = false;  // Mxfp4HfQuantizer.is_trainable
  if (!reader.loader().is_paged) {
    reader.keep(stored, "modules_to_not_convert", LayerRule::Kind::conversion);
    stored.wide_biases = true;  // Mxfp4GptOssExperts.__init__
  }
  stored.converts_experts = stored.experts_alone = true;
  stored.groups.push_back(group_of_all(std::move(base)));
}

/// What vLLM's Marlin kernels add to mxfp4: hidden features in multiples of 256, and an expert's in
/// multiples of 128 (vLLM at 007d5005, quantization/mxfp4.py, create_weights).
Bytes marlin_padding(ConfigReader& config) {
  constexpr std::int64_t hidden_step = 256, inner_step = 128, most_experts = 65'536;
  constexpr std::int64_t most_layers = 10'000;
  constexpr double bytes_a_value = 17.0 / 32, largest = 1e15;  // a byte of scale for 32 values
  const auto padded = [](std::int64_t size, std::int64_t step) {
    const std::int64_t steps = (size + step - 1) / step;
    return static_cast<double>(steps * step);
  };
  const std::int64_t hidden = config.integer("hidden_size");
  const std::int64_t inner = config.integer("intermediate_size");
  const auto experts = static_cast<double>(config.integer("num_local_experts", 1, most_experts) *
                                           config.integer("num_hidden_layers", 1, most_layers));
  const double more = padded(hidden, hidden_step) * padded(inner, inner_step) -
                      static_cast<double>(hidden) * static_cast<double>(inner);
  return Bytes(static_cast<std::int64_t>(std::min(3 * more * bytes_a_value * experts, largest)));
}

/// What of mxfp4 depends on what the reader does not know: the card and what is installed.
void note_mxfp4_kernels(ConfigReader& config, const WeightLoader& loader) {
  std::string message =
      "transformers keeps the experts packed on a card of compute capability 7.5 or more, with "
      "Triton 3.4 and the package kernels, and restores bf16 elsewhere";
  std::string hint = "`\"dequantize\": true` in its quantization_config sizes that";
  if (loader.is_paged) {
    const Bytes more = marlin_padding(config);
    if (more == Bytes()) return;
    message = fmt::format(
        "vLLM's Marlin kernels, which it takes on cards of compute capability below 9.0, pad the "
        "experts to multiples of 256 and 128 features: {} more, which are not counted",
        format_bytes(more));
    hint.clear();
  }
  config.mistakes().add(
      {.severity = Severity::note, .message = std::move(message), .hint = std::move(hint)});
}

std::string method_of(QuantisationReader& reader) {
  std::string method = reader.text("quant_method");
  if (!method.empty()) return method;
  for (const std::string_view key :
       {"load_in_8bit", "_load_in_8bit", "load_in_4bit", "_load_in_4bit"}) {
    if (reader.is_set(key)) return "bitsandbytes";
  }
  return {};
}

void refuse_method(QuantisationReader& reader, const std::string& method) {
  if (method.empty()) {
    reader.config().wrong("quant_method", "'quantization_config' states no quant_method",
                          fmt::format("{} are sized", fmt::join(methods, ", ")));
  } else if (method == "mxfp4") {
    reader.config().wrong("quant_method",
                          fmt::format("'mxfp4' is for the experts of gpt-oss alone, and '{}' has "
                                      "none of them",
                                      reader.config().type()));
  } else {
    reader.refuse("quant_method", fmt::format("the method '{}'", method),
                  fmt::format("{} are sized", fmt::join(methods, ", ")));
  }
}

/// The format that a version before 5 takes where from_pretrained is given none: update_dtype of
/// its quantizers.
std::string precision_before_5(const std::string& method, const CheckpointFormats& stored) {
  if (method == "fp8") return {};
  if (method != "torchao") return "fp16";
  const bool is_int4 = !stored.groups.empty() && stored.groups.front().base.packed.bits == 4;
  return is_int4 ? "bf16" : std::string();
}

bool reads_method(QuantisationReader& reader, const std::string& method,
                  CheckpointFormats& stored) {
  using Read = void (*)(QuantisationReader&, CheckpointFormats&);
  constexpr std::array<Read, methods.size()> readers{
      read_gptq,         read_awq,    read_fp8, read_fbgemm, read_compressed_tensors,
      read_bitsandbytes, read_torchao};
  if (method == "mxfp4" && reader.config().type() == "gpt_oss") {
    read_mxfp4(reader, stored);
    return true;
  }
  for (std::size_t i = 0; i < methods.size(); ++i) {
    if (methods[i] != method) continue;
    readers[i](reader, stored);
    return true;
  }
  return false;
}

}  // namespace

QuantisedWeights read_quantised_weights(ConfigReader& config, const WeightLoader& loader) {
  const YamlNode* node = config.written("quantization_config");
  if (node == nullptr || node->kind == YamlNode::Kind::null) return {};
  if (!node->is_mapping()) {
    config.wrong("quantization_config",
                 fmt::format("'quantization_config' must be a mapping, not {}", describe(*node)));
    return {};
  }
  QuantisationReader reader(*node, config, loader, config.mistakes());
  auto stored = std::make_shared<CheckpointFormats>();
  stored->method = method_of(reader);
  if (!reads_method(reader, stored->method, *stored)) {
    refuse_method(reader, stored->method);
    return {};
  }
  QuantisedWeights read;
  const bool states_format =
      config.written("dtype") != nullptr || config.written("torch_dtype") != nullptr;
  const bool takes_stated = loader.is_paged || loads_checkpoint_format(loader.version);
  if (stored->method == "fbgemm_fp8") {
    read.precision = "bf16";
  } else if (stored->method == "mxfp4") {
    // The published files state no format, and their other weights are in this one.
    if (!takes_stated || !states_format) read.precision = "bf16";
  } else if (!loader.is_paged && !loads_checkpoint_format(loader.version)) {
    read.precision = precision_before_5(stored->method, *stored);
  }
  if (stored->groups.empty()) return read;
  if (config.type() == "gpt_oss" && stored->converts_experts && !stored->experts_alone) {
    reader.refuse("quant_method",
                  fmt::format("the method '{}' for the experts of gpt_oss", stored->method),
                  "of them mxfp4 is sized; bitsandbytes, torchao and fbgemm_fp8 leave them as they "
                  "are");
  }
  const bool skips_conv1d = stored->method != "gptq" && stored->method != "bitsandbytes";
  if (config.type() == "gpt2" && skips_conv1d) {
    reader.config().wrong("quant_method",
                          fmt::format("'{}' converts linear layers, and those of gpt2 are Conv1D, "
                                      "which it leaves as they are",
                                      stored->method));
  }
  const bool restores =
      (stored->method == "compressed-tensors" && !loader.is_paged) || reader.is_set("dequantize");
  if (restores) {
    config.warn("quantization_config",
                fmt::format("transformers restores the weights of {} before the first pass: they "
                            "are sized as restored",
                            stored->method),
                stored->method == "compressed-tensors"
                    ? "a server with a paged cache keeps them packed"
                    : "");
    return read;
  }
  if (stored->method == "mxfp4") note_mxfp4_kernels(config, loader);
  read.stored = std::move(stored);
  return read;
}

}  // namespace stowage
