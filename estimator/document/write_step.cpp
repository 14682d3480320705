#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <unordered_map>

#include "estimator/document/micro_batch_loop.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/document/words.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

using Text = fmt::memory_buffer;

template <typename... Args>
void put(Text& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string written(const Affine& size) {
  if (size.slope == 0) return fmt::format("{}", size.constant);
  return fmt::format("[{},{}]", size.constant, size.slope);
}

// With a point or an exponent, so that it is read back as no integer.
std::string written(double value) {
  if (std::isnan(value)) return R"({"real":"nan"})";
  if (std::isinf(value)) return value > 0 ? R"({"real":"inf"})" : R"({"real":"-inf"})";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

/// Rows by their text, each once, in the order of their first use.
class Table {
 public:
  std::size_t number_of(std::string row) {
    const auto [place, is_new] = number_.try_emplace(std::move(row), rows_.size());
    if (is_new) rows_.push_back(&place->first);
    return place->second;
  }
  void put_to(Text& text, std::string_view name) const {
    put(text, ",\n{}: [", quoted(name));
    for (std::size_t i = 0; i < rows_.size(); ++i)
      put(text, "{}\n{}", i == 0 ? "" : ",", *rows_[i]);
    put(text, "]");
  }

 private:
  std::unordered_map<std::string, std::size_t> number_;
  std::vector<const std::string*> rows_;  // keys of number_, which stay where they are
};

/// The tables that a document's two graphs share.
class Tables {
 public:
  std::size_t shape(const Shape& shape) {
    const auto [place, is_new] = shape_number_.try_emplace(shape, 0);
    if (is_new) {
      std::string row = "[";
      for (const Affine& dimension : shape) {
        row += (row.size() > 1 ? "," : "") + written(dimension);
      }
      place->second = shapes_.number_of(row + "]");
    }
    return place->second;
  }

  // [type, shape, strides or null, offset, is_view], from the end on without what is usual.
  std::size_t layout(const TensorView& view) {
    const bool contiguous = view.strides == contiguous_strides(view.shape);
    std::string row = fmt::format("[{},{}", quoted(to_string(view.type)), shape(view.shape));
    const bool has_offset = view.offset != Affine(0) || view.is_view;
    if (!contiguous) {
      row += fmt::format(",{}", shape(view.strides));
    } else if (has_offset) {
      row += ",null";
    }
    if (has_offset) row += "," + written(view.offset);
    if (view.is_view) row += ",true";
    return layouts_.number_of(row + "]");
  }

  std::size_t attributes(const Attributes& attributes) {
    std::string row = "{";
    for (const auto& [name, value] : attributes.entries()) {
      row += fmt::format("{}{}:{}", row.size() > 1 ? "," : "", quoted(name), attribute(value));
    }
    return attributes_.number_of(row + "}");
  }

  std::size_t convolution(const ConvolutionCall& call) {
    const auto tensor = [&](const TensorType& type) {
      return fmt::format("[{},{}]", quoted(to_string(type.type)), shape(type.shape));
    };
    const ConvolutionWindow& window = *call.window;
    return convolutions_.number_of(fmt::format(
        R"({{"direction":{},"x":{},"w":{},"y":{},"layout":{},"stride":{},"padding":{},"dilation":{},"groups":{}}})",
        quoted(to_string(call.direction)), tensor(call.x), tensor(call.w), tensor(call.y),
        quoted(to_string(call.layout)), list_of(window.stride), list_of(window.padding),
        list_of(window.dilation), window.groups));
  }

  void put_to(Text& text) const {
    shapes_.put_to(text, "shapes");
    layouts_.put_to(text, "layouts");
    attributes_.put_to(text, "attributes");
    convolutions_.put_to(text, "convolutions");
  }

 private:
  std::string attribute(const AttributeValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
      return list_of(*integers);
    }
    if (const auto* dimensions = std::get_if<Shape>(&value)) {
      return fmt::format(R"({{"dimensions":{}}})", shape(*dimensions));
    }
    if (const auto* real = std::get_if<double>(&value)) return written(*real);
    if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
    return quoted(std::get<std::string>(value));
  }

  Table shapes_, layouts_, attributes_, convolutions_;
  std::unordered_map<Shape, std::size_t, ShapeHash> shape_number_;
};

/// A list whose items are put by a function of their index.
void put_list(Text& text, std::size_t count, const std::function<void(std::size_t)>& item) {
  put(text, "[");
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) put(text, ",");
    item(i);
  }
  put(text, "]");
}

class GraphWriter {
 public:
  GraphWriter(const StepGraph& graph, Tables& tables)
      : graph_(graph), tables_(tables), found_(find_loop(graph)) {}

  std::string run() {
    put(text_, "{{");
    if (found_) loop(*found_);
    rows("storages", graph_.storages, [](const MicroBatchLoop& l) { return l.storages; });
    put(text_, ",\n");
    rows("nodes", graph_.nodes, [](const MicroBatchLoop& l) { return l.nodes; });
    if (found_) exceptions(*found_);
    put(text_, ",\n\"saved\": ");
    put_list(text_, graph_.saved.size(), [&](std::size_t i) {
      const SavedTensor& saved = graph_.saved[i];
      put(text_, "[{},{},{}]", saved.op.value, saved.storage.value, quoted(saved.role));
    });
    views("inputs", graph_.inputs);
    views("output", {graph_.output});
    views("losses", graph_.losses);
    views("gradients", graph_.gradients);
    if (graph_.micro_batch.first_node.valid()) micro_batch(graph_.micro_batch);
    put(text_, ",\n\"host_state_bytes\": {}", graph_.host_state_bytes);
    if (!graph_.host_buffers.empty()) {
      put(text_, ",\n\"host_buffers\": ");
      put_list(text_, graph_.host_buffers.size(), [&](std::size_t i) {
        const HostBuffer& buffer = graph_.host_buffers[i];
        put(text_, "[{},{},{}]", quoted(buffer.name), buffer.bytes, buffer.pinned);
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
      put(text_, "[{},{}", quoted(to_string(variable.kind)), variable.storage.value);
      if (variable.assigned_after.valid()) put(text_, ",{}", variable.assigned_after.value);
      put(text_, "]");
    });
    put(text_, "}}");
  }

  // All rows but those that repetitions of the written ones make.
  template <typename Row, typename RowsOf>
  void rows(std::string_view name, const std::vector<Row>& all, RowsOf rows_of) {
    put(text_, "\n{}: [", quoted(name));
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
    of_table(found.storages, found.loop.storages, graph_.storages);
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
      row(all[static_cast<std::size_t>(rows.first + exception.repetition * rows.count +
                                       exception.row)]);
      put(text_, "]");
    });
  }

  // [name, class, persistence, bytes, origin, parameter, {flags}], the last three if they say
  // something.
  void row(const Storage& storage) {
    std::string flags;
    const auto flag = [&](std::string_view name, bool value) {
      if (value) flags += fmt::format("{}{}:true", flags.empty() ? "" : ",", quoted(name));
    };
    const auto node = [&](std::string_view name, NodeId id) {
      if (id.valid())
        flags += fmt::format("{}{}:{}", flags.empty() ? "" : ",", quoted(name), id.value);
    };
    flag("carries_over", storage.carries_over);
    flag("before_first_step", storage.before_first_step);
    flag("held_to_end", storage.held_to_end);
    node("loaded_before", storage.loaded_before);
    node("first_made_by", storage.first_made_by);
    node("replaced_after", storage.replaced_after);
    put(text_, "[{},{},{},{}", quoted(storage.name), quoted(to_string(storage.storage_class)),
        quoted(to_string(storage.persistence)), written(storage.bytes));
    const bool has_parameter = storage.parameter.valid() || !flags.empty();
    if (storage.op.valid() || has_parameter) put(text_, ",{}", storage.op.value);
    if (has_parameter) put(text_, ",{}", storage.parameter.value);
    if (!flags.empty()) put(text_, ",{{{}}}", flags);
    put(text_, "]");
  }

  // [name, kernel, phase, origin, micro_batch, attributes, [reads], [writes], [temporaries],
  // [holds], flops, convolution], from the end on without what is empty, 0 or none.
  void row(const KernelNode& node) {
    put(text_, "[{},{},{},{},{},{},", quoted(node.name), quoted(kernel_name(node)),
        quoted(to_string(node.phase)), node.op.value, node.micro_batch,
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
    put(text_, ",\n{}: ", quoted(name));
    arguments(views);
  }

  const StepGraph& graph_;
  Tables& tables_;
  std::optional<FoundLoop> found_;
  Text text_;
};

void put_optimizer(Text& text, const OptimizerSettings& optimizer) {
  put(text, "{{\"name\": {}", quoted(optimizer.name));
  for (const OptimizerSetting& setting : setting_table()) {
    const AttributeValue value = value_of(optimizer, setting);
    const auto* real = std::get_if<double>(&value);
    put(text, ", {}: {}", quoted(setting.spec.name),
        real != nullptr ? written(*real) : to_string(value));
  }
  put(text, ", \"implementation\": {}, \"master_weights\": {}}}",
      quoted(to_string(optimizer.implementation)), quoted(to_string(optimizer.master_weights)));
}

void put_sharding(Text& text, const DataParallel& parallel) {
  const FullyShard& fsdp = parallel.fsdp;
  if (fsdp.on) {
    put(text,
        ",\n\"fsdp\": {{\"wrap\": \"{}\", \"reshard_after_forward\": {}, \"reshard_among\": {}, "
        "\"forward_prefetch\": {}, \"backward_prefetch\": {}",
        fsdp.by_block ? "blocks" : "root", fsdp.reshards_after_forward, fsdp.reshards_among,
        fsdp.forward_prefetch, fsdp.backward_prefetch);
    if (fsdp.reduce_type) {
      put(text, ", \"reduce_dtype\": {}", quoted(to_string(*fsdp.reduce_type)));
    }
    if (fsdp.output_type) {
      put(text, ", \"output_dtype\": {}", quoted(to_string(*fsdp.output_type)));
    }
    put(text, "}}");
  }
  if (parallel.offload != Offload::none) {
    put(text, ",\n\"offload\": {}", quoted(to_string(parallel.offload)));
  }
  if (!parallel.pinned) put(text, ",\n\"pinned\": false");
}

// Of both graphs: the evaluation's differ in the mode alone, and in that it has one micro-batch.
void put_settings(Text& text, const LoweringSettings& settings) {
  put(text, ",\n\"settings\": {{\n\"kernels\": {},\n\"mode\": {},\n\"optimizer\": ",
      quoted(to_string(settings.kernels)), quoted(to_string(settings.mode)));
  put_optimizer(text, settings.optimizer);
  const StepSettings& step = settings.step;
  put(text,
      ",\n\"micro_batches\": {},\n\"zero_grad\": {},\n\"augment\": {},\n\"prefetch\": {},\n"
      "\"layout\": {},\n\"compute_capability\": {},\n",
      settings.micro_batches, quoted(to_string(step.zero_grad)), step.augment, step.prefetch,
      quoted(to_string(step.layout)), written(settings.compute_capability));
  put(text,
      "\"tf32\": {},\n\"deterministic\": {},\n\"cudnn_benchmark\": {},\n\"gpus\": {},\n"
      "\"zero\": {}",
      settings.convolutions.tf32, settings.convolutions.deterministic,
      settings.convolutions.benchmark, settings.parallel.gpus, settings.parallel.zero);
  put_sharding(text, settings.parallel);
  if (!settings.recomputed.empty()) {
    put(text, ",\n\"recomputed\": ");
    put_list(text, settings.recomputed.size(), [&](std::size_t i) {
      const RecomputedValue& row = settings.recomputed[i];
      put(text, "\n[{}", quoted(row.value));
      if (!row.before.empty()) put(text, ",{}", quoted(row.before));
      put(text, "]");
    });
  }
  if (settings.early_updates) put(text, ",\n\"early_updates\": true");
  if (settings.in_place) put(text, ",\n\"in_place\": true");
  if (!settings.order.empty()) {
    put(text, ",\n\"order\": ");
    put_list(text, settings.order.size(), [&](std::size_t i) {
      const NodeRun& run = settings.order[i];
      put(text, "\n[{}", quoted(run.first));
      if (run.last != run.first) put(text, ",{}", quoted(run.last));
      put(text, "]");
    });
  }
  put(text, "}}");
}

void put_origins(Text& text, const StepGraph& graph, bool with_places) {
  put(text, ",\n\"origins\": ");
  put_list(text, graph.origins.size(), [&](std::size_t i) {
    const Origin& origin = graph.origins[i];
    put(text, "\n[{}", quoted(origin.layer));
    if (with_places && !origin.place.empty()) put(text, ",{}", quoted(origin.place));
    put(text, "]");
  });
}

ParameterKind kind_of(const Parameter& parameter) {
  if (parameter.is_buffer) return ParameterKind::buffer;
  return parameter.trainable ? ParameterKind::trained : ParameterKind::frozen;
}

void put_parameters(Text& text, const std::vector<Parameter>& parameters, Tables& tables) {
  put(text, ",\n\"parameters\": ");
  put_list(text, parameters.size(), [&](std::size_t i) {
    const Parameter& parameter = parameters[i];
    put(text, "\n[{},{},{},{}]", quoted(parameter.name), quoted(to_string(parameter.type.type)),
        tables.shape(parameter.type.shape), quoted(to_string(kind_of(parameter))));
  });
}

void put_layers(Text& text, const StepDocument& document, Tables& tables) {
  put(text, ",\n\"layers\": ");
  put_list(text, document.layers.size(), [&](std::size_t i) {
    const Layer& layer = document.layers[i];
    put(text, "\n[{},{},{},{}", quoted(layer.name), quoted(layer.op), tables.shape(layer.output),
        layer.parameters);
    if (document.has_costs) put(text, ",{},{}", written(layer.flops), written(layer.saved_bytes));
    put(text, "]");
  });
}

void put_warnings(Text& text, const Diagnostics& warnings) {
  put(text, ",\n\"warnings\": ");
  put_list(text, warnings.size(), [&](std::size_t i) {
    const Diagnostic& warning = warnings[i];
    put(text, "\n{{\"message\": {}", quoted(warning.message));
    if (!warning.hint.empty()) put(text, ", \"hint\": {}", quoted(warning.hint));
    if (warning.span.source) {
      put(text, ", \"file\": {}, \"line\": {}, \"column\": {}", quoted(warning.span.source->name),
          warning.span.line, warning.span.column);
    }
    put(text, "}}");
  });
}

}  // namespace

std::string write_step(const StepDocument& document) {
  const StepGraph& graph = *document.graph;
  Tables tables;
  const std::string step = GraphWriter(graph, tables).run();
  const std::string evaluation =
      document.evaluation ? GraphWriter(*document.evaluation, tables).run() : std::string();
  Text text;
  put(text, "{{\n\"format\": {},\n\"version\": {},\n\"written_by\": {}", quoted(step_format),
      step_version, quoted(document.written_by));
  put(text,
      ",\n\"model\": {},\n\"source\": {},\n\"runtime\": {},\n\"precision\": {},\n\"seq\": {},\n"
      "\"accumulation\": {},\n\"batch\": {},\n\"fixed_batch\": {}",
      quoted(graph.model), quoted(document.source), quoted(to_string(document.runtime)),
      quoted(to_string(document.precision)),
      document.seq > 0 ? fmt::format("{}", document.seq) : "null", document.accumulation,
      document.batch ? fmt::format("{}", *document.batch) : "null", document.fixed_batch);
  put_settings(text, graph.settings);
  put_origins(text, graph, true);
  put_parameters(text, document.parameters, tables);
  put_layers(text, document, tables);
  put(text, ",\n\"result_bytes\": {}",
      document.result_bytes ? written(*document.result_bytes) : "null");
  put_warnings(text, document.warnings);
  tables.put_to(text);
  put(text, ",\n\"step\": {}", step);
  if (document.evaluation) put(text, ",\n\"evaluation\": {}", evaluation);
  put(text, "}}\n");
  return fmt::to_string(text);
}

std::string canonical_text(const StepGraph& graph) {
  Tables tables;
  const std::string step = GraphWriter(graph, tables).run();
  Text text;
  put(text, "{{\"model\": {}", quoted(graph.model));
  put_settings(text, graph.settings);
  put_origins(text, graph, false);
  tables.put_to(text);
  put(text, ",\n\"step\": {}}}\n", step);
  return fmt::to_string(text);
}

}  // namespace stowage
