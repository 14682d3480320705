// The host kernels of the libraries: products and recurrent layers, a function each. The others are
// our own (gpu_probe/kernels).
//
// In every floating-point format: float32 and float64 as the libraries compute them, those of 16
// bits in float32, rounded once (single_floats.hpp). Row-major, contiguous. Arguments may not
// overlap except where a signature names one on both sides, or says that a result may lie over an
// argument (dx over dy): then both are the same elements, and a kernel reads whatever it needs of
// one before it writes it. The number of a call's arguments and their types are checked against the
// signature before a function is called; it checks shapes and attributes itself and throws
// KernelError where they do not suit. Sums are taken in a fixed order, so that the same inputs give
// the same bits at any address.
#pragma once

#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::host {

using namespace kernels;

using KernelFunction = void (*)(const KernelCall&);

// One a row of step/kernel_list.hpp. A row without a function fails when the program is linked.
#define STOWAGE_DECLARATION(name, ...) void name(const KernelCall& call);
#define STOWAGE_NO_DECLARATION(...)
STOWAGE_KERNELS(STOWAGE_NO_DECLARATION, STOWAGE_DECLARATION, STOWAGE_NO_DECLARATION)
#undef STOWAGE_DECLARATION
#undef STOWAGE_NO_DECLARATION

}  // namespace stowage::host
