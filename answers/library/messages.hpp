// From what the rooms below say to the library's messages.
#pragma once

#include <stowage/message.hpp>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

[[nodiscard]] Messages messages_of(const Diagnostics& diagnostics);

/// As an answer that is refused.
[[nodiscard]] tl::unexpected<Messages> refused(const Diagnostics& diagnostics);

}  // namespace stowage
