#include "gpu_probe/device/process_limits.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace stowage {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// None: the text is empty, or a word such as "max".
std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// The value of the line "KEY VALUE" in a file.
std::int64_t value_of(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  for (std::int64_t value = 0; file >> word >> value;) {
    if (word == key) return value;
  }
  return 0;
}

/// The folders of a group and its ancestors: for "/a/b" those of /a/b, /a and /, below `mount`.
std::vector<fs::path> group_and_ancestors(const fs::path& mount, const std::string& group) {
  std::vector<fs::path> folders;
  for (fs::path path = fs::path(group).relative_path(); !path.empty(); path = path.parent_path()) {
    folders.push_back(mount / path);
  }
  folders.push_back(mount);
  return folders;
}

template <class T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

/// The names of a group's files. In version 2 one file has both times.
struct MemoryFiles {
  const char *limit, *usage, *cache;
};
constexpr MemoryFiles version_1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};
constexpr MemoryFiles version_2{"memory.max", "memory.current", "inactive_file"};

void add_memory(const fs::path& folder, const MemoryFiles& files, ProcessLimits& limits) {
  // Where there is no limit, version 1 writes a number larger than any memory.
  constexpr std::int64_t beyond = std::int64_t{1} << 60;
  const auto limit = whole_number(first_line(folder / files.limit));
  if (!limit || *limit < 0 || *limit >= beyond) return;
  lower(limits.memory, Bytes(*limit));
  const auto usage = whole_number(first_line(folder / files.usage));
  if (!usage) return;
  const std::int64_t held =
      std::max<std::int64_t>(0, *usage - value_of(folder / "memory.stat", files.cache));
  lower(limits.available, Bytes(std::max<std::int64_t>(0, *limit - held)));
}

void add_cores(std::optional<std::int64_t> quota, std::optional<std::int64_t> period,
               ProcessLimits& limits) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  lower(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
}

void add_version_1(const fs::path& mount, const std::string& controllers, const std::string& group,
                   ProcessLimits& limits) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    for (const fs::path& folder : group_and_ancestors(mount / controllers, group)) {
      if (name == "memory") add_memory(folder, version_1, limits);
      if (name != "cpu") continue;
      add_cores(whole_number(first_line(folder / "cpu.cfs_quota_us")),
                whole_number(first_line(folder / "cpu.cfs_period_us")), limits);
    }
  }
}

void add_version_2(const fs::path& mount, const std::string& group, ProcessLimits& limits) {
  for (const fs::path& folder : group_and_ancestors(mount, group)) {
    add_memory(folder, version_2, limits);
    const std::string times = first_line(folder / "cpu.max");  // "200000 100000", "max 100000"
    const std::size_t space = times.find(' ');
    if (space == times.npos) continue;
    add_cores(whole_number(times), whole_number(std::string_view(times).substr(space + 1)), limits);
  }
}

}  // namespace

ProcessLimits process_limits(const std::string& root) {
  ProcessLimits limits;
  const fs::path mount = fs::path(root + "/sys/fs/cgroup");
  std::ifstream groups(root + "/proc/self/cgroup");
  // A line "0::/a/b" is of version 2, a line "5:cpu,cpuacct:/a/b" of version 1.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      add_version_2(mount, group, limits);
    } else {
      add_version_1(mount, controllers, group, limits);
    }
  }
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY) {
    limits.locked = Bytes(static_cast<std::int64_t>(locked.rlim_cur));
  }
  return limits;
}

}  // namespace stowage
