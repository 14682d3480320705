// The host kernels that run on libraries: products, convolutions and recurrent layers, one function
// each. All other kernels are our own (gpu_probe/kernels).
//
// They take every floating-point format: float32 and float64 as the libraries compute them, 16-bit
// formats in float32, rounded once (single_floats.hpp). Tensors are row-major and contiguous.
// Arguments may not overlap, except where a signature names one on both sides or says that a result
// may lie over an argument (dx over dy); then both are the same elements, and a kernel reads what
// it needs of an element before it writes it. The number of arguments and their types are checked
// against the signature before a function is called. The function checks shapes and attributes
// itself, and throws KernelError where they do not fit. Sums are taken in a fixed order, so that
// the same inputs give the same bits at any address.
#pragma once

#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::host {

using namespace kernels;

using KernelFunction = void (*)(const KernelCall&);

// One function for each LIBRARY row of step/kernel_list.hpp. Without it the program does not link.
#define STOWAGE_DECLARATION(name, ...) void name(const KernelCall& call);
#define STOWAGE_NO_DECLARATION(...)
STOWAGE_KERNELS(STOWAGE_NO_DECLARATION, STOWAGE_DECLARATION, STOWAGE_NO_DECLARATION)
#undef STOWAGE_DECLARATION
#undef STOWAGE_NO_DECLARATION

}  // namespace stowage::host
