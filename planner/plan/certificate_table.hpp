// The table `certificate` of a plan file. docs/plan-file.md has its rows.
//
//   granule BYTES                        what sizes on the GPU are rounded up to; none: 1
//   workspace BYTES NODE                 the least of the node's engines
//   bound KIND SCOPE...                  begins a bound: cost, transfers, lanes or split
//   weights GPU CPU UPLOADS DOWNLOADS    of lanes
//   beside DOWNLOADS UPLOADS NODE        of split
//   round STEP DIVISOR STORAGES          a rounded limit of the branch whose row comes next
//   gap AFTER STORAGE, node NODE         a branch: the tree with it on the GPU, then the other
//   leaf                                 of cost and transfers
//   price STEP PRICE                     of the leaf, or of lanes
//   limit NUMBER PRICE                   of the leaf
#pragma once

#include <string>
#include <vector>

#include "estimator/step/step_graph.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/plan/table_row.hpp"

namespace stowage {

/// Adds what is wrong to `mistakes`; the certificate says nothing then. Whether it proves anything
/// is the validator's to say.
[[nodiscard]] Certificate read_certificate(const std::vector<TableRow>& rows, const StepGraph& step,
                                           TableMistakes& mistakes);

/// The table with its name. Precondition: storages and nodes are the step's.
[[nodiscard]] std::string write_certificate(const Certificate& certificate, const StepGraph& step);

}  // namespace stowage
