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

}  // namespace stowage::accuracy
