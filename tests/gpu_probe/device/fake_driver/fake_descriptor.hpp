// A descriptor of the pretended cuDNN: it keeps the values of its attributes. Descriptors among
// these stay alive, as in cuDNN.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "gpu_probe/cudnn/declarations.hpp"

struct Descriptor {
  stowage::cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<int, std::vector<std::int64_t>> integers;  ///< and booleans and enumerators
  std::map<int, std::vector<void*>> pointers;
  std::map<int, std::vector<std::shared_ptr<Descriptor>>> descriptors;
  std::int64_t engine = -1;
};

/// The first descriptor of an attribute; null: there is none.
inline const Descriptor* inner(const Descriptor& of, int name) {
  const auto found = of.descriptors.find(name);
  return found == of.descriptors.end() || found->second.empty() ? nullptr
                                                                : found->second.front().get();
}

/// Calls visit(place) for each position in a box.
template <class Visit>
void each_place(const std::vector<std::int64_t>& box, Visit visit) {
  std::vector<std::int64_t> place(box.size(), 0);
  while (true) {
    visit(place);
    std::size_t axis = box.size();
    while (axis > 0 && ++place[axis - 1] == box[axis - 1]) place[--axis] = 0;
    if (axis == 0) return;
  }
}
