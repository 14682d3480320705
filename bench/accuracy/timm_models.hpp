// What timm builds, by default, where it is not what the catalogue's models of the same name are,
// which are torchvision's: VGG's classifier of convolutions, Inception without its second
// classifier, nothing dropped.
#pragma once

#include <filesystem>

#include "bench/accuracy/measurement.hpp"

namespace stowage::accuracy {

/// A job whose model is a name of configs/models. `models`: the folder of the descriptions that are
/// not there.
void as_in_timm(const std::filesystem::path& models, Job& job);

/// The model that timm calls `model`, as it ran under PyTorch 1.12, which had no fused attention.
void describe_timm(const std::string& model, const std::filesystem::path& models, Job& job);

}  // namespace stowage::accuracy
