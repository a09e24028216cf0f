# CPack runs this between installing what it packs and packing it.
execute_process(COMMAND ${CPACK_ANNEAL_CARRY} ${CPACK_TEMPORARY_INSTALL_DIRECTORY} ${CPACK_ANNEAL_ONEDNN_LICENCES}
    RESULT_VARIABLE failed)
if(failed)
    message(FATAL_ERROR "the libraries that anneal loads could not be put into the tarball")
endif()
