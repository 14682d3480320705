// OutputFile: a file that appears whole or not at all.
//
// Opened before long work (so that a bad path is an error at once) under a temporary name in the
// same folder, renamed by commit(); an uncommitted one is removed, on SIGINT and SIGTERM too.
// At most one exists at a time. Not thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

class OutputFile {
 public:
  [[nodiscard]] static Result<OutputFile> open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  [[nodiscard]] Result<void> commit(std::string_view content);

 private:
  OutputFile(std::string path, std::string temporary, int descriptor);
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// Ends the program with 130 (SIGINT) or 143 (SIGTERM) after removing an open OutputFile's
/// temporary. A first SIGINT only sets interrupted() after poll_interrupts(true).
void install_signal_handlers();
void poll_interrupts(bool polls);
[[nodiscard]] bool interrupted();

}  // namespace stowage
