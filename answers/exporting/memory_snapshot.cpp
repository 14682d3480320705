#include "answers/exporting/memory_snapshot.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

#include "answers/exporting/pickle_writer.hpp"

namespace stowage {

namespace {

/// Where a device's addresses begin: of a block at 0 readers might say that it is nowhere.
constexpr std::int64_t first_address = std::int64_t{0x7f} << 40;

struct SourceLine {
  std::string file;
  std::int64_t line = 0;
};

/// "resnet18.yaml" and 12 of "resnet18.yaml:12:9"; a place without numbers is a file.
SourceLine source_line(std::string_view place) {
  const std::size_t column = place.rfind(':');
  const std::size_t line = column == std::string_view::npos ? column : place.rfind(':', column - 1);
  const auto number = [&](std::size_t at) {
    std::int64_t value = 0;
    const char* const begin = place.data() + at + 1;
    const auto [end, error] = std::from_chars(begin, place.data() + place.size(), value);
    return error == std::errc() && end != begin ? value : std::int64_t{-1};
  };
  if (line != std::string_view::npos && number(line) >= 0) {
    return {std::string(place.substr(0, line)), number(line)};
  }
  if (column != std::string_view::npos && number(column) >= 0) {
    return {std::string(place.substr(0, column)), number(column)};
  }
  return {std::string(place), 0};
}

std::string_view action_of(AllocatorEvent::Kind kind) {
  switch (kind) {
    case AllocatorEvent::Kind::alloc:
      return "alloc";
    case AllocatorEvent::Kind::free:
      return "free_requested";
    case AllocatorEvent::Kind::segment_alloc:
      return "segment_alloc";
    case AllocatorEvent::Kind::segment_free:
      return "segment_free";
    case AllocatorEvent::Kind::segment_map:
      return "segment_map";
    case AllocatorEvent::Kind::segment_unmap:
      break;
  }
  return "segment_unmap";
}

std::string_view state_of(BlockState state) {
  switch (state) {
    case BlockState::allocated:
      return "active_allocated";
    case BlockState::awaiting_free:
      return "active_pending_free";
    case BlockState::inactive:
      break;
  }
  return "inactive";
}

class SnapshotWriter {
 public:
  SnapshotWriter(const AllocatorTrace& trace, const StepGraph& graph,
                 const std::vector<RuntimeBuffer>& buffers)
      : trace_(trace), graph_(graph), buffers_(buffers) {
    for (const AllocatorEvent& event : trace.events) {
      if (event.kind == AllocatorEvent::Kind::alloc) made_by_[event.address] = &event;
    }
  }

  std::string run() && {
    out_.begin_dict();
    out_.put("segments");
    put_list(trace_.segments, [&](const SegmentSnapshot& segment) { put_segment(segment); });
    out_.put("device_traces");
    out_.begin_list();
    put_list(trace_.events, [&](const AllocatorEvent& event) {
      put_event(event, action_of(event.kind));
      if (event.kind == AllocatorEvent::Kind::free) put_event(event, "free_completed");
    });
    out_.end_list();
    out_.end_dict();
    return std::move(out_).finish();
  }

 private:
  template <typename Item, typename Put>
  void put_list(const std::vector<Item>& items, Put put) {
    constexpr std::size_t most_in_a_batch = 500;
    out_.begin_list();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0 && i % most_in_a_batch == 0) out_.end_batch();
      put(items[i]);
    }
    out_.end_list();
  }

  void put_event(const AllocatorEvent& event, std::string_view action) {
    out_.begin_dict();
    out_.put("action", action);
    out_.put("addr", first_address + event.address);
    out_.put("size", event.size.count());
    out_.put("stream", std::int64_t{event.stream.value});
    out_.put("frames");
    put_frames(event);
    out_.end_dict();
  }

  void put_segment(const SegmentSnapshot& segment) {
    Bytes allocated, active, requested;
    for (const BlockSnapshot& block : segment.blocks) {
      if (block.state == BlockState::inactive) continue;
      active += block.size;
      if (block.state == BlockState::allocated) allocated += block.size;
      requested += block.requested;
    }
    out_.begin_dict();
    out_.put("device", std::int64_t{0});
    out_.put("address", first_address + segment.address);
    out_.put("total_size", segment.reserved.count());
    out_.put("allocated_size", allocated.count());
    out_.put("active_size", active.count());
    out_.put("requested_size", requested.count());
    out_.put("stream", std::int64_t{segment.stream.value});
    out_.put("segment_type",
             std::string_view(segment.pool == BlockPool::small ? "small" : "large"));
    out_.put("segment_pool_id");
    out_.begin_tuple();
    out_.put(std::int64_t{0});
    out_.put(std::int64_t{0});
    out_.end_tuple();
    out_.put("is_expandable");
    out_.put_truth(segment.expandable);
    out_.put("frames");
    out_.begin_list();
    out_.end_list();
    out_.put("blocks");
    put_list(segment.blocks, [&](const BlockSnapshot& block) { put_block(block); });
    out_.end_dict();
  }

  void put_block(const BlockSnapshot& block) {
    out_.begin_dict();
    out_.put("address", first_address + block.address);
    out_.put("size", block.size.count());
    out_.put("requested_size", block.requested.count());
    out_.put("state", state_of(block.state));
    out_.put("frames");
    const auto made_by = made_by_.find(block.address);
    if (block.state == BlockState::inactive || made_by == made_by_.end()) {
      out_.begin_list();
      out_.end_list();
    } else {
      put_frames(*made_by->second);
    }
    out_.end_dict();
  }

  void put_frame(std::string_view name, std::string_view file, std::int64_t line) {
    out_.begin_dict();
    out_.put("name", name);
    out_.put("filename", file);
    out_.put("line", line);
    out_.end_dict();
  }

  /// Equal frames are written once.
  void put_frames(const AllocatorEvent& event) {
    const bool is_block =
        event.kind == AllocatorEvent::Kind::alloc || event.kind == AllocatorEvent::Kind::free;
    const std::string key =
        fmt::format("{} {} {}", is_block ? event.entry : -2, event.node.value, event.step > 0);
    if (out_.put_named(key)) return;
    out_.begin_list();
    if (is_block) put_tensor(event);
    if (event.node.valid()) {
      const KernelNode& node = graph_.node(event.node);
      put_frame(node.name, kernel_name(node), event.node.value);
      put_layer(node.op);
    } else {
      if (event.entry >= 0) put_layer(entry_of(event).op);
      put_frame("the model is loaded", "stowage", 0);
    }
    out_.end_list();
    out_.give_name(key);
  }

  [[nodiscard]] const MemoryEntry& entry_of(const AllocatorEvent& event) const {
    return trace_.entries[static_cast<std::size_t>(event.entry)];
  }

  void put_tensor(const AllocatorEvent& event) {
    if (event.entry < 0) {
      put_frame("workspace", to_string(StorageClass::workspace), 0);
      return;
    }
    const MemoryEntry& entry = entry_of(event);
    const std::string& name = entry.storage.valid()
                                  ? graph_.storage(entry.storage).name
                                  : buffers_[static_cast<std::size_t>(entry.buffer)].name;
    put_frame(name, to_string(entry.storage_class), 0);
  }

  void put_layer(OperatorId op) {
    if (!op.valid()) return;
    const Origin& origin = graph_.origins[op.index()];
    const SourceLine source = source_line(origin.place);
    put_frame(origin.layer, source.file, source.line);
  }

  const AllocatorTrace& trace_;
  const StepGraph& graph_;
  const std::vector<RuntimeBuffer>& buffers_;
  std::map<std::int64_t, const AllocatorEvent*> made_by_;  // by address, the last
  PickleWriter out_;
};

}  // namespace

std::string memory_snapshot(const AllocatorTrace& trace, const StepGraph& graph,
                            const std::vector<RuntimeBuffer>& buffers) {
  return SnapshotWriter(trace, graph, buffers).run();
}

}  // namespace stowage
