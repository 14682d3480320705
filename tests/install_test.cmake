# An installed tree works where it was installed and where it was moved, with no build tree's help;
# it holds nothing of the tests; programs find the library in it, and the catalogues by it (examples/).
#   cmake -DBUILD=... -DSOURCE=... -DCOMPILER=... -DFLAGS=... -DTYPE=... -P install_test.cmake
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

foreach(file README.md LICENSE CHANGELOG.md CONTRIBUTING.md docs/commands.md docs/plan-file.md)
  if(NOT EXISTS ${place}/moved/share/doc/stowage/${file})
    message(FATAL_ERROR "share/doc/stowage/${file} is not installed")
  endif()
endforeach()
foreach(file stowage/__main__.py stowage/pretend/elf_slots.py stowage/py.typed
             stowage/export/operators.json)
  if(NOT EXISTS ${place}/moved/share/stowage/python/${file})
    message(FATAL_ERROR "share/stowage/python/${file} is not installed")
  endif()
endforeach()
file(GLOB_RECURSE of_tests RELATIVE ${place}/moved ${place}/moved/*libfake* ${place}/moved/*test*
                                                   ${place}/moved/*doctest*)
if(of_tests)
  message(FATAL_ERROR "installed, and only tests use it: ${of_tests}")
endif()

# Headers: what may be asked, and nothing of how it is answered.
file(GLOB_RECURSE headers RELATIVE ${place}/moved/include ${place}/moved/include/*)
list(LENGTH headers count)
list(FILTER headers EXCLUDE REGEX "^stowage/[a-z_]+\\.hpp$")
if(headers OR count GREATER 14 OR NOT EXISTS ${place}/moved/include/stowage/stowage.hpp)
  message(FATAL_ERROR "${count} headers are installed, beside those of <stowage/...>: ${headers}")
endif()

# Programs of somebody else's, built against the moved tree alone.
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples -B ${place}/examples
                        -DCMAKE_PREFIX_PATH=${place}/moved -DCMAKE_CXX_COMPILER=${COMPILER}
                        -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_BUILD_TYPE=${TYPE}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${place}/examples
                OUTPUT_VARIABLE output RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "examples/ do not build against the installed tree:\n${output}")
endif()

# run(STATUS PROGRAM ARGUMENTS...): its output in `output`, what it says beside in `errors`.
function(run expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=STOWAGE_CONFIGS ${place}/${ARGN}
                  WORKING_DIRECTORY / OUTPUT_VARIABLE output ERROR_VARIABLE errors
                  RESULT_VARIABLE status)
  if(NOT status EQUAL expected)
    message(FATAL_ERROR "${ARGN}: exit code ${status}, not ${expected}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

run(0 moved/bin/stowage check vgg16 --gpu rtx3090 --batch 8 --format json)
string(JSON bytes GET "${output}" device_bytes)
run(0 examples/fits vgg16 rtx3090 8)
if(NOT output MATCHES "\n${bytes} of [0-9]+ bytes on GeForce RTX 3090: fits\n$")
  message(FATAL_ERROR "examples/fits does not say the ${bytes} bytes of stowage check:\n${output}")
endif()
run(1 examples/fits gpt2-xl t4 16)
if(NOT output MATCHES "does not fit\nlargest batch: 0\n$")
  message(FATAL_ERROR "examples/fits of what does not fit says:\n${output}")
endif()
run(2 examples/fits vgg17 rtx3090 8)
if(NOT errors STREQUAL "error: there is no model 'vgg17'\n  did you mean 'vgg11'?\n")
  message(FATAL_ERROR "examples/fits of no model says:\n${errors}")
endif()
run(0 examples/fits ${SOURCE}/tests/keras/cnn.json gtx1080ti 64)
run(2 examples/fits ${SOURCE}/tests/bad/misspelt.yaml rtx3090 1)
if(NOT errors MATCHES "misspelt.yaml:7:27: error: unknown attribute 'chanels' of conv2d\n")
  message(FATAL_ERROR "examples/fits of a description with mistakes says:\n${errors}")
endif()
run(0 examples/largest_batch mlp rtx3090 t4)
if(NOT output MATCHES "^rtx3090: use [0-9]+ of at most [0-9]+, [0-9]+ of [0-9]+ bytes\nt4: use ")
  message(FATAL_ERROR "examples/largest_batch says:\n${output}")
endif()
run(0 examples/place mnist-cnn 600 2048 ${place}/plan.yaml)
if(NOT output MATCHES "\nvalid, [0-9]+ checks\n$")
  message(FATAL_ERROR "examples/place says:\n${output}")
endif()
run(0 moved/bin/stowage validate ${place}/plan.yaml --model-only)
file(REMOVE_RECURSE ${place})
