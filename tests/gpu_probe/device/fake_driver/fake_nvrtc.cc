// A pretended NVRTC that compiles nothing: its result for a function is the function's name, by
// which the pretended driver finds the body to run.
#include <cstddef>
#include <cstring>
#include <set>
#include <string>

namespace {

struct Program {
  std::string names;
};
std::set<std::string> lowered;

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_PRETENDED"; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
int nvrtcGetSupportedArchs(int* architectures) { return *architectures = 86, 0; }
int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*,
                       const char* const*) {
  return *program = new Program, 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return *program = nullptr, 0;
}
int nvrtcAddNameExpression(void* program, const char* name) {
  static_cast<Program*>(program)->names += name;
  return 0;
}
int nvrtcCompileProgram(void*, int, const char* const*) { return 0; }
int nvrtcGetProgramLogSize(void*, std::size_t* size) { return *size = 1, 0; }
int nvrtcGetProgramLog(void*, char* log) { return *log = 0, 0; }
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return *size = static_cast<Program*>(program)->names.size(), 0;
}
int nvrtcGetCUBIN(void* program, char* cubin) {
  const std::string& names = static_cast<Program*>(program)->names;
  return std::memcpy(cubin, names.data(), names.size()), 0;
}
int nvrtcGetLoweredName(void*, const char* name, const char** result) {
  return *result = lowered.emplace(name).first->c_str(), 0;
}

}  // extern "C"
