# An installed tree works where it was installed and where it was moved, with no build tree's help.
set(place ${BUILD}/install_test)
file(REMOVE_RECURSE ${place})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${place}/first
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${place}/first ${place}/moved)

foreach(arguments "gpus" "ops")
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

file(READ ${place}/moved/bin/stowage baked HEX)
string(HEX "${BUILD}/configs" path)
string(FIND "${baked}" "${path}" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "the installed program has the build tree's configs compiled in")
endif()
file(REMOVE_RECURSE ${place})
