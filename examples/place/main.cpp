// place MODEL MIB BATCH FILE: a plan for a card of so many MiB, written to FILE and recounted.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stowage/stowage.hpp>

int main(int argc, char** argv) {
  if (argc != 5) return std::cerr << "usage: place MODEL MIB BATCH FILE\n", 2;
  const auto answer =
      stowage::ask(stowage::PlacementQuestion{.step = {.model = {.source = argv[1]}},
                                              .gpu = {.memory_bytes = std::atoll(argv[2]) << 20},
                                              .batch = std::atoll(argv[3])});
  if (!answer) return std::cerr << stowage::shown(answer.error()), 2;
  std::cerr << stowage::shown(answer->notes);
  if (!answer->chosen) return std::cout << "no plan: " << answer->why_none << '\n', 1;
  const stowage::PlacementPlan& plan = answer->plans[*answer->chosen];
  std::cout << plan.name << ": " << plan.step_seconds << " s, " << plan.arena_bytes
            << " bytes on the GPU, " << plan.to_gpu_bytes + plan.from_gpu_bytes
            << " bytes over PCIe\n  " << plan.in_words << '\n';
  if (!(std::ofstream(argv[4]) << answer->file)) return std::cerr << "cannot write\n", 2;
  const auto proof = stowage::recount_plan(argv[4]);
  if (!proof) return std::cerr << stowage::shown(proof.error()), 2;
  std::cout << (proof->valid ? "valid" : "not valid") << ", " << proof->checks.size()
            << " checks\n";
  return proof->valid ? 0 : 1;
}
