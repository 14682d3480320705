// A plan for PyTorch: read; what is read is written back and read again as the same, and says what
// it moves.
#include "planner/pytorch/pytorch_plan_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t most_text = std::size_t{256} << 10;
  if (size > most_text) return -1;
  const auto plan = read_pytorch_plan(fuzz::source_of(data, size));
  if (!plan) {
    fuzz::require_shown(plan.error());
    return 0;
  }
  fuzz::require(plan->offloaded_bytes() >= Bytes());
  fuzz::require(allocator_variable(*plan).ends_with("ALLOC_CONF"));
  // Throws where the text is not read back as the same plan.
  const std::string written = write_pytorch_plan(*plan);
  const auto again =
      read_pytorch_plan(std::make_shared<const SourceText>(SourceText{"written", written}));
  fuzz::require(again.has_value() && write_pytorch_plan(*again) == written);
  return 0;
}
