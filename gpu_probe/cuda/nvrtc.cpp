#include "gpu_probe/cuda/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "estimator/base/cure.hpp"
#include "gpu_probe/driver/shared_library.hpp"
#include "gpu_probe/kernels/device_source.hpp"

namespace stowage {
namespace {

constexpr std::size_t longest_log = 4000;  // characters of the log in a message

}  // namespace

std::string architecture_text(int major, int minor) { return fmt::format("sm_{}{}", major, minor); }

// Binds all functions of the first library that loads, and asks for its version.
Result<Nvrtc> Nvrtc::open(const std::vector<std::string>& files) {
  std::string why = "it is nowhere";
  for (const std::string& file : files) {
    const SharedLibrary library(file);
    if (!library) {
      const char* const said = dlerror();
      why = said == nullptr ? "unknown" : said;
      continue;
    }
    Nvrtc made;
    const char* lacking = nullptr;
#define STOWAGE_BIND(name, symbol, arguments) \
  if (!library.bind(#symbol, made.functions_.name) && lacking == nullptr) lacking = #symbol;
    STOWAGE_NVRTC_FUNCTIONS(STOWAGE_BIND)
#undef STOWAGE_BIND
    const char* const error_text = "nvrtcGetErrorString";
    if (!library.bind(error_text, made.functions_.error_text) && lacking == nullptr) {
      lacking = error_text;
    }
    if (lacking != nullptr) return failure(fmt::format("'{}' lacks {}", file, lacking));
    int major = 0, minor = 0;
    if (auto ok = made.done(made.functions_.version(&major, &minor), "nvrtcVersion"); !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
    made.version_ = fmt::format("{}.{}", major, minor);
    made.file_ = library.path();
    return made;
  }
  return failure(fmt::format("NVRTC, which compiles our kernels, does not load: {}", why),
                 hint_of(Cure::cuda_libraries));
}

Result<void> Nvrtc::done(int error, const char* call) const {
  if (error == 0) return {};
  return failure(
      fmt::format("{} fails with error {} ({})", call, error, functions_.error_text(error)));
}

Result<std::vector<int>> Nvrtc::architectures() const {
  int count = 0;
  if (auto ok = done(functions_.architecture_count(&count), "nvrtcGetNumSupportedArchs"); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  std::vector<int> found(static_cast<std::size_t>(count));
  if (auto ok = done(functions_.architectures(found.data()), "nvrtcGetSupportedArchs"); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  return found;
}

Result<CompiledKernels> Nvrtc::compile(std::span<const std::string> functions,
                                       const std::string& architecture) const {
  std::vector<const char*> texts, names;
  for (const kernels::DeviceHeader& header : kernels::device_headers()) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  const std::string source = kernels::device_program();
  void* program = nullptr;
  if (auto ok = done(functions_.create(&program, source.c_str(), "stowage.cu",
                                       static_cast<int>(texts.size()), texts.data(), names.data()),
                     "nvrtcCreateProgram");
      !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  auto compiled = compile(program, functions, architecture);
  functions_.destroy(&program);
  return compiled;
}

// Names the functions, compiles the program, and takes from it the cubin and the functions' lowered
// names. A log that is not empty is an error.
Result<CompiledKernels> Nvrtc::compile(void* program, std::span<const std::string> functions,
                                       const std::string& architecture) const {
  for (const std::string& function : functions) {
    if (auto ok = done(functions_.add_name(program, function.c_str()), "nvrtcAddNameExpression");
        !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
  }
  const std::string target = "-arch=" + architecture;
  const char* const options[] = {target.c_str(), "-std=c++20"};
  const int error = functions_.compile(program, static_cast<int>(std::size(options)), options);
  std::size_t size = 0;
  functions_.log_size(program, &size);
  std::string log(size, '\0');
  if (size > 0) functions_.log(program, log.data());
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  // A warning is a mistake in our kernels; tests find it.
  if (error != 0 || !log.empty()) {
    const std::string what = error == 0 ? "a warning" : functions_.error_text(error);
    return failure(fmt::format("NVRTC {} for {}: {}: {}", version_, architecture, what,
                               log.substr(0, longest_log)));
  }
  CompiledKernels compiled;
  if (auto ok = done(functions_.cubin_size(program, &size), "nvrtcGetCUBINSize"); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  compiled.cubin.resize(size);
  if (auto ok = done(functions_.cubin(program, compiled.cubin.data()), "nvrtcGetCUBIN"); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  for (const std::string& function : functions) {
    const char* lowered = nullptr;
    if (auto ok = done(functions_.lowered_name(program, function.c_str(), &lowered),
                       "nvrtcGetLoweredName");
        !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
    compiled.names.emplace_back(lowered);
  }
  return compiled;
}

}  // namespace stowage
