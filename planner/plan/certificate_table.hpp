// Reads and writes the table `certificate` of a plan file. docs/plan-file.md describes its rows.
//
//   granule BYTES                        what sizes on the GPU are rounded up to; none: 1
//   workspace BYTES NODE                 the least of the node's engines
//   bound KIND SCOPE...                  begins a bound: cost, transfers, lanes or split
//   weights GPU CPU UPLOADS DOWNLOADS    the weights of a bound `lanes`
//   beside DOWNLOADS UPLOADS NODE        the weights and the node of a bound `split`
//   round STEP DIVISOR STORAGES          a rounded limit of the branch whose row comes next
//   gap AFTER STORAGE, node NODE         a branch: the tree with it on the GPU, then the other tree
//   leaf                                 a leaf of a bound `cost` or `transfers`
//   price STEP PRICE                     a price of the leaf, or of a bound `lanes`
//   limit NUMBER PRICE                   a price of a rounded limit, at the leaf
#pragma once

#include <string>
#include <vector>

#include "estimator/step/step_graph.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/plan/table_row.hpp"

namespace stowage {

/// Reads the rows and adds mistakes to `mistakes`; with mistakes the result means nothing. Only the
/// validator says whether a certificate proves its bounds.
[[nodiscard]] Certificate read_certificate(const std::vector<TableLine>& rows,
                                           const StepGraph& step, TableMistakes& mistakes);

/// Writes the table with its name. Precondition: storages and nodes are ids of the step.
[[nodiscard]] std::string write_certificate(const Certificate& certificate, const StepGraph& step);

}  // namespace stowage
