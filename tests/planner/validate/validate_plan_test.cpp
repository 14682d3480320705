// Presence, copies and the steady state: a plan worked out on paper passes, and each change that
// breaks it is named. Memory and figures: memory_test.cpp.
#include "planner/validate/validate_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "planner/validate/checks.hpp"
#include "tests/support/hand_made_plan.hpp"
#include "tests/support/plan_failures.hpp"

namespace stowage {
namespace {

using namespace hand_made;
TEST_CASE("the hand-made plan passes every check, and each says what it counted") {
  const Plan made = plan();
  CHECK(failures(made, step()) == "");
  std::vector<Check> checks = check_plan(made);
  checks.push_back(check_workspaces(made, step().engines));
  const auto detail = [&](std::string_view name) {
    const auto found = std::find_if(checks.begin(), checks.end(),
                                    [&](const Check& check) { return check.name == name; });
    return found == checks.end() ? "no such check" : found->detail;
  };
  CHECK(check_structure(made).detail == "5 nodes, 8 storages, 13 residences, 5 transfers");
  CHECK(detail("workspaces") == "1 engines are among the source's");
  CHECK(detail("devices") == "4 nodes on the GPU, 1 on the CPU, nothing pinned");
  CHECK(detail("inputs present") == "9 reads by 5 nodes find the newest version");
  CHECK(detail("outputs placed") == "5 writes by 5 nodes find room");
  CHECK(detail("temporaries placed") == "1 temporaries find room");
  CHECK(detail("transfers placed") == "5 copies lie in residences on both sides");
  CHECK(detail("copies current") == "5 copies carry the newest version, unwritten on the way");
  CHECK(detail("steady state") ==
        "2 copies that are there at the start are there again at the end");
  CHECK(detail("GPU peak") == "3.0 KiB at 'fc2.forward' (step 1)");
  CHECK(detail("transferred bytes") == "2.0 KiB up and 1.8 KiB down in 5 copies");
  CHECK(detail("cost") == "26.5 s");
  CHECK(detail("step time") == "21 s");
  CHECK(detail("step bound") == "none is claimed");
}

TEST_CASE("a bound on the step is none where the step is below it") {
  Plan made = plan();
  made.totals.step_lower_bound_seconds = 20;
  CHECK(failures(made, step()) == "");
  CHECK(made.totals.step_gap() == doctest::Approx(1.0 / 21));
  made.totals.step_lower_bound_seconds = 21.5;
  CHECK(failures(made, step()) ==
        "step bound: step_lower_bound_seconds 21.5 is above the simulated step 21\n");
  made.totals.step_lower_bound_seconds = -1;
  CHECK(failures(made, step()) == "structure: step_lower_bound_seconds is -1\n");
}

TEST_CASE("a dropped upload") {
  Plan made = plan();
  made.transfers.erase(made.transfers.begin() + 3);  // of y1, for fc2.backward
  made.totals.h2d = 1024_B;
  made.totals.cost_seconds = 22;
  made.totals.step_seconds = 16.5;
  CHECK(failures(made, step()) ==
        "inputs present: 'fc2.backward' (step 3) reads 'y1', which the GPU has room for but no "
        "value of\n");
}

TEST_CASE("a dropped download: the upload after it has nothing to carry") {
  Plan made = plan();
  made.transfers.erase(made.transfers.begin() + 2);  // of y1
  made.totals.d2h = 768_B;
  made.totals.cost_seconds = 22;
  CHECK(failures(made, step()) ==
        "inputs present: 'fc2.backward' (step 3) reads 'y1', which the GPU has room for but no "
        "value of\n"
        "copies current: upload of 'y1' from 'fc2.backward' (step 3) to 'fc2.backward' (step 3) "
        "begins where its source holds nothing\n");
}

TEST_CASE("a late upload is not there when its reader starts") {
  Plan made = plan();
  made.transfers[1].end = 2;  // of w2, read by fc2.forward at step 1
  CHECK(failures(made, step()) ==
        "inputs present: 'fc2.forward' (step 1) reads 'w2', which the GPU has room for but no "
        "value of\n");
}

TEST_CASE("a download that begins before its value is there") {
  Plan made = plan();
  made.transfers[2].begin = 0;  // of y1, which node 0 writes
  made.transfers = {made.transfers[2], made.transfers[0], made.transfers[1], made.transfers[3],
                    made.transfers[4]};
  made.in(pinned_memory)[2].steps.begin = 0;
  const std::string found = failures(made, step());
  CHECK(found.find("copies current: download of 'y1' from 'fc1.forward' (step 0) to 'loss' (step "
                   "2) begins where its source holds nothing; 'fc1.forward' (step 0) writes 'y1' "
                   "during the download of 'y1'") != std::string::npos);
}

TEST_CASE("a version overwritten while it is copied") {
  Plan made = plan();
  made.transfers[1] = upload(w2, 3, 5);  // the CPU's update writes w2 at step 4
  made.transfers = {made.transfers[0], made.transfers[2], made.transfers[3], made.transfers[1],
                    made.transfers[4]};
  made.in(gpu_memory)[2] = residence(w2, 3, 5, 512);
  made.in(gpu_memory) = {made.in(gpu_memory)[0], made.in(gpu_memory)[1], made.in(gpu_memory)[3],
                         made.in(gpu_memory)[4], made.in(gpu_memory)[5], made.in(gpu_memory)[6],
                         made.in(gpu_memory)[2], made.in(gpu_memory)[7], made.in(gpu_memory)[8]};
  made.in(pinned_memory)[1].steps = {0, 5};
  const std::string found = failures(made, step());
  CHECK(
      found.find("copies current: 'update.w2' (step 4) writes 'w2' during the upload of 'w2' from "
                 "'fc2.backward' (step 3) to the step's end") != std::string::npos);
}

TEST_CASE("a stale host copy: the GPU wrote what the CPU reads") {
  // The update on the GPU, w2 kept there to the end; the host's copy, there at the start, is old.
  Plan made = plan();
  made.nodes[4].processor = gpu_processor;
  made.transfers.pop_back();
  made.in(gpu_memory)[2].steps.end = 5;
  made.in(gpu_memory)[8].steps.end = 5;
  made.in(gpu_memory)[5].offset = 2048_B;  // out of w2's way
  made.in(gpu_memory)[6].offset = 2560_B;
  made.in(gpu_memory)[7].offset = 3328_B;
  made.in(pinned_memory).pop_back();
  made.totals.d2h = 1024_B;
  const std::string found = failures(made, step());
  CHECK(
      found.find("steady state: 'w2' is on the host when the step starts, but at its end the host "
                 "has not its newest version\n") != std::string::npos);
  // Downloading the new version at the end mends that.
  made.transfers.push_back(download(w2, 5, 5));
  CHECK(failures(made, step()).find("steady state") == std::string::npos);
  // Downloading it before the update carries the old one.
  made.transfers.back() = download(w2, 4, 4);
  CHECK(failures(made, step())
            .find("steady state: 'w2' is on the host when the step starts, but at "
                  "its end the host has not its newest version\n") != std::string::npos);
}

TEST_CASE("a GPU copy that the CPU made stale may not be read") {
  // w2 stays on the GPU over the end, but its update on the CPU is never sent there.
  Plan made = plan();
  made.transfers.erase(made.transfers.begin() + 1);
  made.in(gpu_memory)[2].steps.end = 5;
  made.in(gpu_memory)[5].offset = 2048_B;
  made.in(gpu_memory)[6].offset = 2560_B;
  made.in(gpu_memory)[7].offset = 3328_B;
  CHECK(failures(made, step())
            .find("steady state: 'w2' is on the GPU when the step starts, but at "
                  "its end the GPU has not its newest version\n") != std::string::npos);
}

TEST_CASE("a residence cut short before the last reader") {
  Plan made = plan();
  made.in(gpu_memory)[5].steps.end = 3;  // dy2, read by fc2.backward at step 3
  CHECK(failures(made, step()) ==
        "inputs present: 'fc2.backward' (step 3) reads 'dy2', which the GPU does not hold\n");
}

TEST_CASE("no room for what a node writes, and for its temporary") {
  Plan made = plan();
  made.in(gpu_memory)[4].steps.begin = 2;  // y2, written at step 1
  made.totals.gpu_peak = 2816_B;
  made.totals.arena_lower_bound = 2816_B;
  CHECK(failures(made, step()) ==
        "inputs present: 'loss' (step 2) reads 'y2', which the GPU has room for but no value of\n"
        "outputs placed: 'fc2.forward' (step 1) writes 'y2', for which the GPU has no room\n");
  made = plan();
  made.in(gpu_memory).erase(made.in(gpu_memory).begin() + 6);
  CHECK(failures(made, step()) ==
        "temporaries placed: 'loss' (step 2) has no room on the GPU for its temporary 'scratch'\n");
}

TEST_CASE("copies keep to their residences") {
  Plan made = plan();
  made.in(pinned_memory)[2].steps.end = 3;  // y1's, from which an upload of [3, 3] reads
  CHECK(failures(made, step())
            .find("transfers placed: upload of 'y1' from 'fc2.backward' (step 3) to 'fc2.backward' "
                  "(step "
                  "3) has no host residence that outlasts it\n") != std::string::npos);
  made = plan();
  made.in(gpu_memory)[7].steps.begin = 2;  // y1's second, whose upload begins at 3
  std::sort(made.in(gpu_memory).begin(), made.in(gpu_memory).end(),
            [](const Residence& a, const Residence& b) {
              return std::tuple(a.steps.begin, a.storage) < std::tuple(b.steps.begin, b.storage);
            });
  CHECK(failures(made, step()) ==
        "transfers placed: upload of 'y1' from 'fc2.backward' (step 3) to 'fc2.backward' (step 3) "
        "has no GPU residence that begins with it\n");
  made = plan();
  made.in(pinned_memory)[3].steps.begin = 4;
  made.transfers[4] = download(dw2, 4, 5);
  CHECK(failures(made, step())
            .find("transfers placed: download of 'dw2' from 'update.w2' (step 4) "
                  "to the step's end has no GPU residence all the way\n") != std::string::npos);
}

TEST_CASE("what is there at the start is somewhere, at one place, and there again") {
  Plan made = plan();
  made.in(gpu_memory)[1].steps = {0, 4};  // w1, which only the GPU holds
  CHECK(failures(made, step()) ==
        "steady state: 'w1' is on the GPU when the step starts, but at its end the GPU does not "
        "hold it\n");
  made = plan();
  made.in(gpu_memory).erase(made.in(gpu_memory).begin() + 1);
  CHECK(
      failures(made, step()).find("steady state: 'w1' is on neither side when the step starts\n") !=
      std::string::npos);
  made = plan();  // w1 away between its reader and the end, back at another place
  made.in(pinned_memory) = {made.in(pinned_memory)[0], residence(w1, 0, 5, 2048),
                            made.in(pinned_memory)[1], made.in(pinned_memory)[2],
                            made.in(pinned_memory)[3]};
  made.in(gpu_memory)[1].steps.end = 1;
  made.in(gpu_memory).push_back(residence(w1, 4, 5, 256));
  made.transfers.push_back(upload(w1, 4, 5));
  CHECK(failures(made, step())
            .find("steady state: 'w1' begins the step at offset 0 of the GPU and "
                  "ends it at 256\n") != std::string::npos);
  made.in(gpu_memory).back().offset = 0_B;
  CHECK(failures(made, step()).find("steady state") == std::string::npos);
}

TEST_CASE("two copies of one storage at once") {
  Plan made = plan();
  made.transfers.insert(made.transfers.begin() + 2, upload(w2, 0, 1));
  CHECK(failures(made, step())
            .find("transfers placed: upload of 'w2' from 'fc1.forward' (step 0) to "
                  "'fc2.forward' (step 1) begins during upload of 'w2'") != std::string::npos);
}

}  // namespace
}  // namespace stowage
