// A file of weights, as safetensors and as GGUF: what its header says, or what is wrong with it.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "estimator/weights/stored_weights.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

namespace {

/// A file in memory, for the readers take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("fuzz", 0)) {
    fuzz::require(descriptor_ >= 0);
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      fuzz::require(written > 0);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

void add_up(const Result<StoredWeights>& weights) {
  if (!weights) return fuzz::require_shown(weights.error());
  Bytes all;
  for (const FormatTotal& total : format_totals(*weights)) {
    fuzz::require(total.bytes >= Bytes() && total.elements >= 0 && total.tensors > 0);
    all += total.bytes;
  }
  for (const StoredTensor& tensor : weights->tensors) all -= tensor.bytes;
  fuzz::require(all == Bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  const MemoryFile file(bytes);
  const bool is_known =
      is_gguf(bytes) || is_safetensors(bytes, static_cast<std::int64_t>(bytes.size()));
  if (is_known) add_up(read_weights(file.path()));
  add_up(read_safetensors(file.path()));
  add_up(read_gguf(file.path()));
  return 0;
}
