#include "estimator/allocator/theano_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/quantity.hpp"

namespace stowage {

namespace {

constexpr double most_of_card = 0.95;
constexpr Bytes cnmem_granularity = 512_B;
constexpr Bytes gpuarray_granularity = 64_B;
constexpr Bytes gpuarray_segment = 4_MiB;

// Flags that do not change the card's memory, as far as Theano's source shows.
constexpr std::array<std::string_view, 22> without_effect{"base_compiledir",
                                                          "compiledir",
                                                          "cuda.root",
                                                          "cxx",
                                                          "dnn.base_path",
                                                          "dnn.enabled",
                                                          "dnn.include_path",
                                                          "dnn.library_path",
                                                          "dnn.bin_path",
                                                          "exception_verbosity",
                                                          "force_device",
                                                          "gcc.cxxflags",
                                                          "gpuarray.sched",
                                                          "gpuarray.single_stream",
                                                          "gpuarray.sync",
                                                          "mode",
                                                          "nvcc.fastmath",
                                                          "nvcc.flags",
                                                          "openmp",
                                                          "optimizer",
                                                          "print_active_device",
                                                          "warn_float64"};
constexpr std::array<std::string_view, 8> with_effect{
    "allow_gc",          "device", "dnn.conv.algo_bwd_data", "dnn.conv.algo_bwd_filter",
    "dnn.conv.algo_fwd", "floatX", "gpuarray.preallocate",   "lib.cnmem"};

class FlagReader {
 public:
  FlagReader(std::string_view text, std::string_view source)
      : source_(std::make_shared<SourceText>(SourceText{std::string(source), std::string(text)})) {}

  Result<TheanoMemory> read() {
    const std::string& text = source_->text;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      read_flag(begin, end);
      begin = end + 1;
    }
    if (mistakes_.empty()) check_backend();
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    return memory_;
  }

 private:
  struct Word {
    std::string text;
    std::size_t begin = 0;
  };

  [[nodiscard]] Word word(std::size_t begin, std::size_t end) const {
    const auto is_space = [&](std::size_t i) { return source_->text[i] == ' '; };
    while (begin < end && is_space(begin)) ++begin;
    while (end > begin && is_space(end - 1)) --end;
    return {source_->text.substr(begin, end - begin), begin};
  }

  void fail(const Word& at, std::string message, std::string hint = {}) {
    const int length = std::max(1, static_cast<int>(at.text.size()));
    mistakes_.push_back({.message = std::move(message),
                         .span = {source_, 1, static_cast<int>(at.begin) + 1, length},
                         .hint = std::move(hint)});
  }

  void read_flag(std::size_t begin, std::size_t end) {
    const Word whole = word(begin, end);
    if (whole.text.empty()) return;  // a comma too many, which Theano forgives
    const std::size_t equals = source_->text.find('=', begin);
    if (equals >= end) {
      return fail(whole, fmt::format("'{}' has no value", whole.text), "a flag is name=value");
    }
    const Word name = word(begin, equals);
    const Word value = word(equals + 1, end);
    if (std::ranges::find(without_effect, name.text) != without_effect.end()) return;
    if (name.text == "device") return device(value);
    if (name.text == "floatX") return;  // the precision says it
    if (name.text == "allow_gc") return allow_gc(value);
    if (name.text == "lib.cnmem") return preallocate(value, TheanoBackend::cuda);
    if (name.text == "gpuarray.preallocate") return preallocate(value, TheanoBackend::gpuarray);
    if (name.text.starts_with("dnn.conv.algo_")) return algorithm(name, value);
    std::vector<std::string_view> names(with_effect.begin(), with_effect.end());
    names.insert(names.end(), without_effect.begin(), without_effect.end());
    fail(name, fmt::format("'{}' is no flag whose effect on memory is known", name.text),
         did_you_mean(name.text, names));
  }

  void device(const Word& value) {
    const bool old = value.text.starts_with("gpu");
    if (!old && !value.text.starts_with("cuda")) {
      return fail(value, fmt::format("device '{}' is no GPU", value.text),
                  "cuda, cuda0, ...; or gpu, gpu0, ... of the old backend");
    }
    device_ = old ? TheanoBackend::cuda : TheanoBackend::gpuarray;
    device_word_ = value;
  }

  void allow_gc(const Word& value) {
    const bool yes = value.text == "True" || value.text == "true" || value.text == "1";
    const bool no = value.text == "False" || value.text == "false" || value.text == "0";
    if (!yes && !no) {
      return fail(value, fmt::format("allow_gc is True or False, not '{}'", value.text));
    }
    memory_.keeps_intermediates = no;
  }

  void preallocate(const Word& value, TheanoBackend backend) {
    const auto number = parse_number<double>(value.text);
    constexpr double most = 1 << 24;  // MiB
    if (!number || !std::isfinite(*number) || *number > most) {
      return fail(value,
                  fmt::format("'{}' is no share of the card and no number of MiB", value.text),
                  "0.8 is a share, 2000 are MiB");
    }
    if (*number < 0 && backend == TheanoBackend::cuda) {
      return fail(value, "lib.cnmem cannot be negative", "0 is without CNMeM");
    }
    memory_.preallocate = *number;
    pool_ = backend;
    pool_word_ = value;
  }

  // The others are algorithms of the old cuDNN, whose scratch today's cuDNN cannot be asked about.
  void algorithm(const Word& name, const Word& value) {
    const bool forward = name.text == "dnn.conv.algo_fwd";
    if (value.text == "none" || (forward && value.text == "small")) return;
    fail(value, fmt::format("the scratch of {}={} is not known", name.text, value.text),
         forward ? "Theano's default is small" : "Theano's default is none");
  }

  void check_backend() {
    memory_.backend = device_.value_or(pool_.value_or(TheanoBackend::gpuarray));
    if (!pool_ || *pool_ == memory_.backend) return;
    const bool old = memory_.backend == TheanoBackend::cuda;
    fail(*pool_word_,
         fmt::format("{} is of the {} backend, and device={} of the {} one",
                     old ? "gpuarray.preallocate" : "lib.cnmem", old ? "new" : "old",
                     device_word_->text, old ? "old" : "new"),
         old ? "the old backend has lib.cnmem" : "the new backend has gpuarray.preallocate");
  }

  SourceTextPtr source_;
  TheanoMemory memory_;
  std::optional<TheanoBackend> device_, pool_;
  std::optional<Word> device_word_, pool_word_;
  Diagnostics mistakes_;
};

}  // namespace

Result<TheanoMemory> parse_theano_flags(std::string_view text, std::string_view source) {
  return FlagReader(text, source).read();
}

Bytes theano_preallocation(const TheanoMemory& memory, Bytes total) {
  if (memory.preallocate <= 0) return {};
  const double share = std::min(memory.preallocate, most_of_card);
  const double bytes = memory.preallocate <= 1 ? share * static_cast<double>(total.count())
                                               : memory.preallocate * (1 << 20);
  return Bytes(static_cast<std::int64_t>(bytes));
}

std::string_view theano_pool_name(const TheanoMemory& memory) {
  if (!theano_pool(memory, Bytes()).caches) return "the driver";
  return memory.backend == TheanoBackend::cuda ? "CNMeM" : "libgpuarray's cache";
}

BestFitSettings theano_pool(const TheanoMemory& memory, Bytes total) {
  const bool old = memory.backend == TheanoBackend::cuda;
  return {.granularity = old ? cnmem_granularity : gpuarray_granularity,
          .least_segment = old ? Bytes() : gpuarray_segment,
          .preallocated = theano_preallocation(memory, total),
          .caches = old ? memory.preallocate > 0 : memory.preallocate >= 0};
}

}  // namespace stowage
