// The host kernels of the libraries: products and recurrent layers, a function each. The others are
// our own (gpu_probe/kernels).
//
// float32 only (indices int64, masks uint8 or boolean; step/kernel_table.hpp says what runs in
// other types), row-major, contiguous. Arguments may not overlap except where a signature names one
// on both sides, or says that a result may lie over an argument (dx over dy): then both are the
// same elements, and a kernel reads whatever it needs of one before it writes it. The number of a
// call's arguments and their types are checked against the signature before a function is called;
// it checks shapes and attributes itself and throws KernelError where they do not suit. Sums over
// many elements are taken in double, in a fixed order, so that the same inputs give the same bits
// at any address.
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
