# An installed tree works where it was installed and where it was moved, with no build tree's help.
set(place ${BUILD}/install_test)
file(REMOVE_RECURSE ${place})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${place}/first
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${place}/first ${place}/moved)

foreach(arguments "models" "gpus")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=STOWAGE_CONFIGS ${place}/moved/bin/stowage
                          ${arguments}
                  WORKING_DIRECTORY / OUTPUT_VARIABLE output ERROR_VARIABLE errors
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "moved stowage ${arguments}: exit code ${status}\n${output}${errors}")
  endif()
  if(NOT errors STREQUAL "")
    message(FATAL_ERROR "moved stowage ${arguments} wrote to stderr:\n${errors}")
  endif()
endforeach()

# The host kernels are a module of their own: a plan must run from the moved tree too.
execute_process(COMMAND ${place}/moved/bin/stowage plan mlp --batch 2 --budget 64MiB --validate
                        --format json
                WORKING_DIRECTORY / OUTPUT_VARIABLE output ERROR_VARIABLE errors
                RESULT_VARIABLE status)
string(JSON host_run ERROR_VARIABLE broken GET "${output}" plans 0 validation host)
if(NOT status EQUAL 0 OR NOT host_run STREQUAL "passed")
  message(FATAL_ERROR "moved stowage plan --validate: exit code ${status}\n${output}${errors}")
endif()

file(READ ${place}/moved/bin/stowage baked HEX)
string(HEX "${BUILD}/configs" path)
string(FIND "${baked}" "${path}" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "the installed program has the build tree's configs compiled in")
endif()
file(REMOVE_RECURSE ${place})
