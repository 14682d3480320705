#include "cli/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace stowage {

namespace {

// Read by the signal handler: a plain buffer, and a flag set last.
std::array<char, 4096> open_temporary{};
std::atomic<bool> has_open_temporary{false};
std::atomic<bool> polling{false};
std::atomic<bool> was_interrupted{false};

extern "C" void on_signal(int signal) {
  if (signal == SIGINT && polling && !was_interrupted.exchange(true)) return;
  if (has_open_temporary) unlink(open_temporary.data());
  _exit(128 + signal);
}

std::string system_error_text() { return std::strerror(errno); }

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` a write fails, and the failure is said
}

void poll_interrupts(bool polls) { polling = polls; }
bool interrupted() { return was_interrupted; }

OutputFile::OutputFile(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Result<OutputFile> OutputFile::open(const std::string& path) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    return failure(fmt::format("cannot write '{}': it is a folder", path));
  }
  if (exists && access(path.c_str(), W_OK) != 0) {
    return failure(fmt::format("cannot write '{}': {}", path, system_error_text()));
  }
  if (exists && !S_ISREG(status.st_mode)) {  // /dev/stdout, a pipe: nothing to rename
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) {
      return failure(fmt::format("cannot write '{}': {}", path, system_error_text()));
    }
    return OutputFile(path, "", descriptor);
  }
  std::string temporary = path + ".XXXXXX";
  const int descriptor = mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) {
    return failure(fmt::format("cannot write '{}': {}", path, system_error_text()));
  }
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, exists ? (status.st_mode & 0777) : (0666 & ~mask));
  if (temporary.size() < open_temporary.size()) {
    std::strcpy(open_temporary.data(), temporary.c_str());
    has_open_temporary = true;
  }
  return OutputFile(path, std::move(temporary), descriptor);
}

Result<void> OutputFile::commit(std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(descriptor_, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return failure(fmt::format("cannot write '{}': {}", path_, system_error_text()));
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (close(std::exchange(descriptor_, -1)) != 0) {
    return failure(fmt::format("cannot write '{}': {}", path_, system_error_text()));
  }
  if (temporary_.empty()) return {};
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return failure(fmt::format("cannot write '{}': {}", path_, system_error_text()));
  }
  has_open_temporary = false;
  temporary_.clear();
  return {};
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  has_open_temporary = false;
}

}  // namespace stowage
