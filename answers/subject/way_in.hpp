// What to do with a file that is no description: what its name says that it is, and by which way
// the model that it holds, or is made by, can be read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

// Kinds of files, as messages name them. Those that are told by their content are told apart in
// file_kind.cpp.
inline constexpr std::string_view pytorch_checkpoint = "a PyTorch checkpoint",
                                  torch_script = "a TorchScript model",
                                  python_pickle = "a Python pickle",
                                  keras_archive = "a Keras model",
                                  hdf5_file = "HDF5 (weights, or a Keras model)",
                                  program_source = "a program's source",
                                  python_notebook = "a Jupyter notebook",
                                  tensorflow_lite = "a TensorFlow Lite model",
                                  tensorflow_graph = "a TensorFlow graph",
                                  tensorflow_checkpoint = "a TensorFlow checkpoint",
                                  tensorrt_engine = "a TensorRT engine",
                                  core_ml = "a Core ML model", openvino = "an OpenVINO model",
                                  caffe_model = "a Caffe model", flax_weights = "Flax's weights",
                                  tar_archive = "a tar archive", zip_archive = "a zip archive";

/// The kind of file that has such a name ("w.pth"); nullopt: the name says nothing.
[[nodiscard]] std::optional<std::string_view> kind_by_name(std::string_view name);

/// How the network gets in that such a file holds or is made by. `name`: the file, or "-".
[[nodiscard]] std::string way_in(std::string_view kind, std::string_view name);

/// The mistake of naming a folder where a model is wanted, if it holds a model of a kind that is
/// known by its files; nullopt: it does not.
[[nodiscard]] std::optional<Diagnostic> foreign_folder(const std::string& folder);

}  // namespace stowage
