# Manual pages and completion for shells. The command writes them from its own tables, so it must run here: when it is
# built for another machine and no emulator is given, they are left out.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    set(manual ${PROJECT_BINARY_DIR}/manual)
    file(MAKE_DIRECTORY ${manual}/pages)
    add_custom_command(OUTPUT ${manual}/made
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}/pages
        COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/pages
        COMMAND anneal manual --output ${manual}/pages
        COMMAND anneal completion bash > ${manual}/anneal.bash
        COMMAND anneal completion zsh > ${manual}/_anneal
        COMMAND anneal completion fish > ${manual}/anneal.fish
        COMMAND ${CMAKE_COMMAND} -E touch ${manual}/made
        DEPENDS anneal)
    add_custom_target(manual ALL DEPENDS ${manual}/made)

    foreach(section 1 5)
        install(DIRECTORY ${manual}/pages/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
            FILES_MATCHING PATTERN "*.${section}")
    endforeach()
    install(FILES ${manual}/anneal.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME anneal)
    install(FILES ${manual}/_anneal DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${manual}/anneal.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
