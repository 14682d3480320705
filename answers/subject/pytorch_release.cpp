#include "answers/subject/pytorch_release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "answers/question/question_error.hpp"
#include "estimator/adapt/written_attention.hpp"
#include "estimator/base/kernel_set.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/runtime/runtime_process.hpp"

namespace stowage {

namespace {

// Sources: docs/pytorch-versions.md.
constexpr ReleaseVersion first_with_sdpa{2, 0};
constexpr ReleaseVersion lists_by_default{2, 0};
constexpr ReleaseVersion drops_gradients{2, 0};
constexpr ReleaseVersion fused_takes_mask{2, 1};
constexpr ReleaseVersion first_enable_gqa{2, 5};
constexpr ReleaseVersion efficient_takes_groups{2, 14};

/// What of torch.optim came after the oldest release that is modelled.
struct OptimizerReleases {
  std::string_view source;
  ReleaseVersion first, first_fused;
};
constexpr std::array optimizer_releases{
    OptimizerReleases{"torch.optim.Adam", {}, {1, 13}},
    OptimizerReleases{"torch.optim.AdamW", {}, {2, 0}},
    OptimizerReleases{"torch.optim.SGD", {}, {2, 3}},
    OptimizerReleases{"torch.optim.Adagrad", {}, {2, 4}},
    OptimizerReleases{"torch.optim.Adafactor", {2, 5}, {}},
};

constexpr std::string_view page = "docs/pytorch-versions.md";

bool is_attention(const Operator& op) { return op.row->name == "scaled_dot_product_attention"; }

bool shares_heads(const ModelGraph& model, const Operator& op) {
  const Shape& query = model.tensor(op.inputs[0]).type.shape;
  const Shape& key = model.tensor(op.inputs[1]).type.shape;
  return query.size() == 4 && query[1] != key[1];
}

Diagnostic release_note(std::string text) {
  return {.severity = Severity::note, .message = std::move(text)};
}

/// "torch 2.13.1" of a recorded step's `written_by`.
std::optional<ReleaseVersion> recorded_release(const StepDocument& document) {
  constexpr std::string_view key = "torch ";
  const std::string& text = document.written_by;
  const std::size_t at = text.find(key);
  if (!was_recorded(document) || at == std::string::npos) return std::nullopt;
  const std::string_view version = std::string_view(text).substr(at + key.size());
  const std::size_t minor = version.find('.');
  if (minor == std::string_view::npos) return std::nullopt;
  return parse_version(version.substr(0, version.find_first_not_of("0123456789", minor + 1)));
}

Result<void> check_optimizer(const OptimizerSettings& optimizer, const ReleaseVersion& pytorch) {
  const OptimizerRow* const row = find_optimizer(optimizer.name);
  if (row == nullptr) return {};
  const auto* const found =
      std::ranges::find(optimizer_releases, row->source, &OptimizerReleases::source);
  if (found == optimizer_releases.end()) return {};
  if (pytorch < found->first) {
    return failure(
        question_error(fmt::format("`optimizer` {}: PyTorch {} has no {}", row->name,
                                   to_string(pytorch), row->source),
                       fmt::format("{} was the first with it", to_string(found->first))));
  }
  if (pytorch < found->first_fused &&
      implementation_of(optimizer) == OptimizerImplementation::fused) {
    return failure(
        question_error(fmt::format("`optimizer_implementation` fused: PyTorch {} has no fused {}",
                                   to_string(pytorch), row->source),
                       fmt::format("{} was the first with one", to_string(found->first_fused))));
  }
  return {};
}

}  // namespace

Result<ModelOfRelease> model_of_release(const ModelGraph& model, const ReleaseVersion& pytorch) {
  ModelOfRelease result;
  if (pytorch >= first_enable_gqa || std::ranges::none_of(model.operators, is_attention)) {
    return result;
  }
  if (pytorch < first_with_sdpa) {
    auto written = with_written_out_attention(model);
    if (!written) return tl::unexpected(std::move(written.error()));
    result.changed = *std::move(written);
    result.changes.emplace_back("attention is written out in tensor operations");
    return result;
  }
  bool repeats = false, masks = false;
  ModelGraph changed = model;
  for (Operator& op : changed.operators) {
    if (!is_attention(op)) continue;
    if (shares_heads(model, op) && op.attributes.text("grouped") == "native") {
      op.attributes.set("grouped", std::string("repeat"));
      repeats = true;
    }
    if (pytorch < fused_takes_mask && op.inputs.size() > 3) {
      op.attributes.set("implementation", std::string("math"));
      masks = true;
    }
  }
  if (repeats) result.changes.emplace_back("shared key and value heads are repeated");
  if (masks) result.changes.emplace_back("no fused attention takes a mask");
  if (repeats || masks) result.changed = std::move(changed);
  return result;
}

Result<ChosenStep> step_of_release(ChosenStep chosen, const ReleaseVersion& pytorch,
                                   std::vector<std::string>& changes) {
  LoweringSettings& settings = chosen.lowering;
  settings.efficient_takes_groups = pytorch >= efficient_takes_groups;
  if (settings.mode != Mode::train) return chosen;
  if (auto there = check_optimizer(settings.optimizer, pytorch); !there) {
    return tl::unexpected(std::move(there.error()));
  }
  const OptimizerRow* const row = find_optimizer(settings.optimizer.name);
  const bool usual = settings.optimizer.implementation == OptimizerImplementation::usual;
  if (pytorch < lists_by_default && usual && row != nullptr && row->for_loop != nullptr &&
      row->source.starts_with("torch.optim") &&
      implementation_of(settings.optimizer) == OptimizerImplementation::foreach) {
    settings.optimizer.implementation = OptimizerImplementation::for_loop;
    changes.emplace_back("the optimizer updates one parameter after another");
  }
  // DeepSpeed and FSDP let go of gradients themselves, and so do hooks that update in backward.
  const bool script_decides =
      settings.parallel.zero == 0 && !settings.parallel.fsdp.on && !settings.early_updates;
  if (pytorch < drops_gradients && script_decides && settings.step.zero_grad == ZeroGrad::to_none) {
    settings.step.zero_grad = ZeroGrad::to_zero;
    changes.emplace_back("zero_grad keeps the gradients and fills them with zeros");
  }
  return chosen;
}

Result<void> check_release(const PytorchRelease& release, const StepQuestion& question) {
  if (!release.is_asked) return {};
  const std::string version = to_string(release.version);
  if (release.version < oldest_pytorch) {
    return failure(question_error(
        fmt::format("`pytorch_version` {} is not modelled", version),
        fmt::format("{} is the oldest that is ({})", to_string(oldest_pytorch), page)));
  }
  const bool expands =
      question.process.allocator && question.process.allocator->expandable_segments;
  if (release.version < first_expandable_segments && expands) {
    return failure(question_error(
        fmt::format("`alloc_conf` expandable_segments: PyTorch {} does not have them", version),
        fmt::format("{} was the first with them", to_string(first_expandable_segments))));
  }
  return {};
}

Diagnostics notes_on_release(const PytorchRelease& release,
                             const std::vector<std::string>& changes) {
  const std::string version = to_string(release.version);
  if (!changes.empty()) {
    return {
        release_note(fmt::format("as PyTorch {} runs the step, {}; all else is sized as PyTorch {} "
                                 "does it ({})",
                                 version, listed(changes), to_string(newest_pytorch), page))};
  }
  if (!release.is_asked) return {};
  if (release.version > newest_pytorch) {
    return {release_note(
        fmt::format("PyTorch {} is newer than {}, the newest that was measured: the step "
                    "is sized as that runs it",
                    version, to_string(newest_pytorch)))};
  }
  if (release.version < oldest_measured_pytorch) {
    return {release_note(
        fmt::format("PyTorch {} is older than {}, the oldest that was measured: but for "
                    "what {} lists, the step is sized as PyTorch {} runs it",
                    version, to_string(oldest_measured_pytorch), page, to_string(newest_pytorch)))};
  }
  return {};
}

Diagnostics notes_on_release(const PytorchRelease& release, const StepDocument& document) {
  if (!release.is_asked) return {};
  const auto recorded = recorded_release(document);
  if (recorded == release.version) return {};
  return {release_note(fmt::format(
      "the step's calls are those {}; for PyTorch {} only cuBLAS's workspaces and the process's "
      "own "
      "memory are changed",
      recorded ? fmt::format("of PyTorch {}, with which it was recorded", to_string(*recorded))
               : std::string("of the step's file"),
      to_string(release.version)))};
}

Diagnostics notes_on_cuda(const std::optional<ReleaseVersion>& asked) {
  if (!asked || *asked <= newest_cuda) return {};
  return {release_note(
      fmt::format("CUDA {} is newer than {}, the newest that was measured: the process is "
                  "sized as under that",
                  to_string(*asked), to_string(newest_cuda)))};
}

}  // namespace stowage
