# The plugin for HDF5. libanneal has no HDF5 in it: Debian's brings 36 other libraries, and a host may have one of its own.
set(hdf5_version "")
# An HDF5 for another machine would have to be found among that machine's libraries: nobody has asked for it.
if(ANNEAL_HDF5 AND NOT CMAKE_CROSSCOMPILING)
    pkg_check_modules(hdf5 QUIET IMPORTED_TARGET hdf5-serial>=1.10.3) # which is the first with H5Dread_chunk
    if(NOT hdf5_FOUND)
        pkg_check_modules(hdf5 QUIET IMPORTED_TARGET hdf5>=1.10.3)
    endif()
endif()
if(hdf5_FOUND)
    find_package(Threads REQUIRED)
    add_library(anneal_hdf5 MODULE plugins/hdf5/hdf5.c)
    target_include_directories(anneal_hdf5 PRIVATE include src)
    target_link_libraries(anneal_hdf5 PRIVATE PkgConfig::hdf5 Threads::Threads)
    set_target_properties(anneal_hdf5 PROPERTIES OUTPUT_NAME anneal-hdf5)
    install(TARGETS anneal_hdf5 LIBRARY DESTINATION ${ANNEAL_PLUGIN_DIR})
    set(hdf5_version ${hdf5_VERSION})
endif()
