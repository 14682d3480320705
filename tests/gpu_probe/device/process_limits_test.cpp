// Limits of control groups, read from a folder in place of the file system's root.
#include "gpu_probe/device/process_limits.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace stowage;

namespace {

class PretendedRoot {
 public:
  PretendedRoot() {
    std::string name = (std::filesystem::temp_directory_path() / "stowage-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~PretendedRoot() { std::filesystem::remove_all(path_); }
  PretendedRoot(const PretendedRoot&) = delete;
  PretendedRoot& operator=(const PretendedRoot&) = delete;

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = path_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] ProcessLimits limits() const { return process_limits(path_.string()); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("without control groups nothing is limited") {
  const ProcessLimits limits = PretendedRoot().limits();
  CHECK_FALSE(limits.memory);
  CHECK_FALSE(limits.available);
  CHECK_FALSE(limits.cores);
}

TEST_CASE("of a control group of version 2 and its ancestors the least limit counts") {
  const PretendedRoot root;
  root.write("proc/self/cgroup", "0::/outer/inner\n");
  root.write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  root.write("sys/fs/cgroup/outer/inner/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/outer/memory.max", "8589934592\n");
  root.write("sys/fs/cgroup/outer/memory.current", "3221225472\n");
  root.write("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 1073741824\n");
  root.write("sys/fs/cgroup/outer/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/memory.max", "17179869184\n");
  const ProcessLimits limits = root.limits();
  CHECK(limits.memory == 8_GiB);
  CHECK(limits.available == 6_GiB);  // of the three in use two cannot be dropped
  CHECK(limits.cores == 1.5);
}

TEST_CASE("control groups of version 1 are read, each controller in its own tree") {
  const PretendedRoot root;
  root.write("proc/self/cgroup",
             "12:memory:/job\n5:cpu,cpuacct:/job\n3:pids:/job\n0::/elsewhere\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  const ProcessLimits limits = root.limits();
  CHECK(limits.memory == 2_GiB);
  CHECK_FALSE(limits.available);
  CHECK(limits.cores == 0.5);
}

TEST_CASE("what a control group's files should not say limits nothing") {
  const PretendedRoot root;
  root.write("proc/self/cgroup", "nonsense\n0:\n0::/\n");
  root.write("sys/fs/cgroup/memory.max", "-5\n");
  root.write("sys/fs/cgroup/cpu.max", "0 100000\n");
  const ProcessLimits limits = root.limits();
  CHECK_FALSE(limits.memory);
  CHECK_FALSE(limits.cores);
}
