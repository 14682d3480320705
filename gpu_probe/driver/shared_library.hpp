// SharedLibrary: a library that is opened by name at run time, and stays open.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace stowage {

class SharedLibrary {
 public:
  SharedLibrary() = default;  ///< no library
  explicit SharedLibrary(const std::string& name)
      : handle_(dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {}

  /// Whether it was opened.
  explicit operator bool() const { return handle_ != nullptr; }

  /// The file that the loader opened; "" where it opened none.
  [[nodiscard]] std::string path() const {
    link_map* map = nullptr;
    return handle_ && dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
  }

  /// Sets `function` to the symbol's address; to null, and returns false, where there is no such
  /// symbol.
  template <typename Function>
  bool bind(const char* name, Function& function) const {
    function = handle_ ? reinterpret_cast<Function>(dlsym(handle_, name)) : nullptr;
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;  // never closed: a driver may not survive that
};

/// The first of `files` that can be opened; none: a library that is not open.
[[nodiscard]] inline SharedLibrary first_that_loads(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (const SharedLibrary library(file); library) return library;
  }
  return {};
}

}  // namespace stowage
