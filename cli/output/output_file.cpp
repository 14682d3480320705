#include "cli/output/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/output/signals.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as the kernel has it

tl::unexpected<Diagnostics> write_failure(const std::string& path, int error) {
  return failure(fmt::format("cannot write '{}': {}", path, std::strerror(error)));
}

// The end of a chain of links, which need not exist yet. Empty: the chain has no end.
std::string followed(const std::string& path) {
  fs::path at = path;
  for (int i = 0; i < most_links; ++i) {
    std::error_code code;
    const fs::path next = fs::read_symlink(at, code);
    if (code) return at.string();
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return {};
}

mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

OutputFile::OutputFile(Kind kind, std::string path, std::string target, int descriptor)
    : kind_(kind), path_(std::move(path)), target_(std::move(target)), descriptor_(descriptor) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : kind_(other.kind_),
      path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Result<OutputFile> OutputFile::open(const std::string& path) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    return failure(fmt::format("cannot write '{}': it is a folder", path));
  }
  if (exists && access(path.c_str(), W_OK) != 0) return write_failure(path, errno);
  if (exists && !S_ISREG(status.st_mode)) {  // /dev/stdout, a pipe: nothing to replace
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return write_failure(path, errno);
    return OutputFile(Kind::direct, path, path, descriptor);
  }
  std::string target = followed(path);
  if (target.empty()) return write_failure(path, ELOOP);
  std::string folder = fs::path(target).parent_path().string();
  if (folder.empty()) folder = ".";
  int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  const bool has_nameless = descriptor >= 0;
  const bool is_unsupported = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
  if (!has_nameless && !is_unsupported) return write_failure(path, errno);
  OutputFile file(has_nameless ? Kind::nameless : Kind::temporary, path, std::move(target),
                  descriptor);
  if (!has_nameless) {
    file.temporary_ = file.target_ + ".XXXXXX";
    file.descriptor_ = mkostemp(file.temporary_.data(), O_CLOEXEC);
    if (file.descriptor_ < 0) {
      file.temporary_.clear();
      return write_failure(path, errno);
    }
    remove_on_signal(file.temporary_);
  }
  fchmod(file.descriptor_, exists ? (status.st_mode & 0777) : usual_mode());
  return file;
}

tl::unexpected<Diagnostics> OutputFile::cannot_write() const { return write_failure(path_, errno); }

// A link cannot replace a file, only a renaming can: a name of its own first.
bool OutputFile::give_temporary_name() {
  const std::string nameless = fmt::format("/proc/self/fd/{}", descriptor_);
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name = fmt::format("{}.{}.{}", target_, getpid(), attempt);
    remove_on_signal(name);
    if (linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = std::move(name);
      return true;
    }
    remove_on_signal({});
    if (errno != EEXIST) return false;
  }
  return false;
}

Result<void> OutputFile::commit(std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(descriptor_, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot_write();
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (kind_ == Kind::nameless && !give_temporary_name()) return cannot_write();
  if (close(std::exchange(descriptor_, -1)) != 0) return cannot_write();
  if (kind_ == Kind::direct) return {};
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return cannot_write();
  temporary_.clear();
  remove_on_signal({});
  return {};
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  remove_on_signal({});
}

Result<std::optional<OutputFile>> open_output(const std::string& name) {
  if (name.empty() || name == "-") return std::nullopt;
  return OutputFile::open(name).map(
      [](OutputFile&& file) { return std::optional<OutputFile>(std::move(file)); });
}

Result<void> put_out(std::string text, std::optional<OutputFile>& file, Report& report) {
  if (file) return file->commit(text);
  report.raw = std::move(text);
  return {};
}

}  // namespace stowage
