// The cache and its files. No cuDNN is needed: the answers are invented.
#include "gpu_probe/cudnn/answer_cache.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "gpu_probe/cache/file_cache.hpp"
#include "gpu_probe/cudnn/circumstances.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stowage;
using testing::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

ConvolutionQuery question(std::int64_t n) {
  return {.x = {n, 3, 8, 8}, .w = {4, 3, 3, 3}, .y = {n, 4, 6, 6}, .stride = {1, 1}};
}

WorkspaceAnswer engines(std::int64_t n) {
  return {.engines = {{"eng1", Bytes(n)}, {"eng0", 0_B}}, .origin = WorkspaceOrigin::cudnn};
}

std::string listed(const std::vector<Engine>& engines) {
  std::string text;
  for (const Engine& engine : engines) {
    text += engine.name + "=" + std::to_string(engine.workspace.count()) + " ";
  }
  return text;
}

std::string listed(const std::optional<WorkspaceAnswer>& answer) {
  if (!answer) return "none";
  CHECK(answer->origin == WorkspaceOrigin::cudnn);
  return listed(answer->engines) +
         (answer->benchmark.empty() ? "" : "of " + listed(answer->benchmark));
}

void keep(const std::string& folder, const std::string& circumstances,
          std::initializer_list<std::int64_t> numbers, const std::string& parts = "") {
  CudnnAnswerCache cache(folder, circumstances);
  for (const std::int64_t n : numbers) cache.add(question_bytes(question(n)), engines(n));
  cache.write(parts);
}

std::string found(const std::string& folder, const std::string& circumstances, std::int64_t n) {
  return listed(CudnnAnswerCache(folder, circumstances).find(question_bytes(question(n))));
}

/// Sets an environment variable for its lifetime; nullptr unsets it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) { value == nullptr ? unsetenv(name_) : setenv(name_, value, 1); }
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("answers are there in the next run, under the same circumstances only") {
  const TemporaryFolder folder;
  const std::string cache = folder.path("a/b/stowage");
  CHECK(found(cache, "one card", 1) == "none");
  CHECK(folder.names().empty());  // reading creates no file
  keep(cache, "one card", {1, 2});
  CHECK(found(cache, "one card", 1) == "eng1=1 eng0=0 ");
  CHECK(found(cache, "one card", 3) == "none");
  CHECK(found(cache, "another card", 1) == "none");
  keep(cache, "one card", {3});
  CHECK(found(cache, "one card", 2) == "eng1=2 eng0=0 ");
  CHECK(found(cache, "one card", 3) == "eng1=3 eng0=0 ");
}

TEST_CASE("with benchmark a question is another one, whose plans are kept in order") {
  const TemporaryFolder folder;
  ConvolutionQuery timed = question(1);
  timed.settings.benchmark = true;
  WorkspaceAnswer answer = engines(1);
  answer.benchmark = {{"eng1", 7_B}, {"eng2", 9_B}, {"eng1", 7_B}};
  {
    CudnnAnswerCache cache(folder.path(), "card");
    cache.add(question_bytes(question(1)), engines(1));
    cache.add(question_bytes(timed), answer);
    cache.write("");
  }
  CHECK(found(folder.path(), "card", 1) == "eng1=1 eng0=0 ");
  CHECK(listed(CudnnAnswerCache(folder.path(), "card").find(question_bytes(timed))) ==
        "eng1=1 eng0=0 of eng1=7 eng2=9 eng1=7 ");
}

TEST_CASE("a file of an earlier version is as none, and is replaced") {
  const TemporaryFolder folder;
  keep(folder.path(), "card", {1});
  const std::string path = CudnnAnswerCache(folder.path(), "card").path();
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::size_t version = bytes.find(" 2\n");
  REQUIRE(version != std::string::npos);
  bytes[version + 1] = '1';
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK(found(folder.path(), "card", 1) == "none");
  keep(folder.path(), "card", {2});
  CHECK(found(folder.path(), "card", 1) == "none");
  CHECK(found(folder.path(), "card", 2) == "eng1=2 eng0=0 ");
}

TEST_CASE("a cache that may not be written is left as it was") {
  const TemporaryFolder folder;
  keep(folder.path(), "card", {1});
  const auto names = folder.names();
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit little{.rlim_cur = 64, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  keep(folder.path(), "card", {2});  // a SIGXFSZ would end the tests
  keep(folder.path(), "another card", {2});
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(folder.names() == names);
  CHECK(found(folder.path(), "card", 1) == "eng1=1 eng0=0 ");
  CHECK(found(folder.path(), "card", 2) == "none");
}

TEST_CASE("an answer that there is no engine is an answer") {
  const TemporaryFolder folder;
  CudnnAnswerCache cache(folder.path(), "card");
  cache.add(question_bytes(question(1)), {.engines = {}, .origin = WorkspaceOrigin::cudnn});
  cache.write("");
  CHECK(found(folder.path(), "card", 1) == "");
}

TEST_CASE("the circumstances themselves are compared, not their hash") {
  const TemporaryFolder folder;
  keep(folder.path(), "one card", {1});
  const CudnnAnswerCache other(folder.path(), "another card");
  fs::rename(CudnnAnswerCache(folder.path(), "one card").path(), other.path());
  CHECK(found(folder.path(), "another card", 1) == "none");
}

TEST_CASE("answers of a library that was replaced are not given") {
  const TemporaryFolder folder;
  const std::string library = folder.file("libcudnn_graph.so.9", "old");
  keep(folder.path("cache"), "card", {1}, file_stamp(library) + "\n");
  CHECK(found(folder.path("cache"), "card", 1) == "eng1=1 eng0=0 ");
  const auto time = fs::last_write_time(library);
  const auto changed = [&] {
    struct stat found = {};
    REQUIRE(stat(library.c_str(), &found) == 0);
    return std::pair(found.st_ctim.tv_sec, found.st_ctim.tv_nsec);
  };
  const auto before = changed();
  fs::remove(library);
  CHECK(found(folder.path("cache"), "card", 1) == "none");
  // As a package manager does: a file of the same size and time.
  do {  // until the file system's clock has advanced
    fs::last_write_time(folder.file("libcudnn_graph.so.9", "new"), time);
  } while (changed() == before);
  CHECK(found(folder.path("cache"), "card", 1) == "none");
  keep(folder.path("cache"), "card", {2}, file_stamp(library) + "\n");
  CHECK(found(folder.path("cache"), "card", 1) == "none");
  CHECK(found(folder.path("cache"), "card", 2) == "eng1=2 eng0=0 ");
}

TEST_CASE("the libraries of several runs are all kept in mind") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("libcudnn_graph.so.9", "graph");
  const std::string cnn = folder.file("libcudnn_cnn.so.9", "cnn");
  keep(folder.path("cache"), "card", {1}, file_stamp(graph) + "\n");
  keep(folder.path("cache"), "card", {2}, file_stamp(cnn) + "\n");
  CHECK(found(folder.path("cache"), "card", 1) == "eng1=1 eng0=0 ");
  fs::remove(graph);
  CHECK(found(folder.path("cache"), "card", 2) == "none");
}

TEST_CASE("a broken file is as none, and is replaced") {
  const TemporaryFolder folder;
  keep(folder.path(), "card", {1});
  const std::string path = CudnnAnswerCache(folder.path(), "card").path();
  const std::string whole = testing::file_text(path);
  for (const std::string& broken :
       {std::string(), std::string("\n"), whole.substr(0, whole.size() / 2), whole + whole,
        std::string(whole.size(), '\xff'), std::string(largest_answer_file + 1, 'x')}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << broken;
    CHECK(found(folder.path(), "card", 1) == "none");
    keep(folder.path(), "card", {2});
    CHECK(found(folder.path(), "card", 1) == "none");
    CHECK(found(folder.path(), "card", 2) == "eng1=2 eng0=0 ");
  }
}

TEST_CASE("what is not a file of ours is left unread") {
  const TemporaryFolder folder;
  keep(folder.path(), "card", {1});
  const std::string path = CudnnAnswerCache(folder.path(), "card").path();
  REQUIRE(chmod(path.c_str(), 0622) == 0);
  CHECK(found(folder.path(), "card", 1) == "none");  // others may have written it
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  CHECK(found(folder.path(), "card", 1) == "eng1=1 eng0=0 ");
  fs::rename(path, folder.path("elsewhere"));
  fs::create_symlink(folder.path("elsewhere"), path);
  CHECK(found(folder.path(), "card", 1) == "none");
  fs::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(found(folder.path(), "card", 1) == "none");
  fs::remove(path);
  fs::create_directory(path);
  CHECK(found(folder.path(), "card", 1) == "none");
  keep(folder.path(), "card", {1});  // a folder cannot be replaced: leaves no file behind
  CHECK(folder.names().size() == 2);
}

TEST_CASE("where nothing can be written, nothing is kept and nothing fails") {
  const TemporaryFolder folder;
  keep("", "card", {1});
  CHECK(found("", "card", 1) == "none");
  CHECK(CudnnAnswerCache("", "card").path() == "");
  CHECK(CudnnAnswerCache(folder.path(), "").path() == "");
  const std::string file = folder.file("a file", "");
  keep(file, "card", {1});
  keep(file + "/below", "card", {1});
  keep("/proc/stowage", "card", {1});
  CHECK(found(file + "/below", "card", 1) == "none");
  CHECK(folder.names() == std::vector<std::string>{"a file"});
}

TEST_CASE("runs at the same time: the file is whole at any moment") {
  const TemporaryFolder folder;
  keep(folder.path(), "card", {0});
  constexpr int writers = 4, rounds = 50;
  std::vector<std::thread> threads;
  std::vector<int> lost(writers, 0);
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      for (int round = 0; round < rounds; ++round) {
        keep(folder.path(), "card", {1 + w * rounds + round});
        if (found(folder.path(), "card", 0) != "eng1=0 eng0=0 ") ++lost[w];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(lost == std::vector<int>(writers, 0));
  CHECK(folder.names().size() == 1);
  int kept = 0;
  for (int n = 1; n <= writers * rounds; ++n) {
    const std::string answer = found(folder.path(), "card", n);
    if (answer == "none") continue;  // another process wrote the file later
    CHECK(answer == "eng1=" + std::to_string(n) + " eng0=0 ");
    ++kept;
  }
  // When processes replace the file at the same time the last one counts: its own answer is there.
  // How many of the others' answers are there depends on who read when.
  CHECK(kept >= 1);
}

TEST_CASE("old files go, and what a killed run left; nobody else's") {
  const TemporaryFolder folder;
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(48);
  for (std::size_t i = 0; i < most_answer_files + 5; ++i) {
    const std::string path = folder.file("cudnn-" + std::to_string(100 + i) + ".answers", "");
    fs::last_write_time(path, old + std::chrono::minutes(i));
  }
  fs::last_write_time(folder.file("cudnn-1.answers.new-abc", ""), old);
  (void)folder.file("cudnn-2.answers.new-def", "");  // still being written
  fs::last_write_time(folder.file("notes.txt", ""), old);
  keep(folder.path(), "card", {1});
  const auto names = folder.names();
  CHECK(names.size() == most_answer_files + 2);
  CHECK(!fs::exists(folder.path("cudnn-105.answers")));
  CHECK(fs::exists(folder.path("cudnn-106.answers")));
  CHECK(!fs::exists(folder.path("cudnn-1.answers.new-abc")));
  CHECK(fs::exists(folder.path("cudnn-2.answers.new-def")));
  CHECK(fs::exists(folder.path("notes.txt")));
  CHECK(found(folder.path(), "card", 1) == "eng1=1 eng0=0 ");
}

TEST_CASE("a file that is used counts as new") {
  const TemporaryFolder folder;
  keep(folder.path(), "card", {1});
  const std::string path = CudnnAnswerCache(folder.path(), "card").path();
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(path, now - std::chrono::hours(48));
  CHECK(found(folder.path(), "card", 1) == "eng1=1 eng0=0 ");
  CHECK(fs::last_write_time(path) >= now);
}

TEST_CASE("where the cache is") {
  const Variable off("STOWAGE_NO_CACHE", nullptr);
  const Variable cache("XDG_CACHE_HOME", "/some/cache");
  const Variable home("HOME", "/home/me");
  CHECK(default_cache_folder() == "/some/cache/stowage");
  {
    const Variable relative("XDG_CACHE_HOME", "cache");
    CHECK(default_cache_folder() == "/home/me/.cache/stowage");
    const Variable nowhere("HOME", "");
    CHECK(default_cache_folder() == "");
    const Variable unset("HOME", nullptr);
    CHECK(default_cache_folder() == "");
  }
  const Variable on("STOWAGE_NO_CACHE", "1");
  CHECK(default_cache_folder() == "");
}

TEST_CASE("circumstances: other libraries, another card or other sources are others") {
  if (cudnn_forwarder().path().empty()) {
    MESSAGE("SKIPPED, cuDNN is not here");
    CHECK(cudnn_circumstances("asker", "card") == "");
    return;
  }
  const std::string usual = cudnn_circumstances("asker", "card");
  CHECK(usual == cudnn_circumstances("asker", "card"));
  CHECK(usual.find(file_stamp(cudnn_forwarder().path())) != std::string::npos);
  CHECK(usual != cudnn_circumstances("asker", "another card"));
  CHECK(usual != cudnn_circumstances("another asker", "card"));
  const Variable path("LD_LIBRARY_PATH", "/somewhere/else");
  CHECK(usual != cudnn_circumstances("asker", "card"));
}
