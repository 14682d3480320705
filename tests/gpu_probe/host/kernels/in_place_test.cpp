// Results in place of arguments: a result that may lie over an argument ("dx over dy") has the same
// bits there as elsewhere.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>

#include "estimator/step/kernel_table.hpp"
#include "tests/gpu_probe/host/kernels/kernel_samples.hpp"

namespace stowage::test {
namespace {

/// A result that is placed over an argument.
struct Place {
  std::size_t written, read;
};

std::vector<Place> places_of(const KernelSample& sample) {
  std::vector<Place> places;
  for (std::size_t written = 0; written < sample.writes.size(); ++written) {
    for (std::size_t read = 0; read < sample.reads.size(); ++read) {
      if (may_write_over(sample.kernel, written, read)) places.push_back({written, read});
    }
  }
  return places;
}

/// The sample with an argument of the result's shape and, with `large`, if the kernel allows it,
/// with more elements than a vector register holds.
KernelSample suited(KernelSample sample, Place place, bool large) {
  sample.reads[place.read].shape = sample.writes[place.written].shape;
  if (!large || sample.writes[place.written].shape.front() != 2) return sample;
  for (auto* arguments : {&sample.reads, &sample.writes}) {
    for (SampleArgument& argument : *arguments) {
      if (!argument.shape.empty() && argument.shape.front() == 2) argument.shape.front() = 67;
    }
  }
  return sample;
}

/// Random numbers of both signs or, with `positive`, such as variances and arguments of logarithms
/// are.
Tensor drawn(const SampleArgument& argument, bool positive, std::mt19937& random) {
  if (!argument.floating) {
    Tensor tensor =
        argument.type == DataType::int64
            ? integer_tensor(argument.shape, std::vector<std::int64_t>(elements(argument.shape), 1))
            : mask(argument.shape);
    for (std::uint8_t& byte : tensor.bytes) byte = random() % 2;
    tensor.type = argument.type;
    return tensor;
  }
  std::uniform_real_distribution<float> values(positive ? 0.25F : -2.0F, 2.0F);
  Tensor tensor = unwritten(argument.shape);
  for (float& value : tensor.floats) value = values(random);
  return tensor;
}

struct Arguments {
  std::vector<Tensor> reads, writes;
};

Arguments arguments_of(const KernelSample& sample, bool positive) {
  std::mt19937 random(17);
  Arguments arguments;
  for (const auto& read : sample.reads) arguments.reads.push_back(drawn(read, positive, random));
  for (const auto& write : sample.writes) arguments.writes.push_back(drawn(write, true, random));
  return arguments;
}

/// The results of the call, with one of them at `place`.
Arguments results_of(const KernelSample& sample, Arguments arguments, const Place* place) {
  std::vector<Tensor*> reads, writes;
  for (Tensor& tensor : arguments.reads) reads.push_back(&tensor);
  for (Tensor& tensor : arguments.writes) writes.push_back(&tensor);
  if (place != nullptr) writes[place->written] = reads[place->read];
  run(sample.kernel, attributes_of(sample.attributes), reads, writes);
  if (place != nullptr) {
    std::swap(arguments.writes[place->written], arguments.reads[place->read]);
  }
  return arguments;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto same = [](float left, float right) {
    return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right);
  };
  return a.integers == b.integers && a.bytes == b.bytes &&
         std::ranges::equal(a.floats, b.floats, same);
}

void check_place(const KernelSample& sample, Place place, bool positive) {
  const Arguments before = arguments_of(sample, positive);
  const Arguments apart = results_of(sample, before, nullptr);
  const Arguments in_place = results_of(sample, before, &place);
  if (!positive) CHECK_FALSE(same_bits(apart.writes[place.written], before.reads[place.read]));
  for (std::size_t i = 0; i < sample.writes.size(); ++i) {
    CHECK(same_bits(in_place.writes[i], apart.writes[i]));
  }
  for (std::size_t i = 0; i < sample.reads.size(); ++i) {
    CHECK(same_bits(apart.reads[i], before.reads[i]));
    if (i != place.read) CHECK(same_bits(in_place.reads[i], before.reads[i]));
  }
}

}  // namespace

TEST_CASE("a result in the place of an argument has the bits that it has elsewhere") {
  std::size_t places = 0;
  for (const KernelSample& sample : kernel_samples()) {
    for (const Place place : places_of(sample)) {
      ++places;
      for (const bool large : {false, true}) {
        for (const bool positive : {false, true}) {
          INFO(std::string(to_string(sample.kernel)), " over argument ", place.read,
               ", large: ", large, ", positive: ", positive);
          check_place(suited(sample, place, large), place, positive);
        }
      }
    }
  }
  CHECK(places > 30);
}

}  // namespace stowage::test
