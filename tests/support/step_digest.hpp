// A number for all that a step graph says, so that a test can hold it to what it was.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage::testing {

/// FNV-1a over the fields, each list after its length.
class StepDigest {
 public:
  explicit StepDigest(const StepGraph& graph) {
    add(graph.model);
    add(graph.settings.micro_batches);
    add(graph.host_state_bytes);
    add(graph.storages.size());
    for (std::size_t i = 0; i < graph.storages.size(); ++i) {
      add(graph.storages[i]);
      add(graph.script_holds.of(StorageId::of(i)));
    }
    add_all(graph.nodes);
    add_all(graph.convolutions);
    add_all(graph.saved);
    add_all(graph.inputs);
    add(graph.output);
    add_all(graph.losses);
    add_all(graph.gradients);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211u; }
  template <typename T>
  std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>> add(T number) {
    for (auto left = static_cast<std::uint64_t>(number), i = std::uint64_t{0}; i < 8; ++i) {
      add_byte(static_cast<unsigned char>(left >> (8 * i)));
    }
  }
  void add(const std::string& text) {
    add(text.size());
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
  }
  template <typename Tag>
  void add(Id<Tag> id) {
    add(id.value);
  }
  void add(const Affine& size) {
    add(size.constant);
    add(size.slope);
  }
  void add(const Shape& shape) {
    add(shape.size());
    for (const Affine& size : shape) add(size);
  }
  template <typename T>
  void add_all(const std::vector<T>& all) {
    add(all.size());
    for (const T& one : all) add(one);
  }
  void add(const TensorView& view) {
    add(view.storage);
    add(view.type);
    add(view.is_view);
    add(view.shape);
    add(view.strides);
    add(view.offset);
  }
  void add(const TensorType& type) {
    add(type.shape);
    add(type.type);
  }
  void add(const Storage& storage) {
    add(storage.name);
    add(storage.storage_class);
    add(storage.persistence);
    add(storage.bytes);
    add(storage.op);
    add(storage.parameter);
    add(storage.carries_over);
    add(storage.before_first_step);
  }
  void add(const ScriptHold& hold) {
    add(hold.held_to_end);
    add(hold.loaded_before);
    add(hold.first_made_by);
    add(hold.replaced_after);
  }
  void add(const KernelNode& node) {
    add(node.name);
    add(std::string(to_string(node.kernel)));
    add(node.phase);
    add(node.op);
    add(node.micro_batch);
    add_all(node.reads);
    add_all(node.writes);
    add_all(node.temporaries);
    add_all(node.holds);
    add(node.attributes.entries().size());
    for (const auto& [name, value] : node.attributes.entries()) {
      add(name);
      add(to_string(value));
    }
    add(node.flops);
    add(node.convolution);
  }
  void add(const ConvolutionCall& call) {
    add(call.direction);
    add(call.x);
    add(call.w);
    add(call.y);
    add(call.layout);
    add_all(call.window->stride);
    add_all(call.window->padding);
    add_all(call.window->dilation);
    add(call.window->groups);
  }
  void add(const SavedTensor& saved) {
    add(saved.op);
    add(saved.storage);
    add(saved.role);
  }

  std::uint64_t value_ = 14695981039346656037u;
};

}  // namespace stowage::testing
