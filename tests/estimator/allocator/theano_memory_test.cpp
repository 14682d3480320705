#include "estimator/allocator/theano_memory.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

TheanoMemory flags(std::string_view text) {
  const auto memory = parse_theano_flags(text, "flags");
  REQUIRE(memory.has_value());
  return *memory;
}

std::string complaint_about(std::string_view text) {
  const auto memory = parse_theano_flags(text, "flags");
  REQUIRE_FALSE(memory.has_value());
  return render(memory.error());
}

}  // namespace

TEST_CASE("Theano's flags say which backend has the card, and how much of it at once") {
  CHECK(flags("") == TheanoMemory{});
  CHECK(flags("floatX=float32, device=cuda0 ,") == TheanoMemory{});
  CHECK(flags("device=gpu,lib.cnmem=0.8,allow_gc=False") ==
        TheanoMemory{TheanoBackend::cuda, 0.8, true});
  CHECK(flags("lib.cnmem=1").backend == TheanoBackend::cuda);
  CHECK(flags("gpuarray.preallocate=-1,optimizer=fast_run").preallocate == -1);
}

TEST_CASE("a share of the card is cut at 95 percent, and more than 1 are MiB") {
  CHECK(theano_preallocation({.preallocate = 0}, 2_GiB) == 0_B);
  CHECK(theano_preallocation({.preallocate = -1}, 2_GiB) == 0_B);
  CHECK(theano_preallocation({.preallocate = 0.5}, 2_GiB) == 1_GiB);
  CHECK(theano_preallocation({.preallocate = 1}, 1000_MiB) == 950_MiB);
  CHECK(theano_preallocation({.preallocate = 1500}, 2_GiB) == 1500_MiB);
}

TEST_CASE("the pools are CNMeM's, libgpuarray's, or none") {
  const BestFitSettings gpuarray = theano_pool({}, 2_GiB);
  CHECK(gpuarray.granularity == 64_B);
  CHECK(gpuarray.least_segment == 4_MiB);
  CHECK(gpuarray.caches);
  CHECK(theano_pool_name({}) == "libgpuarray's cache");
  const TheanoMemory cnmem{.backend = TheanoBackend::cuda, .preallocate = 0.5};
  CHECK(theano_pool(cnmem, 2_GiB).granularity == 512_B);
  CHECK(theano_pool(cnmem, 2_GiB).preallocated == 1_GiB);
  CHECK(theano_pool_name(cnmem) == "CNMeM");
  for (const TheanoMemory& none :
       {TheanoMemory{.backend = TheanoBackend::cuda}, TheanoMemory{.preallocate = -1}}) {
    CHECK_FALSE(theano_pool(none, 2_GiB).caches);
    CHECK(theano_pool_name(none) == "the driver");
  }
}

TEST_CASE("flags that cannot be followed are refused at their place") {
  CHECK(complaint_about("floatX=float32,lib.cnmen=0.8") ==
        "flags:1:16: error: 'lib.cnmen' is no flag whose effect on memory is known\n"
        "  floatX=float32,lib.cnmen=0.8\n"
        "                 ^~~~~~~~~\n"
        "  did you mean 'lib.cnmem'?\n");
  CHECK(complaint_about("device=cpu") ==
        "flags:1:8: error: device 'cpu' is no GPU\n"
        "  device=cpu\n"
        "         ^~~\n"
        "  cuda, cuda0, ...; or gpu, gpu0, ... of the old backend\n");
  CHECK(complaint_about("device=cuda,lib.cnmem=0.8") ==
        "flags:1:23: error: lib.cnmem is of the old backend, and device=cuda of the new one\n"
        "  device=cuda,lib.cnmem=0.8\n"
        "                        ^~~\n"
        "  the new backend has gpuarray.preallocate\n");
  CHECK(complaint_about("dnn.conv.algo_fwd=time_once") ==
        "flags:1:19: error: the scratch of dnn.conv.algo_fwd=time_once is not known\n"
        "  dnn.conv.algo_fwd=time_once\n"
        "                    ^~~~~~~~~\n"
        "  Theano's default is small\n");
  for (const std::string_view bad : {"allow_gc", "allow_gc=maybe", "lib.cnmem=nan", "lib.cnmem=-1",
                                     "gpuarray.preallocate=1e99", "=", "device="}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_theano_flags(bad, "flags").has_value());
  }
}

}  // namespace stowage
