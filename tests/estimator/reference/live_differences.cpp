#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "estimator/memory/step_memory.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"
#include "tests/estimator/reference/differing_references.hpp"
#include "tests/estimator/reference/held_variables.hpp"
#include "tests/estimator/reference/known_differences.hpp"

namespace stowage::reference {

namespace {

std::size_t forward_node(const StepGraph& graph, std::string_view layer) {
  const std::string name = fmt::format("{}.forward", layer);
  const auto node =
      std::find_if(graph.nodes.begin(), graph.nodes.end(),
                   [&](const KernelNode& one) { return one.name == name || one.name == layer; });
  if (node == graph.nodes.end()) throw std::runtime_error("no kernel call " + name);
  return static_cast<std::size_t>(node - graph.nodes.begin());
}

StorageId named_storage(const StepGraph& graph, std::string_view name) {
  const auto storage = std::find_if(graph.storages.begin(), graph.storages.end(),
                                    [&](const Storage& one) { return one.name == name; });
  if (storage == graph.storages.end()) {
    return graph.nodes[forward_node(graph, name)].writes.front().storage;
  }
  return StorageId::of(static_cast<std::size_t>(storage - graph.storages.begin()));
}

bool hold(const HeldOutput& held, const SizedStep& step, Bytes granularity,
          std::vector<Bytes>& live) {
  const StepGraph& graph = *step.graph;
  const StorageId storage = named_storage(graph, held.layer);
  const Touches touches = storage_touches(graph)[storage.index()];
  const std::size_t through = forward_node(graph, held.through);
  const std::size_t first = static_cast<std::size_t>(touches.back()) + 1;
  for (std::size_t i = first; i <= through; ++i) {
    live[i] = live[i] + round_up(step.bytes(storage), granularity);
  }
  return first <= through;
}

bool add_missing_copy(const MissingCopy& copy, const SizedStep& step, Bytes granularity,
                      std::vector<Bytes>& live) {
  const StepGraph& graph = *step.graph;
  const auto named = std::find_if(graph.storages.begin(), graph.storages.end(),
                                  [&](const Storage& one) { return one.name == copy.storage; });
  if (named == graph.storages.end()) return false;
  const auto storage =
      StorageId::of(static_cast<std::size_t>(std::distance(graph.storages.begin(), named)));
  const auto starts = [&](std::string_view with) {
    return [with](const KernelNode& node) { return node.name.starts_with(with); };
  };
  const auto first = std::find_if(graph.nodes.begin(), graph.nodes.end(), starts(copy.from));
  const auto last = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), starts(copy.through));
  if (first == graph.nodes.end() || last == graph.nodes.rend()) return false;
  const auto begin = static_cast<std::size_t>(std::distance(graph.nodes.begin(), first));
  const auto end = static_cast<std::size_t>(std::distance(last, graph.nodes.rend()));
  for (std::size_t i = begin; i < end; ++i) {
    live[i] += round_up(step.bytes(storage), granularity);
  }
  return begin < end;
}

/// What the model returns besides its output and its loss; the script's variable keeps it as it
/// keeps the output, until the next step's is assigned.
struct ReturnedOutput {
  std::vector<std::string_view> models;
  std::string_view layer;
};

const ReturnedOutput returned_outputs[] = {
    // transformers: Seq2SeqLMOutput.encoder_last_hidden_state
    {{"t5-small"}, "encoded"},
    {{"small-t5*"}, "encoder.encoded"},
    {{"small-bart*"}, "model.encoder.layers.1.final_layer_norm"},
    {{"small-whisper*"}, "model.encoder.layer_norm"},
    {{"whisper-small"}, "encoder_norm"},
    // CLIPOutput: both towers' outputs, and the embeddings
    {{"small-clip"}, "vision_model.encoder.layers.1.done"},
    {{"small-clip"}, "text_model.final_layer_norm"},
    {{"small-clip"}, "visual_projection"},
    {{"small-clip"}, "text_projection"},
    {{"small-clip"}, "image_embeds"},
    {{"small-clip"}, "text_embeds"},
};

bool keep_returned(const ReturnedOutput& returned, const SizedStep& step, const MemoryRules& rules,
                   std::vector<Bytes>& live) {
  const StepGraph& graph = *step.graph;
  const StorageId storage = named_storage(graph, returned.layer);
  const Bytes bytes = round_up(step.bytes(storage), rules.granularity);
  const auto last = static_cast<std::size_t>(storage_touches(graph)[storage.index()].back());
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Phase phase = graph.nodes[i].phase;
    const bool unassigned = phase == Phase::forward || phase == Phase::loss;
    if (unassigned && rules.step == StepNumber::steady) live[i] += bytes;
    if (i > last) live[i] += bytes;
  }
  return last + 1 < live.size();
}

/// The reference does not see what a kernel allocates and frees within itself.
struct InnerStorage {
  std::vector<std::string_view> models;  ///< whose peaks lie within such a kernel
  std::string_view name;                 ///< a storage's, or within those of temporaries
  std::string_view only = {};            ///< a part of "<precision> <layout>"
};

const InnerStorage inner_storages[] = {
    // native_layer_norm's contiguous copy of a permuted input
    {{"mixer_b16", "vit_b_16"}, ".input.contiguous"},
    // log_softmax's contiguous copy of logits whose channels lie innermost
    {{"unet"}, ".input.contiguous", "nhwc"},
    // Batch norm's copy of relu6's gradient, which on CUDA is contiguous like the one it is made of
    // (hardtanh_backward in ATen/native/Activation.cpp); a fake tensor's has relu6's input's order.
    {{"mobilenet_v2"}, "bn_head.grad.contiguous", "fp32 nhwc"},
    // cudnn_convolution's copy of a filter beside an input whose channels lie innermost
    {{"convnext_tiny"}, ".weight.contiguous", "nchw"},
    {{"convnext_tiny"}, ".backward.weight", "nchw"},
    // cuDNN's contiguous copy of the patches' gradient, which comes out of a transposition
    {{"vit_b_32"}, "conv_proj.grad.contiguous"},
    // native_layer_norm_backward's contiguous copy of the gradient of a mean over its positions
    {{"swin_t"}, "norm.grad.contiguous"},
    // The scratch of the memory-efficient attention's backward.
    {{"vit_b_16", "small-vit", "small-swin*", "small-classifier-*", "small-tokens-bert",
      "small-answers-bert", "small-camembert"},
     ".attention.workspace"},
    // cuDNN's contiguous copy of the patches' gradient
    {{"small-vit"}, "projection.grad.contiguous"},
    // The sorted indices of embedding_dense_backward, which up to 3,072 indices does not sort.
    {{"phi-2", "mixtral*", "llama*", "mistral*", "bert*", "gpt2*", "t5*", "lstm*",
      "small-classifier-*", "small-tokens-bert", "small-answers-bert", "small-camembert"},
     ".sorted_indices"},
    {{"phi-2", "mixtral*", "llama*", "mistral*", "bert*", "gpt2*", "t5*", "lstm*",
      "small-classifier-*", "small-tokens-bert", "small-answers-bert", "small-camembert"},
     ".original_indices"},
    // What cuDNN says only on a GPU, ours by formula; and gradients of states that nobody wants.
    {{"lstm*"}, "rnn.reserve"},
    {{"lstm*"}, "workspace"},
    {{"lstm*"}, "rnn.grad_"},
};

bool leave_out(const InnerStorage& inner, const SizedStep& step, Bytes granularity,
               std::vector<Bytes>& live) {
  bool found = false;
  const std::vector<Touches> touches = storage_touches(*step.graph);
  for (std::size_t s = 0; s < touches.size(); ++s) {
    const Storage& storage = step.graph->storages[s];
    const bool concerned = storage.storage_class == StorageClass::temporary ||
                                   storage.storage_class == StorageClass::workspace
                               ? storage.name.find(inner.name) != std::string::npos
                               : storage.name == inner.name;
    if (touches[s].empty() || !concerned) continue;
    for (int i = touches[s].front(); i <= touches[s].back(); ++i) {
      Bytes& bytes = live[static_cast<std::size_t>(i)];
      bytes = bytes - round_up(step.bytes(StorageId::of(s)), granularity);
    }
    found = true;
  }
  return found;
}

/// As leave_out, of every softmax's backward, whose reference never sees the product.
void leave_out_products(const SizedStep& step, Bytes granularity, std::vector<Bytes>& live) {
  const std::vector<Touches> touches = storage_touches(*step.graph);
  for (std::size_t s = 0; s < touches.size(); ++s) {
    if (touches[s].empty() || !step.graph->storages[s].name.ends_with(softmax_product)) continue;
    const Bytes bytes = round_up(step.bytes(StorageId::of(s)), granularity);
    for (int i = touches[s].front(); i <= touches[s].back(); ++i) {
      live[static_cast<std::size_t>(i)] = live[static_cast<std::size_t>(i)] - bytes;
    }
  }
}

/// The target is an input, there throughout: pictures here, in the reference a number each.
bool replace_target_pictures(const ReferenceModel& reference, Bytes granularity,
                             std::vector<Bytes>& live) {
  const Bytes ours = round_up(Bytes(picture_bytes(reference)), granularity);
  const Bytes theirs =
      round_up(Bytes(reference.batch * element_size(DataType::float32)), granularity);
  for (Bytes& bytes : live) bytes = bytes - ours + theirs;
  return ours != theirs;
}

/// The LSTM's weights are views of one buffer there, and so are their gradients, whose size is
/// rounded up once: here each is rounded up.
bool round_flat_weights_once(const SizedStep& step, Bytes granularity, std::vector<Bytes>& live) {
  const StepGraph& graph = *step.graph;
  const std::vector<Touches> touches = storage_touches(graph);
  for (const StorageClass kind : {StorageClass::parameter, StorageClass::gradient}) {
    Bytes exact, rounded;
    std::int32_t first = 0, last = 0;
    for (std::size_t s = 0; s < graph.storages.size(); ++s) {
      const Storage& storage = graph.storages[s];
      if (storage.storage_class != kind || !storage.name.starts_with("rnn.")) continue;
      exact += step.bytes(StorageId::of(s));
      rounded += round_up(step.bytes(StorageId::of(s)), granularity);
      const bool persistent = storage.persistence == Persistence::persistent;
      first = persistent ? 0 : touches[s].front();
      last = persistent ? static_cast<std::int32_t>(live.size()) - 1 : touches[s].back();
    }
    if (exact == Bytes()) return false;
    for (std::int32_t i = first; i <= last; ++i) {
      Bytes& bytes = live[static_cast<std::size_t>(i)];
      bytes = bytes - rounded + round_up(exact, granularity);
    }
  }
  return true;
}

/// transformers hands each block the position ids [1, seq], which a checkpointed block keeps with
/// its other arguments; GPT-2's are also what its position embedding saves, where that is trained.
bool keeps_position_ids(const ReferenceModel& reference) {
  return reference.options.fine_tuning.checkpoint.has_value() &&
         (reference.model != "gpt2" || has_adapters(reference));
}

void hold_position_ids(const ReferenceModel& reference, const SizedStep& step, Bytes granularity,
                       std::vector<Bytes>& live) {
  const Bytes held = round_up(Bytes(reference.seq * element_size(DataType::int64)), granularity);
  std::size_t last = 0;  // of the kernel calls that run again
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (step.graph->nodes[i].name.find(".recomputed") != std::string::npos) last = i;
  }
  for (std::size_t i = 0; i <= last; ++i) live[i] = live[i] + held;
}

/// [batch, seq + 1], and the copy that flattening the shifted part makes unless the batch is 1.
bool hold_padded_labels(const ReferenceModel& reference, const SizedStep& step, Bytes granularity,
                        std::vector<Bytes>& live) {
  Bytes held = round_up(Bytes(label_bytes(reference, reference.seq + 1)), granularity);
  if (reference.batch != 1) {
    held = held + round_up(Bytes(label_bytes(reference, reference.seq)), granularity);
  }
  bool found = false;
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (step.graph->nodes[i].phase != Phase::loss) continue;
    live[i] = live[i] + held;
    found = true;
  }
  return found;
}

/// The padded labels live as long as our copy of the moved ones, which is not made.
bool see_moved_labels(const SizedStep& step, Bytes granularity, std::vector<Bytes>& live) {
  const StepGraph& graph = *step.graph;
  const StorageId padded = named_storage(graph, "padded_labels");
  const StorageId moved = named_storage(graph, "moved_labels");
  const Touches touches = storage_touches(graph)[moved.index()];
  const std::size_t loss = forward_node(graph, "loss.nll_loss");
  for (auto i = static_cast<std::size_t>(touches.front());
       i <= static_cast<std::size_t>(touches.back()); ++i) {
    live[i] = live[i] - round_up(step.bytes(moved), granularity);
    if (i > loss) live[i] += round_up(step.bytes(padded), granularity);
  }
  return touches.front() < touches.back();
}

/// Numbers of 4 bytes beside the losses of chunks: torchtune adds each to one sum, with the count
/// of the labels (8 bytes) there throughout, and divides at the end; ours are means with weights,
/// which all wait for the sum. In backward the divided gradient is one more.
void settle_scalars_of_chunks(const SizedStep& step, Bytes granularity, std::vector<Bytes>& live) {
  if (granularity != Bytes(1)) return;  // as many blocks
  const Bytes number(4);
  std::int64_t done = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const KernelNode& node = step.graph->nodes[i];
    if (node.phase == Phase::loss) live[i] = live[i] + number * std::int64_t{3} - number * done;
    if (node.phase == Phase::loss && node.name.ends_with(".weighted")) ++done;
    const bool of_loss = step.graph->layer(node.op).starts_with("loss.chunk");
    if (node.phase == Phase::backward && of_loss) live[i] += number;
  }
}

/// In the loss; where peaks of backward lie after the first layers' backward passes, not there.
bool hold_indices(const SizedStep& step, Bytes held, bool in_backward, std::vector<Bytes>& live) {
  bool found = false;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Phase phase = step.graph->nodes[i].phase;
    if (phase != Phase::loss && !(in_backward && phase == Phase::backward)) continue;
    live[i] += held;
    found = true;
  }
  return found;
}

}  // namespace

/// Applies every documented difference that concerns the reference to the live bytes, and names
/// those that had no effect.
AccountedLive accounted_live(const ReferenceModel& reference, const SizedStep& step,
                             const MemoryRules& rules, std::vector<Bytes> live) {
  const Bytes granularity = rules.granularity;
  AccountedLive result{.live = std::move(live), .without_effect = {}};
  for (const HeldOutput& held : held_outputs()) {
    if (!concerns(held.models, reference)) continue;
    const bool adapters = has_adapters(reference) && held.only == "adapters";
    if (!reference.precision.starts_with(held.only) && !reference.variant.starts_with(held.only) &&
        !adapters) {
      continue;
    }
    // torchtune's script has no outputs around the loss.
    if (has_chunks(reference) && held.through.starts_with("loss.")) continue;
    // What autocast has held already is held once.
    if (has_adapters(reference) && held.only == "amp") continue;
    if (!hold(held, step, granularity, result.live)) {
      result.without_effect += fmt::format("{} held; ", held.layer);
    }
  }
  for (const MissingCopy& copy : missing_copies()) {
    if (!concerns(copy.models, reference) || !reference.precision.starts_with(copy.only)) continue;
    if (!add_missing_copy(copy, step, granularity, result.live)) {
      result.without_effect += fmt::format("a copy of {}; ", copy.storage);
    }
  }
  for (const ReturnedOutput& returned : returned_outputs) {
    if (!concerns(returned.models, reference)) continue;
    if (!keep_returned(returned, step, rules, result.live)) {
      result.without_effect += fmt::format("{} returned; ", returned.layer);
    }
  }
  leave_out_products(step, granularity, result.live);
  for (const InnerStorage& inner : inner_storages) {
    if (!concerns(inner.models, reference)) continue;
    const std::string kind = fmt::format("{} {}", reference.precision, to_string(reference.layout));
    if (kind.find(inner.only) == std::string::npos) continue;
    // A frozen embedding has no backward.
    if (has_adapters(reference) && inner.name.ends_with("_indices")) continue;
    if (!leave_out(inner, step, granularity, result.live)) {
      result.without_effect += fmt::format("{} within a kernel; ", inner.name);
    }
  }
  if (is_generator(reference) && !replace_target_pictures(reference, granularity, result.live)) {
    result.without_effect += "target pictures; ";
  }
  if (is_recurrent(reference) && !round_flat_weights_once(step, granularity, result.live)) {
    result.without_effect += "flat weights; ";
  }
  if (copies_one_head(reference)) {
    const Bytes held =
        round_up(Bytes(element_size(DataType::int64)), granularity) * std::int64_t{index_tensors};
    if (!hold_indices(step, held, !takes_last_token(reference), result.live)) {
      result.without_effect += "indices of a head; ";
    }
  }
  if (takes_last_token(reference)) {
    const Bytes held =
        round_up(Bytes(label_bytes(reference, 1)), granularity) * std::int64_t{last_token_lists};
    if (!hold_indices(step, held, false, result.live)) {
      result.without_effect += "indices of the last token; ";
    }
  }
  if (has_chunks(reference)) settle_scalars_of_chunks(step, granularity, result.live);
  if (keeps_position_ids(reference)) {
    hold_position_ids(reference, step, granularity, result.live);
  }
  if (sees_moved_labels(reference) && !see_moved_labels(step, granularity, result.live)) {
    result.without_effect += "labels of one sample; ";
  }
  if (shifts_labels(reference) && !hold_padded_labels(reference, step, granularity, result.live)) {
    result.without_effect += "padded labels; ";
  }
  return result;
}

}  // namespace stowage::reference
