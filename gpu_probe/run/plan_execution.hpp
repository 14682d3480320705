// PlanExecution: one execution of a plan (executor.hpp). executor.cpp has its order,
// arena_access.cpp its work on the arenas.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu_probe/run/boundaries.hpp"
#include "gpu_probe/run/executor.hpp"
#include "gpu_probe/run/initial_values.hpp"
#include "gpu_probe/run/residency_book.hpp"

namespace stowage {

class PlanExecution {
 public:
  PlanExecution(const Plan& plan, Backend& backend, const ExecutionOptions& options)
      : plan_(plan),
        graph_(*plan.step.graph),
        backend_(backend),
        options_(options),
        places_(options.padded ? padded_places(plan) : exact_places(plan)),
        boundaries_(boundaries_of(plan)),
        initial_(initial_values(graph_, plan.step.batch)),
        results_(results_of(graph_)),
        book_(plan),
        tickets_(plan.transfers.size()),
        node_tickets_(plan.nodes.size()) {}

  Result<Execution> run();

 private:
  struct Stop {};  // thrown at a violation or a failure, caught by run()

  void prepare();
  void run_step();
  void begin_next_step();
  void check_bounds();
  void at_boundary(std::int32_t step);
  void run_node(NodeId id);
  void await_node(NodeId id);
  void wait_for_host_arena();
  void begin_residence(Device side, std::size_t index);
  void end_residence(Device side, std::size_t index, std::int32_t step);
  void begin_transfer(std::size_t index);
  void end_transfers(const std::vector<std::size_t>& indices);
  void read_results(std::int32_t after);
  [[nodiscard]] std::optional<Device> side_of_result(StorageId id, bool at_end) const;
  void put_canaries(Device side, std::byte* data, StorageId id);
  void check_canaries(const std::string& when);
  [[nodiscard]] bool there_at_start(Device side, const Residence& residence) const;

  [[nodiscard]] Bytes bytes(StorageId id) const { return plan_.bytes(id); }
  [[nodiscard]] const std::string& name(StorageId id) const { return graph_.storage(id).name; }
  [[nodiscard]] std::byte* base(Device side) {
    return side == Device::gpu ? backend_.gpu_base() : backend_.host_base();
  }
  [[nodiscard]] std::byte* place(Device side, std::size_t index) {
    const auto& offsets = side == Device::gpu ? places_.gpu : places_.host;
    return base(side) + offsets[index].count();
  }
  [[nodiscard]] std::byte* address(Device side, StorageId id, const std::string& who);
  void touched(Device side, const std::byte* begin, Bytes size);
  void write(Device side, std::byte* to, const std::byte* from, Bytes size, StorageId id);
  void read(Device side, std::byte* to, const std::byte* from, Bytes size, StorageId id);
  void fill(Device side, std::byte* to, std::byte value, Bytes size, const std::string& what);
  void poison_place(Device side, std::byte* to, StorageId id);
  void poison_arenas();
  void violation(std::string text);
  void report_violations_of_book();
  void collect_times();

  /// The value of the backend's result. Its error ends the execution; `doing` says what failed.
  template <typename T>
  T value_or_stop(Result<T> result, const std::string& doing) {
    if (!result) {
      const Diagnostic& why = result.error().front();
      failure_ = failure(fmt::format("{}: {}", doing, why.message), why.hint).value();
      throw Stop{};
    }
    if constexpr (!std::is_void_v<T>) return *std::move(result);
  }

  const Plan& plan_;
  const StepGraph& graph_;
  Backend& backend_;
  const ExecutionOptions& options_;
  ArenaPlaces places_;
  std::vector<Boundary> boundaries_;
  std::vector<std::vector<std::byte>> initial_;
  std::vector<ResultPlace> results_;
  // By StorageId, whether it is copied at boundary 0.
  std::vector<bool> uploaded_at_start_, downloaded_at_start_;
  std::int64_t step_number_ = 1;  // from 1 on
  ResidencyBook book_;
  std::size_t book_read_ = 0;         // how many of the book's violations are reported
  std::vector<Ticket> tickets_;       // by transfer
  std::vector<Ticket> node_tickets_;  // by NodeId
  std::vector<Ticket> compute_;       // the last kernel of the GPU; at most one
  std::vector<Ticket> awaited_node_;  // the last kernel of the CPU that ended; at most one
  std::array<std::vector<Ticket>, 2> last_copies_;  // by Direction: the last copy that ended
  std::vector<Ticket> ended_;  // copies and kernels of the CPU that the host has not waited for
  Diagnostics failure_;        // the backend's error; empty: none
  Execution execution_;
};

}  // namespace stowage
