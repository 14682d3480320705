#include "estimator/rewrite/streamed_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "estimator/rewrite/host_copies.hpp"
#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

constexpr std::size_t no_block = static_cast<std::size_t>(-1);

/// A parameter's place in its block's piece.
struct PiecePlace {
  std::size_t block = no_block;
  std::int64_t offset = 0;  ///< bytes
};

struct BlockPieces {
  StorageId forward, backward;  ///< backward's: none where it reads no parameter
  NodeId first_backward, last_backward;
};

class ParameterStreaming {
 public:
  ParameterStreaming(StepGraph step, const std::vector<StreamedBlock>& blocks)
      : step_(std::move(step)),
        blocks_(blocks),
        old_storages_(step_.storages.size()),
        place_of_(step_.storages.size()),
        made_(blocks.size()),
        pieces_(blocks.size()) {}

  Result<StreamedStep> run() && {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (auto wrong = place_parameters(b)) return failure(*std::move(wrong));
    }
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      if (auto wrong = take_touches(NodeId::of(n))) return failure(*std::move(wrong));
    }
    add_pieces();
    add_copies();
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) read_pieces(step_.nodes[n]);
    hold_pieces();
    put_together();
    return StreamedStep{std::move(step_), std::move(pieces_)};
  }

 private:
  [[nodiscard]] const std::string& name(StorageId id) const { return step_.storage(id).name; }

  [[nodiscard]] std::optional<std::string> place_parameters(std::size_t b) {
    const StreamedBlock& block = blocks_[b];
    const bool is_behind = b == 0 || blocks_[b - 1].last < block.first;
    if (!is_behind || block.last < block.first || block.last.index() >= step_.nodes.size()) {
      return fmt::format("the block '{}' does not run by itself", block.module);
    }
    std::int64_t offset = 0;
    for (const StorageId id : block.parameters) {
      const Affine bytes = step_.storage(id).bytes;
      if (place_of_[id.index()].block != no_block) {
        return fmt::format("'{}' is in two blocks", name(id));
      }
      if (!bytes.is_constant()) return fmt::format("the size of '{}' follows the batch", name(id));
      place_of_[id.index()] = {b, offset};
      const std::int64_t units = (bytes.constant + streamed_alignment - 1) / streamed_alignment;
      offset += units * streamed_alignment;
    }
    pieces_[b].bytes = offset;
    return std::nullopt;
  }

  /// Notes which nodes of backward read a block's parameters.
  [[nodiscard]] std::optional<std::string> take_touches(NodeId id) {
    const KernelNode& node = step_.node(id);
    for (const TensorView& view : node.writes) {
      if (place_of_[view.storage.index()].block == no_block) continue;
      return fmt::format("'{}' writes to '{}'", node.name, name(view.storage));
    }
    const auto wrong = [&](StorageId storage) -> std::optional<std::string> {
      const std::size_t b = place_of_[storage.index()].block;
      if (b == no_block) return std::nullopt;
      if (node.phase == Phase::backward) {
        BlockPieces& of = made_[b];
        if (!of.first_backward.valid()) of.first_backward = id;
        of.last_backward = id;
        return std::nullopt;
      }
      const StreamedBlock& block = blocks_[b];
      if (node.phase != Phase::update && id >= block.first && id <= block.last) return std::nullopt;
      return fmt::format("'{}' reads '{}' outside of its block '{}'", node.name, name(storage),
                         block.module);
    };
    for (const TensorView& view : node.reads) {
      if (auto found = wrong(view.storage)) return found;
    }
    for (const StorageId held : node.holds) {
      if (auto found = wrong(held)) return found;
    }
    return std::nullopt;
  }

  [[nodiscard]] StorageId add_piece(std::size_t b) {
    step_.storages.push_back({.name = dotted(blocks_[b].module, "streamed"),
                              .storage_class = StorageClass::parameter_copy,
                              .bytes = pieces_[b].bytes,
                              .op = step_.node(blocks_[b].first).op});
    return StorageId::of(step_.storages.size() - 1);
  }

  void add_pieces() {
    std::int64_t on_host = 0;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      on_host += pieces_[b].bytes;
      made_[b].forward = add_piece(b);
      if (!made_[b].first_backward.valid()) continue;
      made_[b].backward = add_piece(b);
      pieces_[b].uploads = 2;
    }
    step_.host_buffers.push_back({"streamed parameters", on_host, true});
  }

  /// Each block's copy begins when the block before it is about to run, the first one's right
  /// before the first one.
  void add_copies() {
    std::vector<std::size_t> backward;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const NodeId before = blocks_[b == 0 ? 0 : b - 1].first;
      before_.emplace(before.index(),
                      copy_from_host(step_, made_[b].forward, blocks_[b].module, Phase::forward));
      if (made_[b].backward.valid()) backward.push_back(b);
    }
    std::ranges::stable_sort(backward, {}, [&](std::size_t b) { return made_[b].first_backward; });
    for (std::size_t i = 0; i < backward.size(); ++i) {
      const std::size_t b = backward[i];
      const NodeId before = made_[backward[i == 0 ? 0 : i - 1]].first_backward;
      before_.emplace(before.index(),
                      copy_from_host(step_, made_[b].backward, blocks_[b].module, Phase::backward));
    }
  }

  void read_pieces(KernelNode& node) const {
    const auto piece_of = [&](StorageId id) -> StorageId {
      if (id.index() >= old_storages_) return id;
      const std::size_t b = place_of_[id.index()].block;
      if (b == no_block) return id;
      return node.phase == Phase::backward ? made_[b].backward : made_[b].forward;
    };
    for (TensorView& view : node.reads) {
      const StorageId piece = piece_of(view.storage);
      if (piece == view.storage) continue;
      view.offset =
          view.offset + Affine(place_of_[view.storage.index()].offset / element_size(view.type));
      view.storage = piece;
    }
    for (StorageId& id : node.holds) id = piece_of(id);
  }

  void hold_pieces() {
    const auto hold = [&](NodeId at, StorageId piece) {
      std::vector<StorageId>& holds = step_.nodes[at.index()].holds;
      if (std::ranges::find(holds, piece) == holds.end()) holds.push_back(piece);
    };
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      hold(blocks_[b].first, made_[b].forward);
      hold(blocks_[b].last, made_[b].forward);
    }
  }

  void put_together() {
    insert_nodes(step_, std::move(before_), {});
    number_repetitions(step_.nodes);
    number_repetitions(step_.storages, old_storages_);
    into_micro_batch(step_, old_storages_ - drop_parameters());
  }

  /// Returns how many.
  std::size_t drop_parameters() {
    std::vector<bool> gone(step_.storages.size(), false);
    std::vector<std::size_t> gone_before(old_storages_ + 1, 0);
    for (std::size_t i = 0; i < old_storages_; ++i) {
      gone[i] = place_of_[i].block != no_block;
      gone_before[i + 1] = gone_before[i] + (gone[i] ? 1 : 0);
    }
    drop_storages(step_, gone);
    MicroBatch& part = step_.micro_batch;
    for (StorageId* const bound : {&part.first_storage, &part.end_storage}) {
      if (bound->valid()) *bound = StorageId::of(bound->index() - gone_before[bound->index()]);
    }
    return gone_before.back();
  }

  StepGraph step_;
  const std::vector<StreamedBlock>& blocks_;
  std::size_t old_storages_;
  std::vector<PiecePlace> place_of_;  // by old storage
  std::vector<BlockPieces> made_;     // by block
  std::vector<StreamedPiece> pieces_;
  std::multimap<std::size_t, KernelNode> before_;  // new nodes, by one that is there
};

}  // namespace

Result<StreamedStep> with_streamed_parameters(StepGraph step,
                                              const std::vector<StreamedBlock>& blocks) {
  return ParameterStreaming(std::move(step), blocks).run();
}

}  // namespace stowage
