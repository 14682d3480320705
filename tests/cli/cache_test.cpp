// cuDNN's answers from one run of the program to the next.
#include <doctest/doctest.h>

#include "tests/cli/program.hpp"
#include "tests/support/skip.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

constexpr const char* libraries_line = "file=libcudnn_graph";  // what the loader says of cuDNN

/// check mnist-cnn with its cache in `folder`, and with the loader's own log on stderr.
Outcome check_with_cache(const TemporaryFolder& folder, std::vector<std::string> more = {},
                         std::map<std::string, std::string> environment = {}) {
  std::vector<std::string> words{"check", "mnist-cnn", "--gpu", "rtx3090", "--format", "json"};
  words.insert(words.end(), more.begin(), more.end());
  environment.insert({{"STOWAGE_NO_CACHE", ""},
                      {"XDG_CACHE_HOME", folder.path()},
                      {"HOME", folder.path()},
                      {"LD_DEBUG", "files"}});
  return stowage_program(words, {.environment = environment});
}

bool loaded_cudnn(const Outcome& outcome) {
  return outcome.err.find(libraries_line) != std::string::npos;
}

}  // namespace

TEST_SUITE_BEGIN("cudnn");

TEST_CASE("the second run has the first one's answers, and does not start cuDNN") {
  const TemporaryFolder folder;
  const Outcome first = check_with_cache(folder);
  CHECK(first.exit_code == 0);
  if (first.out.find("\"workspace_source\": \"cudnn\"") == std::string::npos) {
    testing::skip("cuDNN is not here");
    CHECK(folder.names().empty());
    return;
  }
  CHECK(loaded_cudnn(first));
  CHECK(folder.names() == std::vector<std::string>{"stowage"});
  const Outcome second = check_with_cache(folder);
  CHECK(second.out == first.out);
  CHECK(!loaded_cudnn(second));
}

TEST_CASE("the cache can be turned off, and need not be possible") {
  const TemporaryFolder folder;
  const Outcome usual = check_with_cache(folder);
  const bool has_cudnn = loaded_cudnn(usual);
  const TemporaryFolder other;
  for (const Outcome& outcome :
       {check_with_cache(other, {"--no-cache"}),
        check_with_cache(other, {}, {{"STOWAGE_NO_CACHE", "1"}}),
        check_with_cache(other, {}, {{"XDG_CACHE_HOME", "/proc/none"}}),
        check_with_cache(other, {}, {{"XDG_CACHE_HOME", ""}, {"HOME", ""}})}) {
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out == usual.out);
    CHECK(loaded_cudnn(outcome) == has_cudnn);
  }
  CHECK(other.names().empty());
  CHECK(loaded_cudnn(check_with_cache(folder, {"--no-cache"})) == has_cudnn);
}

TEST_SUITE_END();

}  // namespace stowage
