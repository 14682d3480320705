# What `cmake --install` puts where: the program with its data, the libraries with their headers for
# find_package(stowage) (examples/peak is such a program), the documentation. Nothing of the tests.
include(CMakePackageConfigHelpers)

install(TARGETS stowage RUNTIME DESTINATION bin)
install(TARGETS stowage_host_kernels LIBRARY DESTINATION lib/stowage)
if(TARGET stowage_driver_stand_in)
  # No test's stand-in: `stowage check` shows it to cuDNN on a machine without a driver.
  install(TARGETS stowage_driver_stand_in LIBRARY DESTINATION lib/stowage)
endif()
install(DIRECTORY configs DESTINATION share/stowage)
# pip install PREFIX/share/stowage/python
install(DIRECTORY python DESTINATION share/stowage
        PATTERN "__pycache__" EXCLUDE PATTERN "*.egg-info" EXCLUDE PATTERN "build" EXCLUDE
        PATTERN ".*_cache" EXCLUDE PATTERN ".gitignore" EXCLUDE)

install(FILES README.md LICENSE CHANGELOG.md CONTRIBUTING.md DESTINATION share/doc/stowage)
install(DIRECTORY docs DESTINATION share/doc/stowage FILES_MATCHING PATTERN "*.md" PATTERN "*.json")

# gpu_probe and cli are the program's own: they look for modules and configs beside the program.
set_target_properties(stowage_estimator PROPERTIES EXPORT_NAME estimator)
set_target_properties(stowage_planner PROPERTIES EXPORT_NAME planner)
install(TARGETS stowage_estimator stowage_planner EXPORT stowage-targets ARCHIVE DESTINATION lib)
install(DIRECTORY estimator planner DESTINATION include/stowage FILES_MATCHING PATTERN "*.hpp")
install(EXPORT stowage-targets NAMESPACE stowage:: DESTINATION lib/cmake/stowage)
configure_package_config_file(cmake/stowage-config.cmake.in stowage-config.cmake
                              INSTALL_DESTINATION lib/cmake/stowage)
write_basic_package_version_file(stowage-config-version.cmake VERSION ${PROJECT_VERSION}
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stowage-config.cmake
              ${PROJECT_BINARY_DIR}/stowage-config-version.cmake
        DESTINATION lib/cmake/stowage)
