# What `cmake --install` puts where. Component `program`: the program with its data, which is what a wheel
# has. `development`: the library with its headers for find_package(stowage) (examples/ has such
# programs). `documentation`. Nothing of the tests. An installed tree can be moved.
include(CMakePackageConfigHelpers)

install(TARGETS stowage RUNTIME DESTINATION bin COMPONENT program)
install(TARGETS stowage_host_kernels LIBRARY DESTINATION lib/stowage COMPONENT program)
# No test's stand-in: `stowage check` shows it to cuDNN on a machine without a driver.
install(TARGETS stowage_driver_stand_in LIBRARY DESTINATION lib/stowage COMPONENT program)
install(DIRECTORY configs DESTINATION share/stowage COMPONENT program)
# The Python part, which the program names to who asks it to record; a wheel has it as a package.
install(DIRECTORY python DESTINATION share/stowage COMPONENT python
        PATTERN "__pycache__" EXCLUDE PATTERN ".*_cache" EXCLUDE)

install(FILES README.md LICENSE CHANGELOG.md CONTRIBUTING.md DESTINATION share/doc/stowage
        COMPONENT documentation)
install(DIRECTORY docs DESTINATION share/doc/stowage COMPONENT documentation
        FILES_MATCHING PATTERN "*.md" PATTERN "*.json")

# The library: one target to link, and the few headers that say what may be asked. A portable build has
# archives in it that another machine lacks.
if(STOWAGE_PORTABLE)
  return()
endif()
set_target_properties(stowage_answers PROPERTIES EXPORT_NAME stowage)
set_target_properties(stowage_estimator PROPERTIES EXPORT_NAME estimator)
set_target_properties(stowage_planner PROPERTIES EXPORT_NAME planner)
set_target_properties(stowage_gpu_probe PROPERTIES EXPORT_NAME gpu_probe)
install(TARGETS stowage_answers stowage_gpu_probe stowage_planner stowage_estimator
        EXPORT stowage-targets ARCHIVE DESTINATION lib COMPONENT development)
install(DIRECTORY answers/library/include/stowage DESTINATION include COMPONENT development
        FILES_MATCHING PATTERN "*.hpp")
install(EXPORT stowage-targets NAMESPACE stowage:: DESTINATION lib/cmake/stowage
        COMPONENT development)
configure_package_config_file(cmake/stowage-config.cmake.in stowage-config.cmake
                              INSTALL_DESTINATION lib/cmake/stowage)
write_basic_package_version_file(stowage-config-version.cmake VERSION ${PROJECT_VERSION}
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stowage-config.cmake
              ${PROJECT_BINARY_DIR}/stowage-config-version.cmake
        DESTINATION lib/cmake/stowage COMPONENT development)
