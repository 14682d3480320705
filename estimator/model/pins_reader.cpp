// `pins:`: what a description keeps on the CPU or on the GPU.
#include <fmt/format.h>

#include "estimator/model/description_reader.hpp"

namespace stowage {

std::vector<DevicePin> read_pins(const YamlNode& node, Mistakes& mistakes) {
  std::vector<DevicePin> pins;
  if (node.entry_count() > most_pins) {
    mistakes.error(node.mark,
                   fmt::format("{} pins are more than the {} that a description may have",
                               node.entry_count(), most_pins));
    return pins;
  }
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    const YamlNode& key = node.key(i);
    const YamlNode& side = node.value(i);
    if (!key.is_scalar() || !side.is_scalar()) {
      mistakes.error(key.mark, "'pins' holds entries such as 'encoder.*: cpu'");
      continue;
    }
    auto pin = parse_device_pin(key.text, side.text, span_of(mistakes.source(), key.mark));
    if (pin) {
      pins.push_back(*std::move(pin));
    } else {
      for (Diagnostic& mistake : pin.error()) mistakes.add(std::move(mistake));
    }
  }
  return pins;
}

}  // namespace stowage
