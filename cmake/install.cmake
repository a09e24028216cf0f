# What `cmake --install` puts where, and how others find it: pkg-config and find_package(anneal). The installed tree can
# be moved: nothing in it names its own prefix.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/anneal)

# Two export sets, because programs that link the static library also need what the shared one keeps to itself.
install(TARGETS anneal_shared EXPORT annealTargets)
install(TARGETS anneal_static EXPORT annealStaticTargets)
install(EXPORT annealTargets NAMESPACE anneal:: DESTINATION ${package_dir})
install(EXPORT annealStaticTargets NAMESPACE anneal:: DESTINATION ${package_dir})
configure_package_config_file(cmake/annealConfig.cmake.in annealConfig.cmake INSTALL_DESTINATION ${package_dir})
configure_file(cmake/annealStatic.cmake.in annealStatic.cmake @ONLY)
write_basic_package_version_file(annealConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/annealConfig.cmake ${PROJECT_BINARY_DIR}/annealConfigVersion.cmake
    ${PROJECT_BINARY_DIR}/annealStatic.cmake DESTINATION ${package_dir})

# What anneal.pc adds for the static library: OpenMP's runtime, oneDNN and the libraries of train. Not as
# Requires.private, for which pkg-config wants to see their own files even where a program links the shared library.
set(private_libs ${OpenMP_C_LIBRARIES} ${dnnl_file} ${pcre2_LDFLAGS} ${utf8proc_LDFLAGS} ${yaml_LDFLAGS}
    ${zlib_LDFLAGS} ${xxhash_LDFLAGS} ${png_LDFLAGS} ${jpeg_LDFLAGS})
if(dnnl_folder)
    list(APPEND private_libs -Wl,-rpath,${dnnl_folder})
endif()
list(JOIN private_libs " " private_libs)
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
configure_file(cmake/anneal.pc.in anneal.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/anneal.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(DIRECTORY include/anneal ${PROJECT_BINARY_DIR}/include/anneal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES LICENSE README.md ARCHITECTURE.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)

# Programs to begin with. Each is a project of its own, which finds the installed anneal.
install(FILES examples/own-graph.ang DESTINATION ${CMAKE_INSTALL_DATADIR}/anneal/examples)
foreach(example mlp own-model own-op own-optimizer surrogate)
    install(DIRECTORY examples/${example} DESTINATION ${CMAKE_INSTALL_DATADIR}/anneal/examples)
endforeach()

# For clusters: `module use <prefix>/share/anneal/modulefiles`.
configure_file(packaging/modulefile.in modulefile @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/modulefile DESTINATION ${CMAKE_INSTALL_DATADIR}/anneal/modulefiles/anneal RENAME ${PROJECT_VERSION})
