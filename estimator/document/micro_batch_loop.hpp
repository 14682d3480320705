// MicroBatchLoop: the part of a step graph that repeats from micro-batch to micro-batch, so that a
// step file holds it once.
//
// The first micro-batch differs from the later ones (it makes the gradients that those add to), and
// the last one may differ in a few rows (storages that the script's variables keep). So a file
// writes the rows of one micro-batch, says how often they repeat, and lists the rows of a
// repetition that differ from what the rule makes of the written ones.
//
// The rule, for repetition k (0 is the written rows themselves): every id of a written row, of a
// storage or of a node, grows by k times the number of written rows of its table; all other ids
// stay; `micro_batch` grows by k, the attribute `seed` by k times a number that the file gives; in
// names "@#" becomes "@" and the number of the micro-batch.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

inline constexpr std::int64_t largest_seed_step = std::int64_t{1} << 40;

/// Written rows of a table: [first, first + count).
struct RepeatedRows {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

struct MicroBatchLoop {
  int micro_batch = 0;  ///< the micro-batch of the written rows
  int times = 0;        ///< how many micro-batches they stand for, at least 2
  RepeatedRows storages, nodes;
  std::int64_t seed = 0;  ///< the nodes' attribute `seed` grows by this in each repetition
};

/// A storage as its row in the file has it: with what the training script holds of it.
struct StorageRow : Storage {
  ScriptHold hold;
  bool operator==(const StorageRow&) const = default;
};
/// By StorageId.
[[nodiscard]] std::vector<StorageRow> storage_rows(const StepGraph& graph);

/// The loop of a graph, and the exceptions: the rows of repetitions that the rule does not make.
struct FoundLoop {
  struct Exception {
    int repetition = 0;
    std::int32_t row = 0;  ///< counted from 0 within the repetition
  };
  MicroBatchLoop loop;
  std::vector<Exception> storages, nodes;
};
/// None: the graph has too few micro-batches, or they are too different.
[[nodiscard]] std::optional<FoundLoop> find_loop(const StepGraph& graph);

/// The name as it is written in a loop: "conv1.forward@#" for "conv1.forward@1" in micro-batch 1.
[[nodiscard]] std::string name_in_loop(const std::string& name, int micro_batch);

/// A written row, whose name is as name_in_loop() gives it, as it is in a repetition.
[[nodiscard]] StorageRow repeated(const StorageRow& written, const MicroBatchLoop& loop,
                                  int repetition);
[[nodiscard]] KernelNode repeated(const KernelNode& written, const MicroBatchLoop& loop,
                                  int repetition);

}  // namespace stowage
