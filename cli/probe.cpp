#include "gpu_probe/probe.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"

namespace stowage {

namespace {

std::string link_text(const std::optional<PcieLink>& link) {
  return link ? fmt::format("gen{} x{}", link->generation, link->width) : std::string("not told");
}

Json link_json(const std::optional<PcieLink>& link) {
  if (!link) return {};
  return Json::Object{{"generation", link->generation}, {"width", link->width}};
}

Json gpu_json(const ProbedGpu& gpu) {
  return Json::Object{{"name", gpu.name},
                      {"uuid", gpu.uuid},
                      {"pci_bus_id", gpu.pci_bus_id},
                      {"compute_capability", gpu.compute_capability},
                      {"total_bytes", gpu.total},
                      {"free_bytes", gpu.free},
                      {"cuda_total_bytes", gpu.cuda_total ? Json(*gpu.cuda_total) : Json()},
                      {"link", link_json(gpu.link)},
                      {"link_at_most", link_json(gpu.link_at_most)}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json::Object json_of(const Probe& found) {
  Json::Array gpus;
  for (const ProbedGpu& gpu : found.gpus) gpus.push_back(gpu_json(gpu));
  return {{"gpus", std::move(gpus)},
          {"driver", text_or_null(found.driver)},
          {"cuda", text_or_null(found.cuda)},
          {"cudnn", text_or_null(found.cudnn)},
          {"why_no_gpu", text_or_null(found.why_no_gpu)},
          {"why_no_cudnn", text_or_null(found.why_no_cudnn)},
          {"host", Json::Object{{"cpu", found.host.cpu},
                                {"cores", found.host.cores},
                                {"memory_bytes", found.host.memory},
                                {"available_bytes", found.host.available}}}};
}

Table gpu_table(const Probe& found) {
  Table table{.columns = {{"Total", "total_bytes"},
                          {"Free", "free_bytes"},
                          {"CC", "compute_capability"},
                          {"Link now", "link"},
                          {"At most", "link_at_most"},
                          {"PCI bus", "pci_bus_id"},
                          {"UUID", "uuid"},
                          {"Name", "name"}}};
  for (const ProbedGpu& gpu : found.gpus) {
    table.rows.push_back(
        {{gpu.total, gpu.free, Number{gpu.compute_capability, 1}, link_text(gpu.link),
          link_text(gpu.link_at_most), gpu.pci_bus_id, gpu.uuid, gpu.name}});
  }
  return table;
}

}  // namespace

Result<Answer> run_probe(const Arguments&) {
  const Probe found = probe();
  Answer answer;
  Report& out = answer.report;
  out.json = json_of(found);
  out.listing = gpu_table(found);
  if (found.gpus.empty()) {
    out.say(fmt::format("no GPU: {}", found.why_no_gpu));
  } else {
    out.show(out.listing);
    out.say(fmt::format("driver {}, which runs CUDA up to {}", found.driver, found.cuda));
  }
  out.say(found.cudnn.empty() ? fmt::format("no cuDNN: {}", found.why_no_cudnn)
                              : fmt::format("cuDNN {}", found.cudnn));
  out.say(fmt::format("host: {}, {} cores, {} of memory, {} available",
                      found.host.cpu.empty() ? "an unnamed CPU" : found.host.cpu, found.host.cores,
                      format_bytes(found.host.memory), format_bytes(found.host.available)));
  return answer;
}

}  // namespace stowage
