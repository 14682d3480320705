// Whether the arena packing finds what is known to be possible, and in what processor time.
//
//   arena FOLDER [EFFORT]      EFFORT: as pack_arena's, 10 if not given
//
// FOLDER holds static-allocation problems as google/minimalloc publishes them: NAME.CAPACITY.csv
// with the columns id, lower, upper, size (half-open lifetimes), each feasible at CAPACITY. A
// packing within CAPACITY is searched for, not the least. Exits 1 where one is not found.
#include "estimator/arena/arena.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using namespace stowage;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t begin = 0;
  for (std::size_t comma = line.find(','); comma != std::string::npos;
       comma = line.find(',', begin)) {
    cells.push_back(line.substr(begin, comma - begin));
    begin = comma + 1;
  }
  cells.push_back(line.substr(begin));
  return cells;
}

std::vector<ArenaRequest> read_requests(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const auto header = split(line);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  const std::size_t lower = column("lower"), upper = column("upper"), size = column("size");
  std::vector<ArenaRequest> requests;
  while (std::getline(file, line)) {
    const auto cells = split(line);
    if (cells.size() != header.size()) continue;
    requests.push_back({{{std::stoi(cells.at(lower)), std::stoi(cells.at(upper))}},
                        Bytes(std::stoll(cells.at(size)))});
  }
  return requests;
}

bool lie_apart(const std::vector<ArenaRequest>& requests, const ArenaPacking& packing) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart = packing.offsets[i] + requests[i].bytes <= packing.offsets[j] ||
                         packing.offsets[j] + requests[j].bytes <= packing.offsets[i];
      if (!apart && requests[i].live.front().overlaps(requests[j].live.front())) return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} FOLDER [EFFORT]\n", argv[0]);
    return 2;
  }
  const int effort = argc > 2 ? std::stoi(argv[2]) : 10;
  std::vector<std::filesystem::path> files;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], unreadable)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    fmt::print(stderr, "{}: no .csv files\n", argv[1]);
    return 2;
  }
  fmt::print("{:<16} {:>8} {:>10} {:>10} {:>10} {:>8} {:>8}\n", "problem", "blocks", "bound",
             "capacity", "peak", "solved", "ms");
  std::size_t solved = 0;
  double total_ms = 0;
  for (const auto& file : files) {
    const auto requests = read_requests(file);
    const std::string capacity_text = file.stem().extension().string();
    const Bytes capacity(std::stoll(capacity_text.substr(1)));
    const std::clock_t start = std::clock();
    const ArenaPacking packing =
        pack_arena(requests, {.alignment = Bytes(1), .effort = effort, .target_peak = capacity});
    const double ms = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const bool within = packing.peak <= capacity && lie_apart(requests, packing);
    solved += within ? 1 : 0;
    total_ms += ms;
    fmt::print("{:<16} {:>8} {:>10} {:>10} {:>10} {:>8} {:>8.1f}\n", file.stem().string(),
               requests.size(), packing.lower_bound.count(), capacity.count(), packing.peak.count(),
               within ? "yes" : "NO", ms);
  }
  fmt::print("{} of {} solved, {:.1f} ms of processor time\n", solved, files.size(), total_ms);
  return solved == files.size() ? 0 : 1;
}
