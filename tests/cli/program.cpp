#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace stowage::testing {

namespace {

void limit(__rlimit_resource resource, const std::optional<Bytes>& most) {
  if (!most) return;
  const auto count = static_cast<rlim_t>(most->count());
  const rlimit both{.rlim_cur = count, .rlim_max = count};
  setrlimit(resource, &both);
}

}  // namespace

Outcome stowage_program(const std::vector<std::string>& words, const Circumstances& circumstances) {
  const TemporaryFolder folder;
  const std::string input = folder.file("in", circumstances.input);
  const std::string output = folder.file("out", "");
  const std::string errors = folder.file("err", "");

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    dup2(open(input.c_str(), O_RDONLY), STDIN_FILENO);
    dup2(open(output.c_str(), O_WRONLY), STDOUT_FILENO);
    dup2(open(errors.c_str(), O_WRONLY), STDERR_FILENO);
    unsetenv("STOWAGE_CONFIGS");
    setenv("STOWAGE_NO_CACHE", "1", 1);  // the user's own cache is none of a test's business
    for (const auto& [name, value] : circumstances.environment) {
      if (value.empty()) {
        unsetenv(name.c_str());
      } else {
        setenv(name.c_str(), value.c_str(), 1);
      }
    }
    limit(RLIMIT_FSIZE, circumstances.largest_file);
    limit(RLIMIT_AS, circumstances.address_space);
    std::vector<char*> argv{const_cast<char*>("stowage")};
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(STOWAGE_PROGRAM, argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return Outcome{exit_code, file_text(output), file_text(errors)};
}

}  // namespace stowage::testing
