#include "answers/subject/fsdp_text.hpp"

#include <fmt/format.h>

namespace stowage {

std::string fsdp_text(const FullyShard& fsdp) {
  if (!fsdp.on) return "no FSDP";
  std::string text = "FSDP";
  if (!fsdp.by_block) text += ", one group";
  if (!fsdp.reshards_after_forward) text += ", not resharded after forward";
  if (fsdp.reshards_among > 0) {
    text += fmt::format(", resharded among {} after forward", fsdp.reshards_among);
  }
  if (fsdp.forward_prefetch > 0) {
    text += fmt::format(", {} prefetched in forward", fsdp.forward_prefetch);
  }
  if (fsdp.backward_prefetch > 0) {
    text += fmt::format(", {} prefetched in backward", fsdp.backward_prefetch);
  }
  if (fsdp.reduce_type) text += fmt::format(", reduced in {}", to_string(*fsdp.reduce_type));
  if (fsdp.output_type) text += fmt::format(", output in {}", to_string(*fsdp.output_type));
  return text;
}

}  // namespace stowage
