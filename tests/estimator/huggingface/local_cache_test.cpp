// hf:NAME: the hub's cache as huggingface_hub lays it out, whole and broken.
#include "estimator/huggingface/local_cache.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

/// A repository in a cache, with links from snapshots into blobs.
class CachedRepository {
 public:
  CachedRepository(const fs::path& cache, const std::string& folder) : root_(cache / folder) {
    fs::create_directories(root_ / "blobs");
  }

  void reference(const std::string& name, const std::string& commit) const {
    fs::create_directories((root_ / "refs" / name).parent_path());
    std::ofstream(root_ / "refs" / name) << commit;
  }
  void snapshot(const std::string& commit) const {
    fs::create_directories(root_ / "snapshots" / commit);
  }
  void link(const std::string& commit, const std::string& blob, bool is_there = true) const {
    snapshot(commit);
    if (is_there) std::ofstream(root_ / "blobs" / blob) << "{}";
    fs::create_symlink(fs::path("../../blobs") / blob,
                       root_ / "snapshots" / commit / "config.json");
  }

 private:
  fs::path root_;
};

std::string refusal(const std::string& name, const std::string& cache) {
  const auto found = cached_config(name, cache);
  return found ? "found " + found->string() : render(found.error());
}

/// Sets a variable, or removes it where `value` is null; puts back what was there.
class SetVariable {
 public:
  SetVariable(const char* name, const char* value) : name_(name) {
    if (const char* const before = getenv(name)) before_ = before;
    had_ = getenv(name) != nullptr;
    if (value != nullptr) setenv(name, value, 1);
    if (value == nullptr) unsetenv(name);
  }
  ~SetVariable() {
    if (had_) setenv(name_, before_.c_str(), 1);
    if (!had_) unsetenv(name_);
  }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

}  // namespace

TEST_CASE("hf:NAME is looked up in the local cache alone, by branch, tag or commit") {
  const testing::TemporaryFolder folder;
  const CachedRepository repository(folder.path(), "models--meta--small");
  repository.reference("main", "0123abc");
  repository.link("0123abc", "one");
  repository.reference("refs/pr/1", "4567def");
  repository.link("4567def", "two");
  const auto snapshot_of = [&](const std::string& name) {
    const auto found = cached_config(name, folder.path());
    return found ? found->parent_path().filename().string() : render(found.error());
  };
  CHECK(snapshot_of("meta/small") == "0123abc");
  CHECK(snapshot_of("meta/small@main") == "0123abc");
  CHECK(snapshot_of("meta/small@refs/pr/1") == "4567def");
  CHECK(snapshot_of("meta/small@4567def") == "4567def");
  CHECK(refusal("meta/large", folder.path()) ==
        "error: 'meta/large' is not in the Hugging Face cache " + folder.path() +
            "\n  stowage does not download; `hf download meta/large config.json` puts it there, or "
            "name the file itself\n");
  CHECK(refusal("meta/small@v2", folder.path()) ==
        "error: the Hugging Face cache " + folder.path() +
            " has 'meta/small', but no revision 'v2' of it\n  there is hf:meta/small@main, "
            "hf:meta/small@refs/pr/1; stowage does not download; `hf download meta/small "
            "config.json` with the revision v2 puts it there, or name the file itself\n");
  for (const char* const name : {"", "../x", "a/b/c", "a/..", "/etc/passwd", "a//b", "-a", "a/b@",
                                 "a/b@../../x", "a/b@/etc", "a/b@x@y", "@main"}) {
    CAPTURE(name);
    CHECK(refusal(name, folder.path()).find("' does not name a model") != std::string::npos);
  }
}

TEST_CASE("a revision that cannot be asked for is not offered") {
  const testing::TemporaryFolder folder;
  const CachedRepository odd(folder.path(), "models--a--odd");
  odd.reference("v1", "abc");
  odd.reference("; echo", "abc");
  odd.reference("-x", "abc");
  CHECK(refusal("a/odd@v2", folder.path()).find("\n  there is hf:a/odd@v1; stowage does") !=
        std::string::npos);
}

TEST_CASE("a cached model without its configuration is told apart from one that is not cached") {
  const testing::TemporaryFolder folder;
  const CachedRepository tagged(folder.path(), "models--a--tagged");
  tagged.link("abc", "one");
  CHECK(refusal("a/tagged", folder.path()).find("there is hf:a/tagged@abc; ") != std::string::npos);

  const CachedRepository dangling(folder.path(), "models--a--dangling");
  dangling.reference("main", "abc");
  dangling.link("abc", "gone", false);
  CHECK(refusal("a/dangling", folder.path()).find("error: the link ") == 0);
  CHECK(refusal("a/dangling", folder.path()).find("leads to a file that is not there\n") !=
        std::string::npos);

  const CachedRepository bare(folder.path(), "models--bare");
  bare.reference("main", "abc");
  bare.snapshot("abc");
  CHECK(refusal("bare", folder.path()).find("has 'bare', but no config.json of it\n") !=
        std::string::npos);
  const CachedRepository lost(folder.path(), "models--lost");
  lost.reference("main", "abc");
  CHECK(refusal("lost", folder.path()).find("has 'lost', but no config.json of it\n") !=
        std::string::npos);
}

TEST_CASE("the cache is where huggingface_hub's variables say") {
  const SetVariable home("HOME", "/home/a");
  const SetVariable shared("XDG_CACHE_HOME", nullptr);
  const SetVariable hub_home("HF_HOME", nullptr);
  const SetVariable older("HUGGINGFACE_HUB_CACHE", nullptr);
  const SetVariable cache("HF_HUB_CACHE", nullptr);
  CHECK(environment_cache() == "/home/a/.cache/huggingface/hub");
  const SetVariable with_shared("XDG_CACHE_HOME", "/shared");
  CHECK(environment_cache() == "/shared/huggingface/hub");
  const SetVariable with_home("HF_HOME", "~/models");
  CHECK(environment_cache() == "/home/a/models/hub");
  const SetVariable with_older("HUGGINGFACE_HUB_CACHE", "/older");
  CHECK(environment_cache() == "/older");
  const SetVariable with_cache("HF_HUB_CACHE", "/newer");
  CHECK(environment_cache() == "/newer");
}

TEST_CASE("a pipe in the place of a reference or a configuration is not waited for") {
  const testing::TemporaryFolder folder;
  const fs::path cache = folder.path();
  const fs::path repository = cache / "models--org--net";
  fs::create_directories(repository / "refs");
  REQUIRE(mkfifo((repository / "refs" / "main").c_str(), 0600) == 0);
  CHECK(refusal("org/net", cache).find("error: 'org/net' is not in the Hugging Face cache") == 0);
  fs::remove(repository / "refs" / "main");
  const CachedRepository whole(cache, "models--org--net");
  whole.reference("main", "abc");
  whole.snapshot("abc");
  REQUIRE(mkfifo((repository / "snapshots" / "abc" / "config.json").c_str(), 0600) == 0);
  CHECK(refusal("org/net", cache).find("has 'org/net', but no config.json of it") !=
        std::string::npos);
}

}  // namespace stowage
