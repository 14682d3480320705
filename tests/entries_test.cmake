# Every test case of a test program is in exactly one of its entries in CTest.
#
#   cmake -DPROGRAM=FILE "-DENTRIES=FILTERS;FILTERS" -P entries_test.cmake
#
# FILTERS: the options that an entry gives to the program, with spaces between them.
cmake_minimum_required(VERSION 3.25)

# cases_of(RESULT FILTERS...): the test cases that pass them, each by file, line and name.
function(cases_of result)
  execute_process(COMMAND ${PROGRAM} --list-test-cases --reporters=xml ${ARGN}
                  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "[][;]" "_" text "${text}")  # which lists would take for their own
  string(REGEX MATCHALL "<TestCase [^\n]*" cases "${text}")
  set(${result} "${cases}" PARENT_SCOPE)
endfunction()

cases_of(all)
set(found "")
foreach(filters IN LISTS ENTRIES)
  separate_arguments(filters UNIX_COMMAND "${filters}")
  cases_of(cases ${filters})
  list(APPEND found ${cases})
endforeach()
list(SORT all)
list(SORT found)
if(NOT all)
  message(FATAL_ERROR "${PROGRAM} has no test cases")
elseif(NOT all STREQUAL found)
  set(once ${found})
  list(REMOVE_DUPLICATES once)
  set(missing ${all})
  list(REMOVE_ITEM missing ${once})
  list(LENGTH all count)
  list(LENGTH found count_found)
  list(JOIN missing "\n  " missing)
  message(FATAL_ERROR "${PROGRAM} has ${count} test cases, its entries have ${count_found}; in none:\n  ${missing}")
endif()
