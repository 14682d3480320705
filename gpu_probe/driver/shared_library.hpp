// A shared library that is opened by name at run time, and stays open.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <string>

namespace stowage {

class SharedLibrary {
 public:
  SharedLibrary() = default;  ///< none
  explicit SharedLibrary(const std::string& name)
      : handle_(dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {}

  explicit operator bool() const { return handle_ != nullptr; }

  /// Where the loader found it; "" where it did not.
  [[nodiscard]] std::string path() const {
    link_map* map = nullptr;
    return handle_ && dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
  }

  /// Sets `function` to the symbol; false, and null, where there is none.
  template <typename Function>
  bool bind(const char* name, Function& function) const {
    function = handle_ ? reinterpret_cast<Function>(dlsym(handle_, name)) : nullptr;
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;  // never closed: drivers do not like it
};

}  // namespace stowage
