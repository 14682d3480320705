// Planes: a tensor as [images, channels, area], and how a group goes over one channel of it.
#pragma once

#include "gpu_probe/kernels/bodies/group.hpp"

namespace stowage::body {

struct Planes {
  Index images, channels, area;

  [[nodiscard]] STOWAGE_BODY Index of_channel() const { return images * area; }
};

/// Calls visit(i) for each element of the channel, distributed over the group's threads.
template <class Visit>
STOWAGE_BODY void each_of_channel(const Group& group, const Planes& p, Index channel, Visit visit) {
  if (p.area == 0) return;
  // Goes on in steps of the group's size, without dividing for each element.
  const Index images_a_step = group.size() / p.area, area_a_step = group.size() % p.area;
  Index image = group.rank() / p.area, offset = group.rank() % p.area;
  while (image < p.images) {
    visit((image * p.channels + channel) * p.area + offset);
    image += images_a_step;
    offset += area_a_step;
    if (offset >= p.area) {
      offset -= p.area;
      ++image;
    }
  }
}

}  // namespace stowage::body
