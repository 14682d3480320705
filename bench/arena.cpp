// How near the arena packing comes to what is known to be possible.
//
//   bench_arena FOLDER [EFFORT]
//
// FOLDER holds static-allocation problems as google/minimalloc publishes them: NAME.CAPACITY.csv
// with the columns id, lower, upper, size (half-open lifetimes), each feasible at CAPACITY.
#include "estimator/arena/arena.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
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

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} FOLDER [EFFORT]\n", argv[0]);
    return 2;
  }
  const int effort = argc > 2 ? std::stoi(argv[2]) : 1;
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
             "capacity", "peak", "ratio", "ms");
  for (const auto& file : files) {
    const auto requests = read_requests(file);
    const std::string capacity_text = file.stem().extension().string();
    const std::int64_t capacity = std::stoll(capacity_text.substr(1));
    const auto start = std::chrono::steady_clock::now();
    const ArenaPacking packing = pack_arena(requests, {.alignment = Bytes(1), .effort = effort});
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    fmt::print("{:<16} {:>8} {:>10} {:>10} {:>10} {:>8.4f} {:>8.1f}\n", file.stem().string(),
               requests.size(), packing.lower_bound.count(), capacity, packing.peak.count(),
               static_cast<double>(packing.peak.count()) / static_cast<double>(capacity),
               elapsed.count());
  }
  return 0;
}
