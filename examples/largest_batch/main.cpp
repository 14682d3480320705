// largest_batch MODEL GPU...: the batch to use on each card, with workspaces by rule (no cuDNN).
#include <iostream>
#include <stowage/stowage.hpp>

int main(int argc, char** argv) {
  if (argc < 3) return std::cerr << "usage: largest_batch MODEL GPU...\n", 2;
  bool all_fit = true;
  for (int i = 2; i < argc; ++i) {
    const auto answer = stowage::ask(stowage::LargestBatchQuestion{
        .step = {.model = {.source = argv[1]}, .ask_cudnn = false}, .gpu = {.name = argv[i]}});
    if (!answer) return std::cerr << stowage::shown(answer.error()), 2;
    std::cerr << stowage::shown(answer->notes);
    std::cout << argv[i] << ": use " << answer->recommended << " of at most " << answer->largest
              << ", " << answer->recommended_device_bytes << " of " << answer->available_bytes
              << " bytes\n";
    all_fit = all_fit && answer->largest > 0;
  }
  return all_fit ? 0 : 1;
}
