# install.cmake -- a tree that can be moved: tenon finds everything relative to its own place.
install(TARGETS tenon RUNTIME DESTINATION bin)
install(TARGETS tenonrt ARCHIVE DESTINATION lib/tenon)
if(TARGET tenon-bench)
    install(TARGETS tenon-bench tenon-peak RUNTIME DESTINATION lib/tenon)
    install(FILES ${CMAKE_BINARY_DIR}/tenon.commit DESTINATION lib/tenon)
endif()
install(DIRECTORY runtime/ DESTINATION share/tenon/runtime FILES_MATCHING PATTERN "*.h" PATTERN "comm/mpi.c")
install(DIRECTORY models/ DESTINATION share/tenon/models)

# What README.md links to lies beside it, under the same names.
set(doc share/doc/tenon)
install(FILES README.md LICENSE CHANGELOG.md ARCHITECTURE.md DESTINATION ${doc})
install(FILES grammar/language.md DESTINATION ${doc}/grammar)
install(FILES models/data/mnist/README.md DESTINATION ${doc}/models/data/mnist)
install(FILES models/data/tinyshakespeare/README.md DESTINATION ${doc}/models/data/tinyshakespeare)
file(GLOB models CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/models/*.tn)
install(FILES ${models} DESTINATION ${doc}/models)
install(DIRECTORY generated/ DESTINATION ${doc}/generated)
