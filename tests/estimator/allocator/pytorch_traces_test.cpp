// CachingAllocator against PyTorch's own: tests/reference/allocator/*.json holds random operations
// with the figures of libc10_cuda.so after each (tests/reference/README.md).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "estimator/allocator/alloc_conf.hpp"
#include "estimator/allocator/caching_allocator.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

using nlohmann::json;

/// Does an operation; true where it is an allocation that is refused.
bool operate(const std::string& line, CachingAllocator& allocator, std::map<int, BlockId>& live,
             std::string& first_failure) {
  std::istringstream words(line);
  char what = 0;
  int buffer = 0, stream = 0;
  std::int64_t bytes = 0;
  words >> what;
  if (what == 'a') {
    words >> buffer >> bytes >> stream;
    const auto block = allocator.allocate(Bytes(bytes), StreamId{stream});
    if (block) live[buffer] = *block;
    if (!block && first_failure.empty()) first_failure = pytorch_message(block.error());
    return !block.has_value();
  }
  if (what == 'c') {
    words >> stream;
    allocator.complete_events(StreamId{stream});
  } else if (what == 'e') {
    allocator.empty_cache();
  } else if (what == 'p') {
    allocator.reset_peaks();
  } else {
    words >> buffer >> stream;
    const auto at = live.find(buffer);
    if (at == live.end()) return false;  // its allocation was refused
    if (what == 'r') {
      allocator.record_stream(at->second, StreamId{stream});
    } else {
      allocator.free(at->second);
      live.erase(at);
    }
  }
  return false;
}

json segments_of(const CachingAllocator& allocator) {
  json rows = json::array();
  for (const SegmentSnapshot& segment : allocator.snapshot()) {
    json row = {segment.address, segment.stream.value, segment.pool == BlockPool::small ? 1 : 0,
                segment.expandable ? 1 : 0, segment.reserved.count()};
    for (const BlockSnapshot& block : segment.blocks) {
      row.push_back(block.size.count());
      row.push_back(block.state == BlockState::allocated       ? 2
                    : block.state == BlockState::awaiting_free ? 1
                                                               : 0);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// PyTorch names this process's memory where it finds NVML, which it did not; advice follows.
void check_message(const std::string& ours, const std::string& theirs) {
  const auto process = ours.find(" Including non-PyTorch memory");
  if (process == std::string::npos) {
    CHECK(theirs == ours);
    return;
  }
  const auto rest = ours.find("memory in use. ") + std::string("memory in use. ").size();
  const std::string expected = ours.substr(0, process + 1) + ours.substr(rest);
  CHECK(theirs.substr(0, expected.size()) == expected);
}

void check_trace(const json& file) {
  const auto conf = parse_alloc_conf(file["settings"].get<std::string>());
  REQUIRE(conf.has_value());
  DeviceMemory device(Bytes(file["total"].get<std::int64_t>()),
                      Bytes(file["in_use"].get<std::int64_t>()));
  CachingAllocator allocator(conf->settings, device);
  const AllocatorStatistics& now = allocator.statistics();
  std::map<int, BlockId> live;
  std::string first_failure;
  for (const json& row : file["operations"]) {
    const std::string line = row[0];
    CAPTURE(line);
    const bool refused = operate(line, allocator, live, first_failure);
    const json figures = {line,
                          refused ? 1 : 0,
                          now.allocated.current.count(),
                          now.requested.current.count(),
                          now.active.current.count(),
                          now.reserved.current.count(),
                          now.inactive_split.current.count(),
                          now.segments.current};
    REQUIRE(figures.dump() == row.dump());
  }
  const json peaks = {{"allocated", now.allocated.peak.count()},
                      {"requested", now.requested.peak.count()},
                      {"active", now.active.peak.count()},
                      {"reserved", now.reserved.peak.count()},
                      {"inactive_split", now.inactive_split.peak.count()},
                      {"segments", now.segments.peak}};
  CHECK(peaks.dump() == file["peaks"].dump());
  const json end = {{"alloc_retries", now.alloc_retries},
                    {"ooms", now.ooms},
                    {"early_refusals", now.early_refusals},
                    {"device_allocations", now.device_allocations},
                    {"device_releases", now.device_releases},
                    {"stream_synchronizations", now.stream_synchronizations}};
  CHECK(end.dump() == file["end"].dump());
  CHECK(segments_of(allocator).dump() == file["segments"].dump());
  check_message(first_failure, file["first_failure"]);
}

}  // namespace

TEST_CASE("Operation by operation as PyTorch's own allocator, under every setting") {
  std::set<std::filesystem::path> files;
  const std::filesystem::path folder = testing::source_path("/tests/reference/allocator");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path());
  REQUIRE(files.size() == 13);
  for (const std::filesystem::path& path : files) {
    CAPTURE(path);
    std::ifstream stream(path);
    check_trace(json::parse(stream));
  }
}

}  // namespace stowage
