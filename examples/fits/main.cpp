// fits MODEL GPU BATCH: does a training step fit, and what takes the room? Exit code: 0 yes, 1 no.
#include <cstdlib>
#include <iostream>
#include <stowage/stowage.hpp>

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: fits MODEL GPU BATCH\n", 2;
  const auto answer = stowage::ask(stowage::FitQuestion{.step = {.model = {.source = argv[1]}},
                                                        .gpu = {.name = argv[2]},
                                                        .batch = std::atoll(argv[3])});
  if (!answer) return std::cerr << stowage::shown(answer.error()), 2;
  std::cerr << stowage::shown(answer->notes);
  for (const stowage::MemoryRow& row : answer->peak.classes) {
    std::cout << row.bytes << " bytes of " << row.name << '\n';
  }
  for (const stowage::MemoryRow& row : answer->peak.runtime) {
    std::cout << row.bytes << " bytes: " << row.name << '\n';
  }
  std::cout << answer->peak.device_bytes << " of " << answer->peak.available_bytes << " bytes on "
            << answer->peak.device << ": " << (answer->fits ? "fits" : "does not fit") << '\n';
  if (answer->largest_batch) std::cout << "largest batch: " << *answer->largest_batch << '\n';
  return answer->fits ? 0 : 1;
}
