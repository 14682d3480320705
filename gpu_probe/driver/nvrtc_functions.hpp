// NvrtcFunctions: the functions of NVRTC that we call, declared as in its documentation (CUDA 12
// and 13). Where the build finds NVRTC's header, declarations_check.cpp compares them.
#pragma once

#include <cstddef>

#define STOWAGE_NVRTC_FUNCTIONS(FUNCTION)                                                        \
  FUNCTION(version, nvrtcVersion, (int* major, int* minor))                                      \
  FUNCTION(architecture_count, nvrtcGetNumSupportedArchs, (int* count))                          \
  FUNCTION(architectures, nvrtcGetSupportedArchs, (int* architectures))                          \
  FUNCTION(create, nvrtcCreateProgram,                                                           \
           (void** program, const char* source, const char* name, int header_count,              \
            const char* const* headers, const char* const* header_names))                        \
  FUNCTION(destroy, nvrtcDestroyProgram, (void** program))                                       \
  FUNCTION(add_name, nvrtcAddNameExpression, (void* program, const char* name))                  \
  FUNCTION(compile, nvrtcCompileProgram, (void* program, int count, const char* const* options)) \
  FUNCTION(log_size, nvrtcGetProgramLogSize, (void* program, std::size_t* size))                 \
  FUNCTION(log, nvrtcGetProgramLog, (void* program, char* log))                                  \
  FUNCTION(cubin_size, nvrtcGetCUBINSize, (void* program, std::size_t* size))                    \
  FUNCTION(cubin, nvrtcGetCUBIN, (void* program, char* cubin))                                   \
  FUNCTION(lowered_name, nvrtcGetLoweredName,                                                    \
           (void* program, const char* name, const char** lowered))

namespace stowage {

struct NvrtcFunctions {
#define STOWAGE_DECLARE(name, symbol, arguments) int(*name) arguments = nullptr;
  STOWAGE_NVRTC_FUNCTIONS(STOWAGE_DECLARE)
#undef STOWAGE_DECLARE
  const char* (*error_text)(int error) = nullptr;  ///< nvrtcGetErrorString
};

}  // namespace stowage
