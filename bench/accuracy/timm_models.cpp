#include "bench/accuracy/timm_models.hpp"

#include <array>

namespace stowage::accuracy {

void as_in_timm(const std::filesystem::path& models, Job& job) {
  static const std::map<std::string, std::array<int, 5>> convolutions{{"11", {1, 1, 2, 2, 2}},
                                                                      {"13", {2, 2, 2, 2, 2}},
                                                                      {"16", {2, 2, 3, 3, 3}},
                                                                      {"19", {2, 2, 4, 4, 4}}};
  if (job.model == "inception_v3") job.arguments["aux"] = "false";
  if (job.model == "mobilenet_v2") job.arguments["dropout"] = "0";
  if (job.model.starts_with("efficientnet")) {
    job.arguments["dropout"] = "0";
    job.arguments["depth_dropout"] = "0";
  }
  if (!job.model.starts_with("vgg")) return;
  const std::array<int, 5>& stages = convolutions.at(job.model.substr(3, 2));
  constexpr std::array names{"first", "second", "third", "fourth", "fifth"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    job.arguments[names[i]] = std::to_string(stages[i]);
  }
  job.arguments["norm"] = job.model.ends_with("_bn") ? "true" : "false";
  job.model = (models / "vgg-timm.yaml").string();
}

void describe_timm(const std::string& model, const std::filesystem::path& models, Job& job) {
  static const std::map<std::string, std::map<std::string, std::string>> transformers{
      {"vit_tiny_patch16_224", {{"hidden", "192"}, {"heads", "3"}}},
      {"vit_small_patch16_224", {{"hidden", "384"}, {"heads", "6"}}},
      {"vit_base_patch16_224", {}}};
  static const std::map<std::string, std::string> names{{"mobilenetv2_100", "mobilenet_v2"},
                                                        {"mixer_b16_224", "mixer_b16"}};
  const auto transformer = transformers.find(model);
  const auto name = names.find(model);
  if (transformer != transformers.end()) {
    job.model = (models / "vit-written-out.yaml").string();
    job.arguments.insert(transformer->second.begin(), transformer->second.end());
  } else {
    job.model = name == names.end() ? model : name->second;
    as_in_timm(models, job);
  }
}

}  // namespace stowage::accuracy
