# STOWAGE_PORTABLE: a program that needs glibc 2.34, libgcc and nothing else of the machine that it runs
# on: for the wheel, the package and the archive of scripts/release. Included before fmt and yaml-cpp are
# linked. What is not there as an archive (Debian has no static fmt) is compiled in from its headers.

set(stowage_fmt fmt::fmt)
if(STOWAGE_PORTABLE)
  set(stowage_fmt fmt::fmt-header-only)
  find_library(YAML_CPP_ARCHIVE libyaml-cpp.a REQUIRED)
  add_library(stowage_yaml_cpp STATIC IMPORTED GLOBAL)
  set_target_properties(stowage_yaml_cpp PROPERTIES IMPORTED_LOCATION ${YAML_CPP_ARCHIVE})
  add_link_options(-static-libstdc++ -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-s)
endif()

# The target that has yaml-cpp's code: the archive in a portable build. 0.7 (Debian 12) calls its own
# yaml-cpp, 0.8 (Ubuntu 24.04) yaml-cpp::yaml-cpp.
if(STOWAGE_PORTABLE)
  set(stowage_yaml stowage_yaml_cpp)
elseif(TARGET yaml-cpp::yaml-cpp)
  set(stowage_yaml yaml-cpp::yaml-cpp)
else()
  add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED)
  target_link_libraries(yaml-cpp::yaml-cpp INTERFACE yaml-cpp)
  set(stowage_yaml yaml-cpp::yaml-cpp)
endif()
