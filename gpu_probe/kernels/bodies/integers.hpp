// Integers: whole numbers in any integer format: classes, rows of a table, positions of maxima.
#pragma once

#include "gpu_probe/kernels/bodies/device.hpp"

namespace stowage::body {

enum class IntegerFormat : Byte { int64, int32, uint8, boolean };

/// The format is looked up for each element. Without an address there are none.
struct Integers {
  void* data;
  IntegerFormat format;

  [[nodiscard]] STOWAGE_BODY bool is_there() const { return data != nullptr; }

  [[nodiscard]] STOWAGE_BODY Index at(Index i) const {
    switch (format) {
      case IntegerFormat::int64:
        return static_cast<const Index*>(data)[i];
      case IntegerFormat::int32:
        return static_cast<const Int32*>(data)[i];
      case IntegerFormat::uint8:
        return static_cast<const Byte*>(data)[i];
      case IntegerFormat::boolean:
        return static_cast<const Byte*>(data)[i] != 0 ? 1 : 0;
    }
    return 0;
  }

  /// Sets element i. A value that does not fit wraps round; a boolean is true unless the value is
  /// 0.
  STOWAGE_BODY void set(Index i, Index value) const {
    switch (format) {
      case IntegerFormat::int64:
        static_cast<Index*>(data)[i] = value;
        return;
      case IntegerFormat::int32:
        static_cast<Int32*>(data)[i] = static_cast<Int32>(value);
        return;
      case IntegerFormat::uint8:
        static_cast<Byte*>(data)[i] = static_cast<Byte>(value);
        return;
      case IntegerFormat::boolean:
        static_cast<Byte*>(data)[i] = value != 0 ? 1 : 0;
        return;
    }
  }
};

}  // namespace stowage::body
