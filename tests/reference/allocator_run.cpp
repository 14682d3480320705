// PyTorch's own caching allocator (libc10_cuda.so) on the pretended card: reads operations from
// standard input, prints its figures after each.
//
//   allocator_run TOTAL IN_USE        settings in PYTORCH_ALLOC_CONF
//
//   a BUFFER BYTES STREAM   allocate       f BUFFER          free
//   r BUFFER STREAM         record_stream  c STREAM          the stream's work so far is done
//   e                       empty_cache    p                 reset the peaks
//
// What is said of a buffer whose allocation was refused is passed over. A line for each: how an
// allocation went (0 well, 1 out of memory), then allocated, requested, active, reserved,
// inactive_split bytes and segments, each with its peak, retries, out-of-memories, early refusals,
// device allocations and releases, synchronizations. With a third argument at the end the segments:
// address, stream, small, expandable, bytes, and blocks as bytes and state (0 free, 1 waiting, 2
// allocated).
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <unordered_map>

#include "pretended_card.hpp"

// Exported, without a header of its own.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*answer)(c10::DeviceIndex));
}

namespace cca = c10::cuda::CUDACachingAllocator;

namespace {

cudaStream_t stream_of(int number) {
  return reinterpret_cast<cudaStream_t>(static_cast<std::size_t>(number) * 4096);
}

void print_figures(int outcome) {
  const auto stats = cca::getDeviceStats(0);
  std::printf("%d", outcome);
  for (const auto& level :
       {stats.allocated_bytes[0], stats.requested_bytes[0], stats.active_bytes[0],
        stats.reserved_bytes[0], stats.inactive_split_bytes[0], stats.segment[0]}) {
    std::printf(" %ld %ld", level.current, level.peak);
  }
  std::printf(" %ld %ld %ld %ld %ld %ld\n", stats.num_alloc_retries, stats.num_ooms,
              stats.num_oom_rejections, stats.num_device_alloc, stats.num_device_free,
              stats.num_sync_all_streams);
}

void record(void* pointer, int stream) {
  c10::DataPtr data(pointer, pointer, cca::get()->raw_deleter(), c10::Device(c10::kCUDA, 0));
  cca::recordStream(data, c10::cuda::getStreamFromExternal(stream_of(stream), 0));
  data.release_context();
}

void print_segments() {
  auto segments = cca::snapshot().segments;
  std::sort(segments.begin(), segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (const auto& segment : segments) {
    std::printf("%zu %zu %d %d %zu", static_cast<std::size_t>(segment.address),
                reinterpret_cast<std::size_t>(segment.stream) / 4096, !segment.is_large,
                segment.is_expandable, segment.total_size);
    for (const auto& block : segment.blocks) {
      std::printf(" %zu %d", block.size, block.allocated ? 2 : block.active ? 1 : 0);
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int count, char** arguments) {
  card_begin(std::stoul(arguments[1]), std::stoul(arguments[2]));
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  c10::cuda::detail::init_p2p_access_cache(1);
  using cca::CUDAAllocatorConfig;
  CUDAAllocatorConfig::set_expandable_segments_handle_type(
      cca::Expandable_Segments_Handle_Type::POSIX_FD);
  cca::init(1);
  std::unordered_map<int, void*> live;
  std::string first_failure;
  char what = 0;
  while (std::cin >> what) {
    int outcome = 0;
    int buffer = 0, stream = 0;
    std::size_t bytes = 0;
    if (what == 'a') {
      std::cin >> buffer >> bytes >> stream;
      try {
        void* pointer = cca::raw_alloc_with_stream(bytes, stream_of(stream));
        if (pointer != nullptr) live[buffer] = pointer;
      } catch (const c10::OutOfMemoryError& error) {
        outcome = 1;
        if (first_failure.empty()) first_failure = error.what_without_backtrace();
      }
    } else if (what == 'f') {
      std::cin >> buffer;
      if (live.count(buffer) > 0) cca::raw_delete(live[buffer]);
      live.erase(buffer);
    } else if (what == 'r') {
      std::cin >> buffer >> stream;
      if (live.count(buffer) > 0) record(live[buffer], stream);
    } else if (what == 'c') {
      std::cin >> stream;
      card_complete(stream_of(stream));
    } else if (what == 'e') {
      cca::emptyCache();
    } else if (what == 'p') {
      cca::resetPeakStats(0);
    }
    print_figures(outcome);
  }
  std::printf("message %s\n", first_failure.c_str());
  if (count > 3) print_segments();
  std::fflush(stdout);
  std::_Exit(0);  // the real runtime's own goodbyes know nothing of this card
}
