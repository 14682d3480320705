// CudnnLibrary: libcudnn, loaded when it is first needed. CudnnDescriptor: one of its backend
// descriptors, as a value.
//
// Failures are thrown as LibraryFailure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/cudnn/declarations.hpp"
#include "gpu_probe/driver/library_failure.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {

/// The functions that we call.
struct CudnnLibrary {
  CudnnFunctions::GetVersion* get_version = nullptr;
  CudnnFunctions::GetErrorString* get_error_string = nullptr;
  CudnnFunctions::GetLastErrorString* get_last_error_string = nullptr;
  CudnnFunctions::CreateDescriptor* create = nullptr;
  CudnnFunctions::DestroyDescriptor* destroy = nullptr;
  CudnnFunctions::SetAttribute* set_attribute = nullptr;
  CudnnFunctions::GetAttribute* get_attribute = nullptr;
  CudnnFunctions::Finalize* finalize = nullptr;
  // Functions that need a device.
  CudnnFunctions::Create* create_handle = nullptr;
  CudnnFunctions::Destroy* destroy_handle = nullptr;
  CudnnFunctions::SetStream* set_stream = nullptr;
  CudnnFunctions::Execute* execute = nullptr;

  /// "9.19.0"
  [[nodiscard]] std::string version() const;
  /// Throws LibraryFailure unless the status is a success. Every status of cuDNN becomes text here.
  void check(cudnnStatus_t status, const char* what) const;
};

/// Loads cuDNN at the first call, from where cudnn_forwarder() finds it. It stays loaded. Errors:
/// not found; older than 9.8, which cannot be told of a described device.
[[nodiscard]] Result<const CudnnLibrary*> cudnn_library();

/// The functions of a cuDNN that is loaded. Errors: it lacks one.
[[nodiscard]] Result<CudnnLibrary> bind_cudnn(const SharedLibrary& file);

/// Owns one backend descriptor.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;
  ~CudnnDescriptor();

  [[nodiscard]] cudnnBackendDescriptor_t get() const { return descriptor_; }

  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  /// A list of descriptors.
  void set(cudnnBackendAttributeName_t name, std::span<const CudnnDescriptor> values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value) {
    set(name, std::span(&value, 1));
  }
  template <typename T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set_raw(name, type, 1, &value);
  }
  /// A list of addresses on a device.
  void set_pointers(cudnnBackendAttributeName_t name, std::span<void* const> values);
  void set_handle(cudnnBackendAttributeName_t name, void* handle);
  void set_text(cudnnBackendAttributeName_t name, const std::string& text);
  void finalize(const char* what);
  [[nodiscard]] bool try_finalize();

  [[nodiscard]] std::int64_t get_integer(cudnnBackendAttributeName_t name,
                                         cudnnBackendAttributeType_t type) const;
  /// The notes of an engine descriptor.
  [[nodiscard]] std::vector<cudnnBackendNumericalNote_t> get_notes() const;
  /// Fills `into`, which the caller has created: cuDNN wants it so.
  void get_descriptor(cudnnBackendAttributeName_t name, CudnnDescriptor& into) const;
  /// The elements of a list attribute, descriptors of `type`; at most `capacity` of them.
  [[nodiscard]] std::vector<CudnnDescriptor> get_descriptors(cudnnBackendAttributeName_t name,
                                                             cudnnBackendDescriptorType_t type,
                                                             std::int64_t capacity) const;
  /// How many elements a list attribute has. cuDNN does not tell it for all attributes.
  [[nodiscard]] std::int64_t count(cudnnBackendAttributeName_t name) const;

 private:
  void set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               std::int64_t count, const void* values);

  const CudnnLibrary* library_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace stowage
