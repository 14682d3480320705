// OutputFile: a file that appears whole or not at all.
//
// Opened before long work, so that a bad path is an error at once. The content goes into a nameless
// file in the same folder (O_TMPFILE) or, where the file system has none, under a temporary name;
// commit() gives it the wanted name, over what stood there before. A symbolic link is followed: its
// target is replaced and the link stays. A temporary name that is not committed is removed, on
// SIGINT and SIGTERM too; a nameless file needs no removing, whatever ends the program.
// At most one exists at a time. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/output/report.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

class OutputFile {
 public:
  /// Errors: a folder, a folder that is not there or may not be written to, a link that leads
  /// nowhere one could write.
  [[nodiscard]] static Result<OutputFile> open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// Errors: it cannot be written in full; what stood there before is then untouched.
  [[nodiscard]] Result<void> commit(std::string_view content);

 private:
  enum class Kind { nameless, temporary, direct };  ///< direct: a device or a pipe
  OutputFile(Kind kind, std::string path, std::string target, int descriptor);
  [[nodiscard]] tl::unexpected<Diagnostics> cannot_write() const;
  [[nodiscard]] bool give_temporary_name();
  Kind kind_;
  std::string path_;       ///< as typed
  std::string target_;     ///< what is replaced: `path_` with links followed
  std::string temporary_;  ///< empty: it has no name
  int descriptor_ = -1;
};

/// The file that a command writes; none for "" and "-", which mean stdout. Errors: as open's.
[[nodiscard]] Result<std::optional<OutputFile>> open_output(const std::string& name);
/// The text as the file's content, or, where there is none, as all that the report prints. Errors:
/// as commit's.
[[nodiscard]] Result<void> put_out(std::string text, std::optional<OutputFile>& file,
                                   Report& report);

}  // namespace stowage
