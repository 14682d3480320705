// Our own kernels, compiled by NVRTC, which needs no GPU. That they compile does not mean that they
// have run on one.
#include "gpu_probe/cuda/nvrtc.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gpu_probe/cuda/kernel_cache.hpp"
#include "gpu_probe/cuda/own_kernels.hpp"
#include "gpu_probe/driver/library_places.hpp"
#include "gpu_probe/kernels/device_source.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"
#include "tests/gpu_probe/device/fake_driver/fake_lanes.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::test {
namespace {

namespace fs = std::filesystem;

Result<Nvrtc> nvrtc() { return Nvrtc::open(library_places(NvidiaLibrary::nvrtc, 13)); }

/// The architectures of STOWAGE_ARCHITECTURES, "75 90"; without it only the oldest; for "all" every
/// one that NVRTC knows.
std::vector<int> wanted_architectures(const Nvrtc& compiler) {
  const char* const wanted = std::getenv("STOWAGE_ARCHITECTURES");
  if (wanted != nullptr && std::string(wanted) == "all") return compiler.architectures().value();
  std::istringstream words(wanted == nullptr ? "75" : wanted);
  std::vector<int> found;
  for (int number = 0; words >> number;) found.push_back(number);
  return found;
}

class CacheFolder {
 public:
  CacheFolder() {
    std::string name = (fs::temp_directory_path() / "stowage-kernels-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  ~CacheFolder() { fs::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("the program holds the source of every body that it can launch") {
  const auto headers = kernels::device_headers();
  CHECK(headers.size() > 30);
  for (const kernels::DeviceHeader& header : headers) {
    std::ifstream file(testing::source_path("/") + header.name);
    std::ostringstream text;
    text << file.rdbuf();
    CHECK(text.str() == header.text);
  }
  const auto bodies = kernels::launchable_bodies();
  CHECK(bodies.size() > 400);
  for (const kernels::LaunchableBody& body : bodies) {
    CHECK(body.name.starts_with("stowage::body::"));
  }
}

TEST_CASE("a compiled kernel is kept for its function, architecture and compiler alone") {
  const CacheFolder folder;
  const KernelCache cache(folder.path(), "13.0", "sm_86");
  const CompiledKernels kernel{std::string("bytes\n\0more", 11), {"_Z1f"}};
  cache.add("f<float>", kernel);
  const auto found = cache.find("f<float>");
  REQUIRE(found.has_value());
  CHECK(found->cubin == kernel.cubin);
  CHECK(found->names == kernel.names);
  CHECK_FALSE(cache.find("f<double>").has_value());
  CHECK_FALSE(KernelCache(folder.path(), "13.0", "sm_90").find("f<float>").has_value());
  CHECK_FALSE(KernelCache(folder.path(), "12.9", "sm_86").find("f<float>").has_value());
  CHECK_FALSE(KernelCache("", "13.0", "sm_86").find("f<float>").has_value());

  const std::string path = cache.path("f<float>");
  std::ostringstream whole;
  whole << std::ifstream(path).rdbuf();
  const std::string bytes = whole.str();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, length);
    CHECK_FALSE(cache.find("f<float>").has_value());
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string spoilt = bytes;
    spoilt[i] = static_cast<char>(spoilt[i] ^ 1);
    std::ofstream(path, std::ios::binary) << spoilt;
    CHECK_FALSE(cache.find("f<float>").has_value());
  }
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK(cache.find("f<float>").has_value());
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  CHECK_FALSE(cache.find("f<float>").has_value());
}

TEST_CASE("a file that is no NVRTC is refused") {
  const auto none = Nvrtc::open({});
  REQUIRE(!none.has_value());
  CHECK(none.error().front().message ==
        "NVRTC, which compiles our kernels, does not load: it is nowhere");
  CHECK(!Nvrtc::open({"libno-such-nvrtc.so.1"}).has_value());
  const auto other = Nvrtc::open({STOWAGE_STALE_KERNELS});
  REQUIRE(!other.has_value());
  CHECK(other.error().front().message.find("lacks nvrtcVersion") != std::string::npos);
}

TEST_SUITE("nvrtc") {
  TEST_CASE("every body that can be launched compiles for devices, without a warning") {
    const auto compiler = nvrtc();
    if (!compiler) return testing::skip(compiler.error().front().message);
    std::vector<std::string> functions;
    for (const kernels::LaunchableBody& body : kernels::launchable_bodies()) {
      functions.push_back(kernels::device_function(body.name, body.in_groups));
    }
    for (const int number : wanted_architectures(*compiler)) {
      const auto compiled =
          compiler->compile(functions, architecture_text(number / 10, number % 10));
      if (!compiled) FAIL(compiled.error().front().message);
      CHECK(compiled->names.size() == functions.size());
      CHECK(std::ranges::none_of(compiled->names, &std::string::empty));
      CHECK(compiled->cubin.size() > functions.size() * 100);
      MESSAGE(functions.size(), " kernels for ", architecture_text(number / 10, number % 10),
              " by NVRTC ", compiler->version(), ": ", compiled->cubin.size(), " bytes");
    }
  }

  TEST_CASE("what does not compile is refused with NVRTC's own words") {
    const auto compiler = nvrtc();
    if (!compiler) return testing::skip(compiler.error().front().message);
    const std::vector<std::string> wrong{"stowage::body::each_index<stowage::body::NoSuchBody>"};
    const auto refused = compiler->compile(wrong, "sm_80");
    REQUIRE(!refused.has_value());
    CHECK(refused.error().front().message.find("NoSuchBody") != std::string::npos);
    CHECK(!compiler->compile(wrong, "sm_1").has_value());
    const auto known = compiler->architectures();
    REQUIRE(known.has_value());
    CHECK(std::ranges::is_sorted(*known));
    CHECK(std::ranges::find(*known, 75) != known->end());
  }

  TEST_CASE("a launch compiles its body once, and the next program not at all") {
    const auto compiler = nvrtc();
    if (!compiler) return testing::skip(compiler.error().front().message);
    const SharedLibrary library(STOWAGE_FAKE_LANES);
    FakeLanesEntry entry = nullptr;
    REQUIRE(library.bind("fakeLanes", entry));
    *entry() = FakeLanes{};
    const CacheFolder folder;
    const CudaDriver driver(STOWAGE_FAKE_LANES);
    const OpenedDevice device{driver, 0, "Fake", 8, 6};
    std::vector<float> numbers(1000, 1);
    auto* const data = reinterpret_cast<std::byte*>(numbers.data());
    const std::vector<TensorArgument> tensors{{data, DataType::float32, {10, 100}}};
    const Attributes none;
    const auto launches = [&](Kernel kernel) {
      return kernels::launches_of({.kernel = kernel,
                                   .device = Device::gpu,
                                   .attributes = &none,
                                   .reads = tensors,
                                   .writes = tensors},
                                  kernels::Arithmetic::device)
          .value();
    };
    for (const bool first : {true, false}) {
      OwnKernels own(*compiler, device, folder.path());
      for (const kernels::Launch& launch : launches(Kernel::relu_forward)) {
        REQUIRE(own.launch(launch, nullptr).has_value());
        CHECK(entry()->block == 256);
        CHECK(entry()->grid == 4);
        REQUIRE(own.launch(launch, nullptr).has_value());
      }
      for (const kernels::Launch& launch : launches(Kernel::softmax_forward)) {
        REQUIRE(own.launch(launch, nullptr).has_value());
        CHECK(entry()->block == static_cast<unsigned>(launch.threads));
        CHECK(entry()->grid == 10);
      }
      CHECK(entry()->launches == (first ? 3 : 6));
      const auto files = std::distance(fs::directory_iterator(folder.path()), {});
      CHECK(files == 2);
    }
    CHECK(entry()->live == 0);
    CHECK(entry()->wrong_calls == 0);
  }
}

}  // namespace stowage::test
