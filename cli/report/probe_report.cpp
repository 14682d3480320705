#include "cli/report/probe_report.hpp"

#include <fmt/format.h>

#include <optional>

namespace stowage {

namespace {

std::string link_text(const std::optional<PcieLink>& link) {
  return link ? fmt::format("gen{} x{}", link->generation, link->width) : std::string("not told");
}

Json probed_text(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json link_json(const std::optional<PcieLink>& link) {
  if (!link) return {};
  return Json::Object{{"generation", link->generation}, {"width", link->width}};
}

Json processes_json(const std::vector<GpuProcess>& processes) {
  Json::Array array;
  for (const GpuProcess& process : processes) {
    array.emplace_back(Json::Object{{"pid", process.pid},
                                    {"name", probed_text(process.name)},
                                    {"bytes", process.memory ? Json(*process.memory) : Json()}});
  }
  return array;
}

Json instances_json(const ProbedGpu& gpu) {
  if (!gpu.is_divided) return {};
  Json::Array array;
  for (const MigInstance& instance : gpu.instances) {
    array.emplace_back(Json::Object{{"name", instance.name},
                                    {"uuid", probed_text(instance.uuid)},
                                    {"total_bytes", instance.total},
                                    {"free_bytes", instance.free}});
  }
  return array;
}

Json gpu_json(const ProbedGpu& gpu) {
  return Json::Object{{"name", gpu.name},
                      {"uuid", gpu.uuid},
                      {"pci_bus_id", gpu.pci_bus_id},
                      {"compute_capability", gpu.compute_capability},
                      {"total_bytes", gpu.total},
                      {"free_bytes", gpu.free},
                      {"used_bytes", gpu.used},
                      {"cuda_total_bytes", gpu.cuda_total ? Json(*gpu.cuda_total) : Json()},
                      {"cuda_ordinal", gpu.ordinal ? Json(*gpu.ordinal) : Json()},
                      {"processes", processes_json(gpu.processes)},
                      {"mig_instances", instances_json(gpu)},
                      {"link", link_json(gpu.link)},
                      {"link_at_most", link_json(gpu.link_at_most)}};
}

Json::Object json_of(const Probe& found) {
  Json::Array gpus;
  for (const ProbedGpu& gpu : found.gpus) gpus.push_back(gpu_json(gpu));
  Json::Array libraries;
  for (const FoundLibrary& library : found.libraries) {
    libraries.emplace_back(Json::Object{{"name", library.name},
                                        {"version", probed_text(library.version)},
                                        {"file", probed_text(library.file)}});
  }
  return {{"gpus", std::move(gpus)},
          {"driver", probed_text(found.driver)},
          {"cuda", probed_text(found.cuda)},
          {"cudnn", probed_text(found.cudnn)},
          {"why_no_gpu", probed_text(found.no_gpu_reason)},
          {"why_no_cudnn", probed_text(found.no_cudnn_reason)},
          {"libraries", std::move(libraries)},
          {"cuda_visible_devices", found.visible_devices ? Json(*found.visible_devices) : Json()},
          {"host", Json::Object{{"cpu", found.host.cpu},
                                {"cores", found.host.cores},
                                {"memory_bytes", found.host.memory},
                                {"available_bytes", found.host.available},
                                {"limited_by_control_group", found.host.is_limited},
                                {"locked_memory_limit_bytes",
                                 found.host.locked ? Json(*found.host.locked) : Json()}}}};
}

/// CUDA's number of it.
std::string ordinal_text(const Probe& found, const ProbedGpu& gpu) {
  if (gpu.ordinal) return fmt::format("{}", *gpu.ordinal);
  return found.asked_cuda ? "hidden" : "not told";
}

/// Of all GPUs, in their order.
Table process_table(const Probe& found) {
  Table table{
      .columns = {{"Memory", "bytes"}, {"PID", "pid"}, {"GPU", "gpu"}, {"Program", "name"}}};
  for (std::size_t i = 0; i < found.gpus.size(); ++i) {
    for (const GpuProcess& process : found.gpus[i].processes) {
      const Cell memory = process.memory ? Cell(*process.memory) : Cell(std::string("not told"));
      table.rows.push_back({{memory, process.pid, static_cast<std::int64_t>(i), process.name}});
    }
  }
  return table;
}

Table instance_table(const ProbedGpu& gpu) {
  Table table{.columns = {{"Total", "total_bytes"},
                          {"Free", "free_bytes"},
                          {"UUID", "uuid"},
                          {"Instance", "name"}}};
  for (const MigInstance& instance : gpu.instances) {
    table.rows.push_back({{instance.total, instance.free, instance.uuid, instance.name}});
  }
  return table;
}

void say_gpus(const Probe& found, Report& out) {
  out.show(out.listing);
  for (const ProbedGpu& gpu : found.gpus) {
    if (!gpu.is_divided) continue;
    out.say(fmt::format("{} ({}) is divided; CUDA takes one of its instances:", gpu.name,
                        gpu.pci_bus_id));
    out.show(instance_table(gpu));
  }
  if (Table processes = process_table(found); !processes.rows.empty()) {
    out.say("Programs that use them:");
    out.show(std::move(processes));
  }
  out.say(fmt::format("driver {}, which runs CUDA up to {}", found.driver, found.cuda));
  if (found.visible_devices) {
    out.say(fmt::format("CUDA_VISIBLE_DEVICES={}", *found.visible_devices));
  }
}

std::string host_text(const ProbedHost& host) {
  std::string text = fmt::format("host: {}, {} core{}, {} of memory{}, {} available",
                                 host.cpu.empty() ? "an unnamed CPU" : host.cpu, host.cores,
                                 host.cores == 1 ? "" : "s", format_bytes(host.memory),
                                 host.is_limited ? " (the control group's limit)" : "",
                                 format_bytes(host.available));
  if (host.locked)
    text += fmt::format("; it may lock {} itself (ulimit -l)", format_bytes(*host.locked));
  return text;
}

Table gpu_table(const Probe& found) {
  Table table{.columns = {{"Total", "total_bytes"},
                          {"Free", "free_bytes"},
                          {"Used", "used_bytes"},
                          {"CUDA", "cuda_ordinal"},
                          {"CC", "compute_capability"},
                          {"Link now", "link"},
                          {"At most", "link_at_most"},
                          {"PCI bus", "pci_bus_id"},
                          {"UUID", "uuid"},
                          {"Name", "name"}}};
  for (const ProbedGpu& gpu : found.gpus) {
    table.rows.push_back({{gpu.total, gpu.free, gpu.used, ordinal_text(found, gpu),
                           Number{gpu.compute_capability, 1}, link_text(gpu.link),
                           link_text(gpu.link_at_most), gpu.pci_bus_id, gpu.uuid, gpu.name}});
  }
  return table;
}

}  // namespace

Report probe_report(const Probe& found) {
  Report out;
  out.json = json_of(found);
  out.listing = gpu_table(found);
  if (found.gpus.empty()) {
    out.say(fmt::format("no GPU: {}", found.no_gpu_reason));
  } else {
    say_gpus(found, out);
  }
  out.say(found.cudnn.empty() ? fmt::format("no cuDNN: {}", found.no_cudnn_reason)
                              : fmt::format("cuDNN {}", found.cudnn));
  for (const FoundLibrary& library : found.libraries) {
    out.say(library.version.empty() ? fmt::format("no {}", library.name)
                                    : fmt::format("{} {}", library.name, library.version));
  }
  out.say(host_text(found.host));
  return out;
}

}  // namespace stowage
