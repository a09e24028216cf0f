# The tarball: `cmake --build --preset release --target package`, or `cpack` in the build folder, writes it to packages/
# there. It holds every library beyond glibc and runs from any folder (packaging/carry-libraries). Debian packages are
# made by packaging/make-deb.
set(CPACK_GENERATOR TGZ)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_VENDOR "anneal")
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME anneal-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
if(NOT dnnl_FOUND)
    string(APPEND CPACK_PACKAGE_FILE_NAME -portable)
endif()

# What cmake/carry.cmake is told; names that begin with CPACK_ are handed on.
set(CPACK_ANNEAL_CARRY ${PROJECT_SOURCE_DIR}/packaging/carry-libraries)
if(dnnl_FOUND)
    get_filename_component(CPACK_ANNEAL_ONEDNN_LICENCES ${dnnl_DIR}/../../../share/doc/onednn ABSOLUTE)
endif()
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/carry.cmake)
include(CPack)
