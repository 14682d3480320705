// What the program does on signals.
//
//   SIGTERM          ends it with 143
//   SIGINT           ends it with 130; the first one only asks a search to stop, where it has
//                    something to show for itself (a StoppableSearch)
//   SIGPIPE, SIGXFSZ are ignored: the write fails instead, and is reported as such
#pragma once

#include <string>

namespace stowage {

void install_signal_handlers();

/// A file that is removed when a signal ends the program; "" for none. One at a time.
void remove_on_signal(const std::string& path);

/// While one of these lives and has_result() was called, a first SIGINT only sets interrupted().
/// One at a time.
class StoppableSearch {
 public:
  StoppableSearch();
  ~StoppableSearch();
  StoppableSearch(const StoppableSearch&) = delete;
  StoppableSearch& operator=(const StoppableSearch&) = delete;
  void has_result() const;
};
[[nodiscard]] bool interrupted();

}  // namespace stowage
