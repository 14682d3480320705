#include "gpu_probe/cudnn/library.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "gpu_probe/cudnn/circumstances.hpp"
#include "gpu_probe/driver/driver_presence.hpp"
#include "gpu_probe/driver/found_libraries.hpp"

namespace stowage {
namespace {

constexpr std::size_t oldest_version = 90800;  // the first that can be told of a described device
// cuDNN 9.28 links its engines with the driver's library. cuDNN 9.26 does not, and is asked without
// it: where it finds the library it compiles engines, which takes thirty times as long.
constexpr std::size_t first_linked_with_driver = 92700;

Result<CudnnLibrary> load() {
  const SharedLibrary& file = cudnn_forwarder();
  if (!file) return failure("cuDNN is not installed (libcudnn.so.9 was not found)");
  auto library = bind_cudnn(file);
  if (!library) return library;
  const std::size_t version = library->get_version();
  if (version < oldest_version) {
    return failure(fmt::format("cuDNN {} cannot be told of a device; {} can",
                               library_version_text(version),
                               library_version_text(oldest_version)));
  }
  if (version >= first_linked_with_driver) {
    if (const auto driver = ensure_driver_loads(); !driver) return tl::unexpected(driver.error());
  }
  return library;
}

}  // namespace

Result<CudnnLibrary> bind_cudnn(const SharedLibrary& file) {
  CudnnLibrary library;
  const bool whole = file.bind("cudnnGetVersion", library.get_version) &&
                     file.bind("cudnnGetErrorString", library.get_error_string) &&
                     file.bind("cudnnGetLastErrorString", library.get_last_error_string) &&
                     file.bind("cudnnBackendCreateDescriptor", library.create) &&
                     file.bind("cudnnBackendDestroyDescriptor", library.destroy) &&
                     file.bind("cudnnBackendSetAttribute", library.set_attribute) &&
                     file.bind("cudnnBackendGetAttribute", library.get_attribute) &&
                     file.bind("cudnnBackendFinalize", library.finalize) &&
                     file.bind("cudnnCreate", library.create_handle) &&
                     file.bind("cudnnDestroy", library.destroy_handle) &&
                     file.bind("cudnnSetStream", library.set_stream) &&
                     file.bind("cudnnBackendExecute", library.execute);
  if (!whole) return failure("libcudnn.so.9 lacks the backend interface");
  return library;
}

std::string CudnnLibrary::version() const { return library_version_text(get_version()); }

void CudnnLibrary::check(cudnnStatus_t status, const char* what) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> detail = {};
  get_last_error_string(detail.data(), detail.size());
  throw LibraryFailure(
      fmt::format("cuDNN: {}: {} {}", what, get_error_string(status), detail.data()));
}

Result<const CudnnLibrary*> cudnn_library() {
  static const Result<CudnnLibrary> library = load();
  if (!library) return tl::unexpected(library.error());
  return &*library;
}

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type)
    : library_(&library) {
  library.check(library.create(type, &descriptor_), "creating a descriptor");
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : library_(other.library_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_) library_->destroy(descriptor_);
}

void CudnnDescriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                              std::int64_t count, const void* values) {
  library_->check(library_->set_attribute(descriptor_, name, type, count, values),
                  "setting an attribute");
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set_raw(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                          std::span<const CudnnDescriptor> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& value : values) raw.push_back(value.get());
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
}

void CudnnDescriptor::set_pointers(cudnnBackendAttributeName_t name,
                                   std::span<void* const> values) {
  set_raw(name, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(values.size()), values.data());
}

void CudnnDescriptor::set_handle(cudnnBackendAttributeName_t name, void* handle) {
  set_raw(name, CUDNN_TYPE_HANDLE, 1, &handle);
}

void CudnnDescriptor::set_text(cudnnBackendAttributeName_t name, const std::string& text) {
  set_raw(name, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()), text.data());
}

void CudnnDescriptor::finalize(const char* what) {
  library_->check(library_->finalize(descriptor_), what);
}

bool CudnnDescriptor::try_finalize() {
  return library_->finalize(descriptor_) == CUDNN_STATUS_SUCCESS;
}

std::int64_t CudnnDescriptor::get_integer(cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type) const {
  std::int64_t value = 0;  // an enumeration fills its low half: little-endian
  std::int64_t count = 0;
  library_->check(library_->get_attribute(descriptor_, name, type, 1, &count, &value),
                  "reading an attribute");
  return value;
}

std::vector<cudnnBackendNumericalNote_t> CudnnDescriptor::get_notes() const {
  std::vector<cudnnBackendNumericalNote_t> notes(most_numerical_notes);
  std::int64_t count = 0;
  library_->check(library_->get_attribute(
                      descriptor_, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                      static_cast<std::int64_t>(notes.size()), &count, notes.data()),
                  "reading an engine's notes");
  notes.resize(static_cast<std::size_t>(count));
  return notes;
}

void CudnnDescriptor::get_descriptor(cudnnBackendAttributeName_t name,
                                     CudnnDescriptor& into) const {
  std::int64_t count = 0;
  library_->check(library_->get_attribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                          &count, &into.descriptor_),
                  "reading a descriptor");
}

std::int64_t CudnnDescriptor::count(cudnnBackendAttributeName_t name) const {
  std::int64_t count = 0;
  library_->check(
      library_->get_attribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
      "counting descriptors");
  return count;
}

std::vector<CudnnDescriptor> CudnnDescriptor::get_descriptors(cudnnBackendAttributeName_t name,
                                                              cudnnBackendDescriptorType_t type,
                                                              std::int64_t capacity) const {
  std::vector<CudnnDescriptor> descriptors;
  if (capacity < 1) return descriptors;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < capacity; ++i) {
    raw.push_back(descriptors.emplace_back(*library_, type).get());
  }
  std::int64_t filled = 0;
  library_->check(library_->get_attribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          capacity, &filled, raw.data()),
                  "reading descriptors");
  while (static_cast<std::int64_t>(descriptors.size()) > filled) descriptors.pop_back();
  return descriptors;
}

}  // namespace stowage
