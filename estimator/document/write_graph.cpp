#include "estimator/document/write_graph.hpp"

#include <optional>

#include "estimator/document/micro_batch_loop.hpp"
#include "estimator/document/words.hpp"

namespace stowage::step_text {

namespace {

class GraphWriter {
 public:
  GraphWriter(const StepGraph& graph, Tables& tables)
      : graph_(graph), tables_(tables), storages_(storage_rows(graph)), found_(find_loop(graph)) {}

  std::string run() {
    put(text_, "{{");
    if (found_) loop(*found_);
    rows("storages", storages_, [](const MicroBatchLoop& l) { return l.storages; });
    put(text_, ",\n");
    rows("nodes", graph_.nodes, [](const MicroBatchLoop& l) { return l.nodes; });
    if (found_) exceptions(*found_);
    put(text_, ",\n\"saved\": ");
    put_list(text_, graph_.saved.size(), [&](std::size_t i) {
      const SavedTensor& saved = graph_.saved[i];
      put(text_, "[{},{},{}", saved.op.value, saved.storage.value, json_text(saved.role));
      if (const auto& call = saved.call) {
        put(text_, ",{},{},{},{}", tables_.layout(call->view), json_text(call->key),
            call->packed_after.value, call->unpacked_before.value);
        if (call->held_until.valid()) put(text_, ",{}", call->held_until.value);
      }
      put(text_, "]");
    });
    views("inputs", graph_.inputs);
    views("output", {graph_.output});
    views("losses", graph_.losses);
    views("gradients", graph_.gradients);
    if (graph_.micro_batch.first_node.valid()) micro_batch(graph_.micro_batch);
    put(text_, ",\n\"host_state_bytes\": {}", graph_.host_state_bytes);
    if (graph_.managed_state_bytes > 0) {
      put(text_, ",\n\"managed_state_bytes\": {}", graph_.managed_state_bytes);
    }
    if (!graph_.host_buffers.empty()) {
      put(text_, ",\n\"host_buffers\": ");
      put_list(text_, graph_.host_buffers.size(), [&](std::size_t i) {
        const HostBuffer& buffer = graph_.host_buffers[i];
        put(text_, "[{},{},{}]", json_text(buffer.name), buffer.bytes, buffer.pinned);
      });
    }
    put(text_, "}}");
    return fmt::to_string(text_);
  }

 private:
  void loop(const FoundLoop& found) {
    const MicroBatchLoop& loop = found.loop;
    put(text_,
        "\n\"repeated\": {{\"micro_batch\": {}, \"times\": {}, \"storages\": [{},{}], "
        "\"nodes\": [{},{}], \"seed\": {}}},",
        loop.micro_batch, loop.times, loop.storages.first, loop.storages.count, loop.nodes.first,
        loop.nodes.count, loop.seed);
  }

  // Arrivals: parameter, after, [storage, layout], origin; variables: kind, storage, assigned
  // after.
  void micro_batch(const MicroBatch& part) {
    put(text_, ",\n\"micro_batch\": {{\"nodes\": [{},{}], \"storages\": [{},{}],\n\"first_only\": ",
        part.first_node.value, part.end_node.value, part.first_storage.value,
        part.end_storage.value);
    put_list(text_, part.first_only.size(),
             [&](std::size_t i) { put(text_, "{}", part.first_only[i].value); });
    put(text_, ",\n\"arrivals\": ");
    put_list(text_, part.arrivals.size(), [&](std::size_t i) {
      const GradientArrival& arrival = part.arrivals[i];
      put(text_, "[{},{},", arrival.parameter.value, arrival.after.value);
      arguments({arrival.gradient});
      put(text_, ",{}]", arrival.op.value);
    });
    put(text_, ",\n\"variables\": ");
    put_list(text_, part.variables.size(), [&](std::size_t i) {
      const ScriptVariable& variable = part.variables[i];
      put(text_, "[{},{}", json_text(to_string(variable.kind)), variable.storage.value);
      if (variable.assigned_after.valid()) put(text_, ",{}", variable.assigned_after.value);
      put(text_, "]");
    });
    put(text_, "}}");
  }

  // All rows except those that the loop makes from the written ones.
  template <typename Row, typename RowsOf>
  void rows(std::string_view name, const std::vector<Row>& all, RowsOf rows_of) {
    put(text_, "\n{}: [", json_text(name));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto at = static_cast<std::int32_t>(i);
      const RepeatedRows rows = found_ ? rows_of(found_->loop) : RepeatedRows{};
      const std::int32_t end = rows.first + rows.count;
      if (at >= end && found_ && at < end + (found_->loop.times - 1) * rows.count) continue;
      put(text_, "{}\n", i == 0 ? "" : ",");
      if (at < rows.first || at >= end) {
        row(all[i]);
      } else {
        Row in_loop = all[i];
        in_loop.name = name_in_loop(in_loop.name, found_->loop.micro_batch);
        row(in_loop);
      }
    }
    put(text_, "]");
  }

  void exceptions(const FoundLoop& found) {
    if (found.storages.empty() && found.nodes.empty()) return;
    put(text_, ",\n\"exceptions\": {{\n\"storages\": ");
    of_table(found.storages, found.loop.storages, storages_);
    put(text_, ",\n\"nodes\": ");
    of_table(found.nodes, found.loop.nodes, graph_.nodes);
    put(text_, "}}");
  }

  template <typename Row>
  void of_table(const std::vector<FoundLoop::Exception>& exceptions, const RepeatedRows& rows,
                const std::vector<Row>& all) {
    put_list(text_, exceptions.size(), [&](std::size_t i) {
      const FoundLoop::Exception& exception = exceptions[i];
      put(text_, "\n[{},{},", exception.repetition, exception.row);
      const std::int32_t at = rows.first + exception.repetition * rows.count + exception.row;
      row(all[static_cast<std::size_t>(at)]);
      put(text_, "]");
    });
  }

  // [name, class, persistence, bytes, origin, parameter, {flags}], the last three if they say
  // something.
  void row(const StorageRow& storage) {
    std::string flags;
    const auto flag = [&](std::string_view name, bool value) {
      if (value) flags += fmt::format("{}{}:true", flags.empty() ? "" : ",", json_text(name));
    };
    const auto node = [&](std::string_view name, NodeId id) {
      if (id.valid())
        flags += fmt::format("{}{}:{}", flags.empty() ? "" : ",", json_text(name), id.value);
    };
    flag("carries_over", storage.carries_over);
    flag("before_first_step", storage.before_first_step);
    flag("held_to_end", storage.hold.held_to_end);
    node("loaded_before", storage.hold.loaded_before);
    node("first_made_by", storage.hold.first_made_by);
    node("replaced_after", storage.hold.replaced_after);
    put(text_, "[{},{},{},{}", json_text(storage.name), json_text(to_string(storage.storage_class)),
        json_text(to_string(storage.persistence)), written(storage.bytes));
    const bool has_parameter = storage.parameter.valid() || !flags.empty();
    if (storage.op.valid() || has_parameter) put(text_, ",{}", storage.op.value);
    if (has_parameter) put(text_, ",{}", storage.parameter.value);
    if (!flags.empty()) put(text_, ",{{{}}}", flags);
    put(text_, "]");
  }

  // [name, kernel, phase, origin, micro_batch, attributes, [reads], [writes], [temporaries],
  // [holds], flops, convolution], from the end on without what is empty, 0 or none.
  void row(const KernelNode& node) {
    put(text_, "[{},{},{},{},{},{},", json_text(node.name), json_text(kernel_name(node)),
        json_text(to_string(node.phase)), node.op.value, node.micro_batch,
        tables_.attributes(node.attributes));
    arguments(node.reads);
    put(text_, ",");
    arguments(node.writes);
    const bool has_convolution = node.convolution >= 0;
    const bool has_flops = node.flops != Affine(0) || has_convolution;
    const bool has_holds = !node.holds.empty() || has_flops;
    const auto ids = [&](const std::vector<StorageId>& storages) {
      put(text_, ",");
      put_list(text_, storages.size(), [&](std::size_t i) { put(text_, "{}", storages[i].value); });
    };
    if (!node.temporaries.empty() || has_holds) ids(node.temporaries);
    if (has_holds) ids(node.holds);
    if (has_flops) put(text_, ",{}", written(node.flops));
    if (has_convolution) {
      put(text_, ",{}",
          tables_.convolution(graph_.convolutions[static_cast<std::size_t>(node.convolution)]));
    }
    put(text_, "]");
  }

  // Storage, layout, storage, layout, ...; no tensor: -1, -1.
  void arguments(const std::vector<TensorView>& views) {
    put_list(text_, views.size(), [&](std::size_t i) {
      const TensorView& view = views[i];
      if (view == TensorView{}) {
        put(text_, "-1,-1");
      } else {
        put(text_, "{},{}", view.storage.value, tables_.layout(view));
      }
    });
  }

  void views(std::string_view name, const std::vector<TensorView>& views) {
    put(text_, ",\n{}: ", json_text(name));
    arguments(views);
  }

  const StepGraph& graph_;
  Tables& tables_;
  std::vector<StorageRow> storages_;
  std::optional<FoundLoop> found_;
  Text text_;
};

}  // namespace

std::string graph_text(const StepGraph& graph, Tables& tables) {
  return GraphWriter(graph, tables).run();
}

}  // namespace stowage::step_text
