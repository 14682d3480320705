#include "answers/exporting/perfetto_trace.hpp"

#include <cmath>
#include <cstdint>

#include "answers/exporting/protobuf_message.hpp"

namespace stowage {

namespace {

// Numbers of the fields and enumerators in protos/perfetto/trace of Perfetto 0.59.1.
namespace trace_field {
constexpr int packet = 1;
}
namespace packet_field {
constexpr int timestamp = 8, sequence = 10, track_event = 11, track_descriptor = 60;
}
namespace descriptor_field {
constexpr int uuid = 1, name = 2, process = 3, parent = 5, counter = 8, child_ordering = 11,
              sibling_order_rank = 12;
constexpr int explicit_order = 3;
}  // namespace descriptor_field
namespace process_field {
constexpr int pid = 1, name = 6;
}
namespace counter_field {
constexpr int unit = 3;
constexpr int size_in_bytes = 3;
}  // namespace counter_field
namespace event_field {
constexpr int annotation = 4, type = 9, track = 11, category = 22, name = 23, counter_value = 30;
constexpr int slice_begin = 1, slice_end = 2, counter = 4;
}  // namespace event_field
namespace annotation_field {
constexpr int number = 4, text = 6, name = 10;
}

constexpr std::int64_t process_track = 1;

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

class TraceWriter {
 public:
  std::string run(const StepTrace& trace) {
    describe_process(trace.title);
    std::int64_t track = process_track;
    for (const TraceTrack& of : trace.tracks) put_track(of, ++track);
    for (const TraceCounter& of : trace.counters) put_counter(of, ++track);
    return trace_.bytes();
  }

 private:
  void put_packet(ProtobufMessage packet) {
    packet.add(packet_field::sequence, 1);
    trace_.add(trace_field::packet, packet);
  }

  void put_descriptor(const ProtobufMessage& descriptor) {
    ProtobufMessage packet;
    packet.add(packet_field::track_descriptor, descriptor);
    put_packet(packet);
  }

  void put_event(std::int64_t nanoseconds, const ProtobufMessage& event) {
    ProtobufMessage packet;
    packet.add(packet_field::timestamp, nanoseconds);
    packet.add(packet_field::track_event, event);
    put_packet(packet);
  }

  void describe_process(const std::string& title) {
    ProtobufMessage process, descriptor;
    process.add(process_field::pid, 1);
    process.add(process_field::name, title);
    descriptor.add(descriptor_field::uuid, process_track);
    descriptor.add(descriptor_field::process, process);
    descriptor.add(descriptor_field::child_ordering, descriptor_field::explicit_order);
    put_descriptor(descriptor);
  }

  static ProtobufMessage child(std::int64_t track, const std::string& name) {
    ProtobufMessage descriptor;
    descriptor.add(descriptor_field::uuid, track);
    descriptor.add(descriptor_field::parent, process_track);
    descriptor.add(descriptor_field::name, name);
    descriptor.add(descriptor_field::sibling_order_rank, track);
    return descriptor;
  }

  void put_track(const TraceTrack& track, std::int64_t id) {
    put_descriptor(child(id, track.name));
    for (const TraceSlice& slice : track.slices) {
      ProtobufMessage begin, end;
      begin.add(event_field::type, event_field::slice_begin);
      begin.add(event_field::track, id);
      begin.add(event_field::name, slice.name);
      begin.add(event_field::category, slice.category);
      for (const auto& [name, value] : slice.details) {
        ProtobufMessage annotation;
        annotation.add(annotation_field::name, name);
        if (const auto* text = std::get_if<std::string>(&value)) {
          annotation.add(annotation_field::text, *text);
        } else {
          annotation.add(annotation_field::number, std::get<std::int64_t>(value));
        }
        begin.add(event_field::annotation, annotation);
      }
      end.add(event_field::type, event_field::slice_end);
      end.add(event_field::track, id);
      put_event(nanoseconds(slice.begin), begin);
      put_event(nanoseconds(slice.end), end);
    }
  }

  void put_counter(const TraceCounter& counter, std::int64_t id) {
    ProtobufMessage unit, descriptor = child(id, counter.name);
    unit.add(counter_field::unit, counter_field::size_in_bytes);
    descriptor.add(descriptor_field::counter, unit);
    put_descriptor(descriptor);
    for (const auto& [seconds, bytes] : counter.samples) {
      ProtobufMessage event;
      event.add(event_field::type, event_field::counter);
      event.add(event_field::track, id);
      event.add(event_field::counter_value, bytes.count());
      put_event(nanoseconds(seconds), event);
    }
  }

  ProtobufMessage trace_;
};

}  // namespace

std::string perfetto_trace(const StepTrace& trace) { return TraceWriter().run(trace); }

}  // namespace stowage
