#include "estimator/document/read_graph.hpp"

#include <algorithm>
#include <map>

#include "estimator/document/micro_batch_loop.hpp"
#include "estimator/document/words.hpp"
#include "estimator/step/own_scratch.hpp"

namespace stowage {

namespace {

using Kind = JsonValue::Kind;

class GraphReader {
 public:
  GraphReader(const JsonValue& object, std::string_view what, const StepTables& tables,
              const LoweringSettings& settings)
      : members_(object, what), tables_(tables) {
    graph_.settings = settings;
    graph_.origins = tables.origins;
  }

  StepGraph run() {
    const JsonValue storages = members_.required("storages"), nodes = members_.required("nodes");
    expect(storages, Kind::array, "'storages'");
    expect(nodes, Kind::array, "'nodes'");
    if (const auto loop = members_.find("repeated")) read_loop(*loop, storages, nodes);
    count_rows(storages, nodes);
    std::vector<StorageRow> storage_rows;
    rows(storages, storage_rows, loop_.storages, &GraphReader::storage);
    rows(nodes, graph_.nodes, loop_.nodes, &GraphReader::node);
    if (const auto exceptions = members_.find("exceptions")) {
      read_exceptions(*exceptions, storage_rows);
    }
    take_storages(std::move(storage_rows));
    number_convolutions();
    read_saved(members_.required("saved"));
    graph_.inputs = views(members_.required("inputs"));
    graph_.losses = views(members_.required("losses"));
    graph_.gradients = views(members_.required("gradients"));
    if (const auto part = members_.find("micro_batch")) read_micro_batch(*part);
    const JsonValue output = members_.required("output");
    const std::vector<TensorView> outputs = views(output);
    if (outputs.size() > 1) refuse(output, "'output' is one tensor: its storage and its layout");
    if (!outputs.empty()) graph_.output = outputs.front();
    graph_.host_state_bytes =
        integer_of(members_.required("host_state_bytes"), "'host_state_bytes'");
    if (const auto managed = members_.find("managed_state_bytes")) {
      graph_.managed_state_bytes = integer_of(*managed, "'managed_state_bytes'");
    }
    if (const auto buffers = members_.find("host_buffers")) read_host_buffers(*buffers);
    members_.finish();
    for (KernelNode& node : graph_.nodes) list_own_scratch(graph_, node);
    return std::move(graph_);
  }

 private:
  void read_host_buffers(const JsonValue& list) {
    expect(list, JsonValue::Kind::array, "'host_buffers'");
    for (auto at = list.begin(); !(at == list.end()); ++at) {
      FieldRow row(*at, "a host buffer");
      HostBuffer buffer{.name = name_of(row.next("name"), "a host buffer's name")};
      buffer.bytes = integer_of(row.next("bytes"), "a host buffer's bytes");
      buffer.pinned = boolean_of(row.next("pinned"), "'pinned'");
      row.finish();
      graph_.host_buffers.push_back(std::move(buffer));
    }
  }

  void read_loop(const JsonValue& value, const JsonValue& storages, const JsonValue& nodes) {
    Members members(value, "'repeated'");
    const int micro_batches = graph_.settings.micro_batches;
    loop_.micro_batch = static_cast<int>(integer_of(
        members.required("micro_batch"), "the repeated micro-batch", 0, micro_batches - 1));
    loop_.times =
        static_cast<int>(integer_of(members.required("times"), "how often a micro-batch repeats", 1,
                                    micro_batches - loop_.micro_batch));
    loop_.storages = repeated_rows(members.required("storages"), storages.size());
    loop_.nodes = repeated_rows(members.required("nodes"), nodes.size());
    loop_.seed =
        integer_of(members.required("seed"), "by how much seeds grow", 0, largest_seed_step);
    members.finish();
  }

  // Half-open; the rest of what rewriting relies on is checked there.
  template <typename Id>
  static void range(const JsonValue& value, std::string_view what, std::int64_t all, Id& first,
                    Id& end) {
    FieldRow row(value, what);
    first = Id{static_cast<std::int32_t>(integer_of(row.next("first"), what, 0, all))};
    end = Id{static_cast<std::int32_t>(integer_of(row.next("end"), what, first.value, all))};
    row.finish();
  }

  void read_micro_batch(const JsonValue& value) {
    Members members(value, "'micro_batch'");
    MicroBatch& part = graph_.micro_batch;
    range(members.required("nodes"), "a micro-batch's nodes", node_count_, part.first_node,
          part.end_node);
    range(members.required("storages"), "a micro-batch's storages", storage_count_,
          part.first_storage, part.end_storage);
    const JsonValue first_only = members.required("first_only");
    expect(first_only, Kind::array, "'first_only'");
    for (auto at = first_only.begin(); !(at == first_only.end()); ++at) {
      part.first_only.push_back(node_id(*at));
    }
    const JsonValue arrivals = members.required("arrivals");
    expect(arrivals, Kind::array, "'arrivals'");
    for (auto at = arrivals.begin(); !(at == arrivals.end()); ++at) {
      part.arrivals.push_back(arrival(*at));
    }
    const JsonValue variables = members.required("variables");
    expect(variables, Kind::array, "'variables'");
    for (auto at = variables.begin(); !(at == variables.end()); ++at) {
      FieldRow row(*at, "a variable of the script");
      ScriptVariable variable;
      variable.kind = choice_of(row.next("kind"), "a variable's kind", script_variable_kinds);
      variable.storage = storage_id(row.next("storage"));
      if (const auto after = row.next_if_any()) variable.assigned_after = node_id(*after);
      row.finish();
      part.variables.push_back(variable);
    }
    members.finish();
  }

  GradientArrival arrival(const JsonValue& value) {
    FieldRow row(value, "a gradient's arrival");
    GradientArrival arrival;
    arrival.parameter = ParameterId{
        static_cast<std::int32_t>(integer_of(row.next("parameter"), "a parameter's number", 0,
                                             static_cast<std::int64_t>(tables_.parameters) - 1))};
    arrival.after = node_id(row.next("after"));
    const JsonValue gradient = row.next("gradient");
    const std::vector<TensorView> views = arguments(gradient);
    if (views.size() != 1) refuse(gradient, "a gradient is one tensor: its storage and its layout");
    arrival.gradient = views.front();
    arrival.op = origin(row.next("origin"));
    row.finish();
    return arrival;
  }

  static RepeatedRows repeated_rows(const JsonValue& value, std::size_t rows) {
    FieldRow row(value, "the repeated rows");
    const auto all = static_cast<std::int64_t>(rows);
    const std::int64_t first = integer_of(row.next("first"), "the first repeated row", 0, all);
    const std::int64_t count =
        integer_of(row.next("count"), "the number of repeated rows", 0, all - first);
    row.finish();
    return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(count)};
  }

  // The factors are below 2^31 each.
  void count_rows(const JsonValue& storages, const JsonValue& nodes) {
    const auto count = [&](const JsonValue& list, const RepeatedRows& rows, std::int64_t most,
                           std::string_view what) {
      const std::int64_t repeated = std::int64_t{loop_.times - 1} * rows.count;
      const std::int64_t all =
          static_cast<std::int64_t>(list.size()) + (loop_.times > 0 ? repeated : 0);
      if (all > most) {
        refuse(list, fmt::format("the step has {} {}; {} at most are read", all, what, most));
      }
      return static_cast<std::int32_t>(all);
    };
    storage_count_ = count(storages, loop_.storages, most_storages, "storages");
    node_count_ = count(nodes, loop_.nodes, most_nodes, "nodes");
  }

  template <typename Table>
  void rows(const JsonValue& list, std::vector<Table>& all, const RepeatedRows& rows,
            Table (GraphReader::*read)(const JsonValue&)) {
    std::int32_t written = 0;
    const std::int32_t end = rows.first + rows.count;
    for (auto row = list.begin(); !(row == list.end()); ++row, ++written) {
      all.push_back((this->*read)(*row));
      if (loop_.times == 0 || written + 1 != end || rows.count == 0) continue;
      const std::vector<Table> in_loop(all.end() - rows.count, all.end());
      all.resize(all.size() - in_loop.size());
      for (int k = 0; k < loop_.times; ++k) {
        for (const Table& row_in_loop : in_loop) all.push_back(repeated(row_in_loop, loop_, k));
        count_arguments(in_loop, list);
      }
    }
  }

  void take_storages(std::vector<StorageRow> rows) {
    graph_.storages.reserve(rows.size());
    for (StorageRow& row : rows) {
      graph_.script_holds.set(StorageId::of(graph_.storages.size()), row.hold);
      graph_.storages.push_back(std::move(row));
    }
  }

  void count_arguments(const std::vector<StorageRow>&, const JsonValue&) {}
  void count_arguments(const std::vector<KernelNode>& nodes, const JsonValue& list) {
    for (const KernelNode& node : nodes) count_arguments(node, list);
  }
  void count_arguments(const KernelNode& node, const JsonValue& at) {
    arguments_ += static_cast<std::int64_t>(node.reads.size() + node.writes.size() +
                                            node.temporaries.size() + node.holds.size());
    if (arguments_ > most_arguments) {
      refuse(at, fmt::format("the step's nodes have over {} arguments", most_arguments));
    }
  }

  OperatorId origin(const JsonValue& value) const {
    return OperatorId{static_cast<std::int32_t>(integer_of(
        value, "an origin's number", -1, static_cast<std::int64_t>(tables_.origins.size()) - 1))};
  }
  StorageId storage_id(const JsonValue& value, std::int64_t least = 0) const {
    return StorageId{static_cast<std::int32_t>(
        integer_of(value, "a storage's number", least, std::int64_t{storage_count_} - 1))};
  }
  NodeId node_id(const JsonValue& value, std::int64_t least = 0) const {
    return NodeId{static_cast<std::int32_t>(
        integer_of(value, "a node's number", least, std::int64_t{node_count_} - 1))};
  }

  StorageRow storage(const JsonValue& value) {
    FieldRow row(value, "a storage");
    StorageRow storage;
    storage.name = name_of(row.next("name"), "a storage's name");
    storage.storage_class = choice_of(row.next("class"), "a storage's class", storage_classes);
    storage.persistence =
        choice_of(row.next("persistence"), "a storage's persistence", persistences);
    storage.bytes = affine_of(row.next("bytes"), "a storage's bytes");
    if (const auto number = row.next_if_any()) storage.op = origin(*number);
    if (const auto parameter = row.next_if_any()) {
      storage.parameter = ParameterId{
          static_cast<std::int32_t>(integer_of(*parameter, "a parameter's number", -1,
                                               static_cast<std::int64_t>(tables_.parameters) - 1))};
    }
    if (const auto flags = row.next_if_any()) read_flags(*flags, storage);
    row.finish();
    return storage;
  }

  void read_flags(const JsonValue& value, StorageRow& storage) const {
    Members members(value, "a storage's flags");
    const auto flag = [&](std::string_view name, bool& target) {
      if (const auto found = members.find(name)) target = boolean_of(*found, name);
    };
    const auto node = [&](std::string_view name, NodeId& target) {
      if (const auto found = members.find(name)) target = node_id(*found);
    };
    flag("carries_over", storage.carries_over);
    flag("before_first_step", storage.before_first_step);
    flag("held_to_end", storage.hold.held_to_end);
    node("loaded_before", storage.hold.loaded_before);
    node("first_made_by", storage.hold.first_made_by);
    node("replaced_after", storage.hold.replaced_after);
    members.finish();
  }

  KernelNode node(const JsonValue& value) {
    FieldRow row(value, "a node");
    KernelNode node;
    node.name = name_of(row.next("name"), "a node's name");
    const JsonValue kernel = row.next("kernel");
    const std::string kernel_name = name_of(kernel, "a node's kernel");
    node.kernel = find_kernel(kernel_name).value_or(Kernel::foreign);
    if (node.kernel == Kernel::foreign) node.foreign_kernel = shared_name(kernel_name);
    node.phase = choice_of(row.next("phase"), "a node's phase", phases);
    node.op = origin(row.next("origin"));
    node.micro_batch = static_cast<int>(integer_of(row.next("micro_batch"), "a node's micro-batch",
                                                   0, graph_.settings.micro_batches - 1));
    node.attributes = tables_.attributes[index_of(
        row.next("attributes"), "the number of a node's attributes", tables_.attributes.size())];
    node.reads = arguments(row.next("reads"));
    node.writes = arguments(row.next("writes"));
    if (const auto ids = row.next_if_any()) node.temporaries = storage_ids(*ids);
    if (const auto ids = row.next_if_any()) node.holds = storage_ids(*ids);
    if (const auto flops = row.next_if_any()) node.flops = affine_of(*flops, "a node's FLOPs");
    if (const auto number = row.next_if_any()) {
      node.convolution = static_cast<int>(
          index_of(*number, "the number of a node's convolution", tables_.convolutions.size()));
    }
    row.finish();
    count_arguments(node, value);
    return node;
  }

  Shared<std::string> shared_name(const std::string& name) {
    return foreign_.try_emplace(name, name).first->second;
  }

  std::vector<StorageId> storage_ids(const JsonValue& list) const {
    expect(list, Kind::array, "a list of storages");
    std::vector<StorageId> ids;
    ids.reserve(list.size());
    for (auto id = list.begin(); !(id == list.end()); ++id) ids.push_back(storage_id(*id));
    return ids;
  }

  std::vector<TensorView> arguments(const JsonValue& list) const {
    std::vector<TensorView> views = this->views(list);
    if (std::ranges::any_of(views, [](const TensorView& v) { return !v.storage.valid(); })) {
      refuse(list, "every argument of a node has a storage");
    }
    return views;
  }

  std::vector<TensorView> views(const JsonValue& list) const {
    expect(list, Kind::array, "a list of tensors");
    if (list.size() % 2 != 0) {
      refuse(list, "a list of tensors has two numbers for each: its storage and its layout");
    }
    std::vector<TensorView> views;
    views.reserve(list.size() / 2);
    for (auto at = list.begin(); !(at == list.end()); ++at) {
      const StorageId storage = storage_id(*at, -1);
      ++at;
      if (storage.valid()) {
        views.push_back(
            tables_.layouts[index_of(*at, "a layout's number", tables_.layouts.size())]);
        views.back().storage = storage;
      } else {
        (void)integer_of(*at, "the layout of no tensor", -1, -1);
        views.emplace_back();
      }
    }
    return views;
  }

  void read_exceptions(const JsonValue& value, std::vector<StorageRow>& storage_rows) {
    Members members(value, "'exceptions'");
    exceptions(members.required("storages"), storage_rows, loop_.storages, &GraphReader::storage);
    exceptions(members.required("nodes"), graph_.nodes, loop_.nodes, &GraphReader::node);
    members.finish();
  }

  template <typename Table>
  void exceptions(const JsonValue& list, std::vector<Table>& all, const RepeatedRows& rows,
                  Table (GraphReader::*read)(const JsonValue&)) {
    expect(list, Kind::array, "a list of exceptions");
    for (auto at = list.begin(); !(at == list.end()); ++at) {
      FieldRow row(*at, "an exception");
      const std::int64_t repetition =
          integer_of(row.next("repetition"), "an exception's repetition", 0, loop_.times - 1);
      const std::int64_t index =
          integer_of(row.next("row"), "an exception's row", 0, rows.count - 1);
      all[static_cast<std::size_t>(rows.first + repetition * rows.count + index)] =
          (this->*read)(row.next("the row itself"));
      row.finish();
    }
  }

  // The file has equal calls once; in the graph each node has its own.
  void number_convolutions() {
    for (KernelNode& node : graph_.nodes) {
      if (node.convolution < 0) continue;
      graph_.convolutions.push_back(
          tables_.convolutions[static_cast<std::size_t>(node.convolution)]);
      node.convolution = static_cast<int>(graph_.convolutions.size()) - 1;
    }
  }

  void read_saved(const JsonValue& list) {
    expect(list, Kind::array, "'saved'");
    for (auto at = list.begin(); !(at == list.end()); ++at) {
      FieldRow row(*at, "a saved tensor");
      SavedTensor saved;
      saved.op = origin(row.next("origin"));
      saved.storage = storage_id(row.next("storage"));
      saved.role = text_of(row.next("role"), "a saved tensor's role");
      if (const auto layout = row.next_if_any()) {
        saved.call = saved_call(*layout, saved.storage, row);
      }
      row.finish();
      graph_.saved.push_back(std::move(saved));
    }
  }

  SavedCall saved_call(const JsonValue& layout, StorageId storage, FieldRow& row) {
    SavedCall call;
    call.view = tables_.layouts[index_of(layout, "a layout's number", tables_.layouts.size())];
    call.view.storage = storage;
    call.key = text_of(row.next("key"), "a saved tensor's key");
    call.packed_after = node_id(row.next("packed_after"), -1);
    call.unpacked_before = node_id(row.next("unpacked_before"), -1);
    if (const auto held = row.next_if_any()) call.held_until = node_id(*held, -1);
    return call;
  }

  Members members_;
  const StepTables& tables_;
  StepGraph graph_;
  MicroBatchLoop loop_;  // times 0: there is none
  std::int32_t storage_count_ = 0, node_count_ = 0;
  std::int64_t arguments_ = 0;
  std::map<std::string, Shared<std::string>> foreign_;
};

}  // namespace

StepGraph read_graph(const JsonValue& object, std::string_view what, const StepTables& tables,
                     const LoweringSettings& settings) {
  return GraphReader(object, what, tables, settings).run();
}

}  // namespace stowage
