#include "estimator/base/read_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace stowage {

namespace {

struct Limit {
  std::string_view name;
  Bytes most;
};

Limit limit_of(FileKind kind) {
  switch (kind) {
    case FileKind::description:
      return {"a description", 16_MiB};
    case FileKind::card:
      return {"a card file", 1_MiB};
    case FileKind::calibration:
      return {"a calibration", 1_MiB};
    case FileKind::host:
      return {"a host file", 1_MiB};
    case FileKind::step:
    case FileKind::model:
      return {"a step file", 64_MiB};
    case FileKind::plan:
      return {"a plan", 64_MiB};
  }
  return {};
}

constexpr std::size_t told_by = 4096;  // bytes, as is_step_file (estimator/document) looks at

/// A model's limit is a step file's only where it begins as one.
Limit limit_of_content(FileKind kind, std::string_view start) {
  if (kind != FileKind::model) return limit_of(kind);
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  const bool is_step = first != start.npos && start[first] == '{' &&
                       start.substr(0, told_by).find("\"stowage-step\"") != start.npos;
  return limit_of(is_step ? FileKind::step : FileKind::description);
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path, bool may_be_stdin = true)
      : is_stdin_(may_be_stdin && path == "-"),
        descriptor_(is_stdin_ ? STDIN_FILENO
                              : open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~Descriptor() {
    if (!is_stdin_ && descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool is_stdin() const { return is_stdin_; }

 private:
  bool is_stdin_;
  int descriptor_;
};

void wait_for_data(int descriptor) {
  pollfd wanted{.fd = descriptor, .events = POLLIN, .revents = 0};
  (void)poll(&wanted, 1, -1);
}

/// A pipe that was opened before its writer reads as ended: true once there is data or a writer.
bool has_writer(int descriptor) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(pipe_patience);
  pollfd wanted{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, static_cast<int>(milliseconds.count())) > 0;
}

class Reader {
 public:
  Reader(const std::string& path, FileKind kind)
      : path_(path), kind_(kind), limit_(limit_of(kind)) {}

  Result<std::string> run(FileTypes types) {
    const Descriptor file(path_);
    struct stat status = {};
    if (file.get() < 0 || fstat(file.get(), &status) != 0) return cannot("open");
    if (S_ISDIR(status.st_mode)) return failure(fmt::format("'{}' is a folder", path_));
    const bool is_regular = S_ISREG(status.st_mode);
    if (types == FileTypes::regular && !is_regular) {
      return failure(fmt::format("'{}' is not a regular file", path_));
    }
    if (is_regular) {
      std::array<char, told_by> start{};
      const ssize_t have = pread(file.get(), start.data(), start.size(), 0);
      limit_ =
          limit_of_content(kind_, {start.data(), have > 0 ? static_cast<std::size_t>(have) : 0});
      if (status.st_size > limit_.most.count()) return too_large();
    }
    if (!file.is_stdin() && S_ISFIFO(status.st_mode)) waits_for_writer_ = true;
    return read_all(file.get());
  }

 private:
  Result<std::string> read_all(int descriptor) {
    std::string text;
    std::array<char, std::size_t{1} << 16> chunk{};
    while (true) {
      const ssize_t count = read(descriptor, chunk.data(), chunk.size());
      if (count > 0) {
        text.append(chunk.data(), static_cast<std::size_t>(count));
        waits_for_writer_ = false;
        limit_ = limit_of_content(kind_, text);
        if (text.size() > static_cast<std::size_t>(limit_.most.count())) return too_large();
      } else if (count == 0) {
        if (!std::exchange(waits_for_writer_, false)) return text;
        if (!has_writer(descriptor)) {
          return failure(fmt::format("'{}' is a pipe that nothing is written to", path_));
        }
      } else if (errno == EAGAIN) {
        wait_for_data(descriptor);
      } else if (errno != EINTR) {
        return cannot("read");
      }
    }
  }

  [[nodiscard]] tl::unexpected<Diagnostics> cannot(std::string_view what) const {
    return failure(fmt::format("cannot {} '{}': {}", what, path_, std::strerror(errno)));
  }
  [[nodiscard]] tl::unexpected<Diagnostics> too_large() const {
    return failure(fmt::format("'{}' is larger than {}, the most that {} may have", path_,
                               format_bytes(limit_.most), limit_.name));
  }

  const std::string& path_;
  FileKind kind_;
  Limit limit_;
  bool waits_for_writer_ = false;
};

}  // namespace

Bytes largest_file(FileKind kind) { return limit_of(kind).most; }

Result<SourceTextPtr> read_source(const std::string& path, FileKind kind, FileTypes types) {
  return Reader(path, kind).run(types).map([&](std::string text) -> SourceTextPtr {
    return std::make_shared<const SourceText>(SourceText{.name = path, .text = std::move(text)});
  });
}

std::optional<std::string> read_file_start(const std::string& path, std::size_t count) {
  const Descriptor file(path, false);
  struct stat status = {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  std::string bytes(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t more = read(file.get(), bytes.data() + have, count - have);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return std::nullopt;
    if (more == 0) break;
    have += static_cast<std::size_t>(more);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace stowage
