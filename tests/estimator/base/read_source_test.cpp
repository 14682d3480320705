#include "estimator/base/read_source.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.hpp"

namespace stowage {

using testing::TemporaryFolder;

namespace {

std::string outcome(const std::string& path, FileKind kind, FileTypes types = FileTypes::any) {
  const auto source = read_source(path, kind, types);
  return source ? (*source)->text : render(source.error());
}

std::string pipe_in(const TemporaryFolder& folder) {
  const std::string path = folder.path("pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  return path;
}

}  // namespace

TEST_CASE("a file is read whole, under the name that it was asked for by") {
  const TemporaryFolder folder;
  const std::string path = folder.file("host.yaml", "name: small\n");
  const auto source = read_source(path, FileKind::host);
  REQUIRE(source);
  CHECK((*source)->name == path);
  CHECK((*source)->text == "name: small\n");
  CHECK(outcome(folder.file("none", ""), FileKind::host).empty());
  CHECK(outcome("/proc/self/comm", FileKind::host) != "");  // says that it has no bytes, and has
}

TEST_CASE("what cannot be opened is said with the system's reason") {
  const TemporaryFolder folder;
  const std::string absent = folder.path("absent");
  CHECK(outcome(absent, FileKind::plan) ==
        "error: cannot open '" + absent + "': No such file or directory\n");
  CHECK(outcome(folder.path(), FileKind::plan) == "error: '" + folder.path() + "' is a folder\n");
}

TEST_CASE("each kind of file has a size beyond which it is not read") {
  const TemporaryFolder folder;
  const std::string path = folder.file("large", "");
  const auto with_size = [&](Bytes size) {
    REQUIRE(truncate(path.c_str(), size.count()) == 0);  // takes no room on the disk
    return path;
  };
  const auto refusal = [&](const std::string& rest) {
    return "error: '" + path + "' is larger than " + rest + "\n";
  };
  for (const FileKind kind : {FileKind::card, FileKind::calibration, FileKind::host}) {
    CHECK(outcome(with_size(largest_file(kind)), kind).size() == 1 << 20);
  }
  with_size(largest_file(FileKind::card) + 1_B);
  CHECK(outcome(path, FileKind::card) == refusal("1.0 MiB, the most that a card file may have"));
  CHECK(outcome(path, FileKind::calibration) ==
        refusal("1.0 MiB, the most that a calibration may have"));
  CHECK(outcome(path, FileKind::host) == refusal("1.0 MiB, the most that a host file may have"));
  with_size(1_GiB);
  CHECK(outcome(path, FileKind::description) ==
        refusal("16.0 MiB, the most that a description may have"));
  CHECK(outcome(path, FileKind::step) == refusal("64.0 MiB, the most that a step file may have"));
  CHECK(outcome(path, FileKind::plan) == refusal("64.0 MiB, the most that a plan may have"));
}

TEST_CASE("a model is as large as a description may be, or as a step file if it begins as one") {
  const TemporaryFolder folder;
  // NOLINTNEXTLINE(bugprone-string-constructor): megabytes on purpose
  const std::string step = "\n {\"format\": \"stowage-step\"," + std::string(20'000'000, ' ') + "}";
  CHECK(outcome(folder.file("step.json", step), FileKind::model) == step);
  for (const std::string& start : {std::string("# \"stowage-step\"\n"), std::string("{"),
                                   "{" + std::string(5000, ' ') + "\"stowage-step\""}) {
    // NOLINTNEXTLINE(bugprone-string-constructor): megabytes on purpose
    const std::string path = folder.file("model", start + std::string(20'000'000, ' '));
    CHECK(outcome(path, FileKind::model) ==
          "error: '" + path + "' is larger than 16.0 MiB, the most that a description may have\n");
  }
  const std::string path = folder.file("large.json", step);
  REQUIRE(truncate(path.c_str(), (65_MiB).count()) == 0);
  CHECK(outcome(path, FileKind::model) ==
        "error: '" + path + "' is larger than 64.0 MiB, the most that a step file may have\n");
  CHECK(outcome("/dev/zero", FileKind::model) ==
        "error: '/dev/zero' is larger than 16.0 MiB, the most that a description may have\n");
}

TEST_CASE("a step file that comes through a pipe is read as one") {
  const TemporaryFolder folder;
  const std::string path = pipe_in(folder);
  // NOLINTNEXTLINE(bugprone-string-constructor): megabytes on purpose
  const std::string step = "{\"format\": \"stowage-step\"," + std::string(17'000'000, ' ') + "}";
  std::thread writer([&] { std::ofstream(path) << step; });
  CHECK(outcome(path, FileKind::model) == step);
  writer.join();
}

TEST_CASE("a device without an end is read up to the size of its kind") {
  CHECK(outcome("/dev/zero", FileKind::card) ==
        "error: '/dev/zero' is larger than 1.0 MiB, the most that a card file may have\n");
  CHECK(outcome("/dev/zero", FileKind::card, FileTypes::regular) ==
        "error: '/dev/zero' is not a regular file\n");
}

TEST_CASE("a pipe is read to its end, and given up where nothing is written to it") {
  const TemporaryFolder folder;
  const std::string path = pipe_in(folder);
  CHECK(outcome(path, FileKind::host, FileTypes::regular) ==
        "error: '" + path + "' is not a regular file\n");
  CHECK(outcome(path, FileKind::host) ==
        "error: '" + path + "' is a pipe that nothing is written to\n");
  std::thread writer([&] { std::ofstream(path) << "name: piped\n"; });
  CHECK(outcome(path, FileKind::host) == "name: piped\n");
  writer.join();
}

TEST_CASE("the start of a file is read, and of what is no regular file nothing") {
  const TemporaryFolder folder;
  const std::string path = folder.file("main", "0123456789");
  CHECK(read_file_start(path, 4) == "0123");
  CHECK(read_file_start(path, 64) == "0123456789");
  CHECK(read_file_start(folder.file("empty", ""), 64) == "");
  CHECK_FALSE(read_file_start(folder.path("absent"), 64).has_value());
  CHECK_FALSE(read_file_start(folder.path(), 64).has_value());
  CHECK_FALSE(read_file_start(pipe_in(folder), 64).has_value());
  CHECK_FALSE(read_file_start("/dev/zero", 64).has_value());
  CHECK_FALSE(read_file_start("-", 64).has_value());
}

}  // namespace stowage
