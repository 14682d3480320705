// What a program sets of the pretended card.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

void card_begin(std::size_t total, std::size_t in_use);  // before PyTorch first asks
void card_complete(cudaStream_t stream);                 // all that is on the stream by now is done
std::size_t card_free();
