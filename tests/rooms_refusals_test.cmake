# What rooms_test.cmake refuses, on a project of a few files. FOLDER: where to make it.
file(REMOVE_RECURSE ${FOLDER})
file(WRITE ${FOLDER}/docs/architecture.md [[
| `estimator/` | what does a step weigh? | nothing below |

| room | what it has | of its own library it uses |
|---|---|---|
| `estimator/base` | values | |
| `estimator/early` | stands above what it uses | `late` |
| `estimator/late` | | `base` |
| `estimator/gone` | no such folder | |
| `planner/plan` | | |
| `planner/recount` | the plan's file alone | `plan/file` |
]])
file(WRITE ${FOLDER}/estimator/base/bytes.hpp "#include <vector>\n")
file(WRITE ${FOLDER}/estimator/early/early.hpp "#include \"estimator/base/bytes.hpp\"\n")
file(WRITE ${FOLDER}/estimator/late/late.cpp "#include \"estimator/base/bytes.hpp\"\n"
                                             "#include \"estimator/late/late.hpp\"\n"
                                             "#include \"planner/plan/plan.hpp\"\n"
                                             "const char* hint = \"give a smaller --batch\";  // --a\n"
                                             "// not in a comment: \"--batch\"\n")
file(WRITE ${FOLDER}/estimator/new/new.hpp "")
file(WRITE ${FOLDER}/planner/plan/file.hpp "")
file(WRITE ${FOLDER}/planner/recount/recount.hpp "#include \"planner/plan/file.hpp\"\n"
                                                 "#include \"planner/plan/plan.hpp\"\n")
file(WRITE ${FOLDER}/planner/plan/plan.hpp "#include \"estimator/early/early.hpp\"\n")

execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${FOLDER}
                        -P ${CMAKE_CURRENT_LIST_DIR}/rooms_test.cmake
                ERROR_VARIABLE errors RESULT_VARIABLE status)
if(status EQUAL 0)
  message(FATAL_ERROR "nothing was refused")
endif()
string(REGEX MATCHALL "(docs|estimator|planner)/[a-z_/]+\\.[a-z]+: [^\n]*" mistakes "${errors}")
set(expected
  "docs/architecture.md: 'estimator/early' uses 'estimator/late', which has no row above it"
  "docs/architecture.md: there is no folder 'estimator/gone'"
  "estimator/early/early.hpp: 'estimator/early' may not use 'estimator/base' (docs/architecture.md)"
  "estimator/late/late.cpp: 'estimator/late' may not use 'planner/plan' (docs/architecture.md)"
  "estimator/late/late.cpp: a text names an option, only cli/options knows those (answers/question/question_error.hpp)"
  "estimator/new/new.hpp: its folder 'estimator/new' has no row in docs/architecture.md"
  "planner/recount/recount.hpp: 'planner/recount' may not use 'planner/plan' (docs/architecture.md)")
if(NOT mistakes STREQUAL expected)
  list(JOIN mistakes "\n" mistakes)
  message(FATAL_ERROR "refused was:\n${mistakes}\n\nin\n${errors}")
endif()
