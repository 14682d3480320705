#include <fmt/format.h>

#include <algorithm>

#include "tests/estimator/reference/differing_references.hpp"
#include "tests/estimator/reference/known_differences.hpp"

namespace stowage::reference {

namespace {

struct SavedDifference {
  std::string_view name;
  std::string_view reason;
  bool (*concerns)(const ReferenceModel& reference);
  /// Changes PyTorch's rows into ours; false: nothing was there to change.
  bool (*apply)(const ReferenceModel& reference, std::vector<SavedStorages>& saved);
};

bool has_batch_norm(const ReferenceModel& reference) {
  return std::any_of(reference.saved.begin(), reference.saved.end(), [](const SavedStorages& row) {
    return row.uses == "CudnnBatchNormBackward0.running_mean";
  });
}

bool leave_out_reserve(const ReferenceModel&, std::vector<SavedStorages>& saved) {
  return std::erase_if(saved, [](const SavedStorages& row) {
           return row.bytes == 0 && row.uses == "CudnnBatchNormBackward0.result3";
         }) > 0;
}

bool take_back_shift(const ReferenceModel& reference, std::vector<SavedStorages>& saved) {
  bool found = false;
  for (SavedStorages& row : saved) {
    if (row.kind == "other" && row.uses == "NllLossBackward0.target") {
      row.kind = "target";
      row.bytes = label_bytes(reference, reference.seq);
      found = true;
    }
  }
  return found;
}

bool cut_padded_labels(const ReferenceModel& reference, std::vector<SavedStorages>& saved) {
  const auto padded = std::ranges::find_if(saved, [&](const SavedStorages& row) {
    return row.kind == "other" && row.uses == "NllLossBackward0.target" &&
           row.bytes == label_bytes(reference, reference.seq + 1);
  });
  if (padded == saved.end()) return false;
  padded->bytes = label_bytes(reference, reference.seq);
  return true;
}

bool leave_out_count(const ReferenceModel&, std::vector<SavedStorages>& saved) {
  return std::erase_if(saved, [](const SavedStorages& row) {
           return row.bytes == element_size(DataType::int64) && row.uses == "DivBackward0.other";
         }) > 0;
}

bool leave_out_indices(const ReferenceModel&, std::vector<SavedStorages>& saved) {
  return std::erase_if(saved, [](const SavedStorages& row) {
           return row.count == index_tensors && row.uses == "IndexBackward0.indices";
         }) > 0;
}

bool leave_out_last_token(const ReferenceModel& reference, std::vector<SavedStorages>& saved) {
  return std::erase_if(saved, [&](const SavedStorages& row) {
           return row.count == last_token_lists && row.uses == "IndexBackward0.indices" &&
                  row.bytes == label_bytes(reference, 1);
         }) > 0;
}

/// GPT-2's heads are views of one product, of which a batched product wants the axes in front
/// merged: a copy, but not of one sample, whose batch axis merges with any.
bool attends_in_views_of_one_sample(const ReferenceModel& reference) {
  const auto attention = reference.options.arguments.find("attention");
  return reference.model == "gpt2" && reference.batch == 1 &&
         attention != reference.options.arguments.end() && attention->second == "eager";
}

bool part_heads(const ReferenceModel&, std::vector<SavedStorages>& saved) {
  constexpr int parts = 3;
  const auto whole = std::ranges::find_if(saved, [](const SavedStorages& row) {
    return row.kind == "other" && row.uses.starts_with("BmmBackward0.mat2, BmmBackward0.self");
  });
  if (whole == saved.end()) return false;
  whole->bytes /= parts;
  whole->count *= parts;
  return true;
}

bool add_target_picture(const ReferenceModel& reference, std::vector<SavedStorages>& saved) {
  const bool has_target = std::any_of(
      saved.begin(), saved.end(), [](const SavedStorages& row) { return row.kind == "target"; });
  saved.push_back({"target", picture_bytes(reference), 1, "MseLossBackward0.target"});
  return !has_target;
}

/// Two layers of 650, each with a weight for its input and one for its state, of four gates, and an
/// offset beside each; of a position of a sequence the reserve has five vectors a layer, and one
/// between the layers.
constexpr std::int64_t lstm_hidden = 650, lstm_gates = 4, lstm_layers = 2;

bool part_flat_weights(const ReferenceModel& reference, std::vector<SavedStorages>& saved) {
  const std::int64_t offset = lstm_gates * lstm_hidden * element_size(DataType::float32);
  const std::int64_t weight = offset * lstm_hidden;
  const int each = 2 * lstm_layers;
  const auto flat = std::find_if(saved.begin(), saved.end(), [](const SavedStorages& row) {
    return row.uses.find("CudnnRnnBackward0.weight") != std::string::npos;
  });
  if (flat == saved.end() || flat->bytes != each * (weight + offset)) return false;
  *flat = {"parameter", weight, each, flat->uses};
  saved.push_back({"parameter", offset, each, "CudnnRnnBackward0.weight"});
  const auto reserve = std::find_if(saved.begin(), saved.end(), [](const SavedStorages& row) {
    return row.bytes == 0 && row.uses == "CudnnRnnBackward0.result3";
  });
  if (reserve == saved.end()) return false;
  reserve->bytes = reference.batch * reference.seq * lstm_hidden * element_size(DataType::float32) *
                   (5 * lstm_layers + lstm_layers - 1);
  return true;
}

const SavedDifference saved_differences[] = {
    {"batch norm's reserve",
     "only a GPU's cuDNN says how large it is: the reference has 0 bytes, we have no such storage",
     has_batch_norm, leave_out_reserve},
    {"shifted labels",
     "the loss of transformers' causal language models shifts the labels into a padded copy of its "
     "own and saves that; our descriptions compare with labels that are shifted already",
     shifts_labels, take_back_shift},
    {"labels of one sample",
     "the moved labels of one sample are a view of the padded ones, one label of 8 bytes longer, "
     "which are saved whole; our descriptions save a copy of the moved ones",
     sees_moved_labels, cut_padded_labels},
    {"count of tokens",
     "torchtune divides the sum of all chunks' losses by the number of the labels, which the "
     "division saves; our chunks are means with weights",
     has_chunks, leave_out_count},
    {"indices of a head",
     "Falcon takes the head of its keys and that of its values with a list of one index, which "
     "autograd keeps, of 8 bytes; our description copies a slice",
     copies_one_head, leave_out_indices},
    {"indices of the last token",
     "a decoder's classifier and CLIP's text tower take each sample's last token with two lists of "
     "indices, which autograd keeps; our description takes a slice",
     takes_last_token, leave_out_last_token},
    {"views of one sample",
     "eager attention's query, key and value are views of one product there; sizes here hold for "
     "any batch, and of several samples they are copies, of the same bytes in sum",
     attends_in_views_of_one_sample, part_heads},
    {"the generator's target",
     "the reference trains DCGAN's generator on the mean of its pictures; our description has a "
     "target picture in the discriminator's stead, which its loss saves",
     is_generator, add_target_picture},
    {"flat weights",
     "the weights of PyTorch's nn.LSTM are views of one buffer, ours are storages of their own, of "
     "the same bytes in sum; cuDNN's reserve has 0 bytes in the reference, ours is by formula",
     is_recurrent, part_flat_weights},
};

}  // namespace

AccountedSaved accounted_saved(const ReferenceModel& reference) {
  AccountedSaved result{.saved = reference.saved, .without_effect = {}};
  for (const SavedDifference& difference : saved_differences) {
    if (!difference.concerns(reference)) continue;
    if (!difference.apply(reference, result.saved)) {
      result.without_effect += fmt::format("{}; ", difference.name);
    }
  }
  return result;
}

}  // namespace stowage::reference
