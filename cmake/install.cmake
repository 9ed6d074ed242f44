# install.cmake -- a tree that can be moved: tenon finds everything relative to its own place.
install(TARGETS tenon RUNTIME DESTINATION bin)
install(TARGETS tenonrt ARCHIVE DESTINATION lib/tenon)
install(DIRECTORY runtime/ DESTINATION share/tenon/runtime FILES_MATCHING PATTERN "*.h")
install(DIRECTORY models/ DESTINATION share/tenon/models)
install(FILES LICENSE README.md DESTINATION share/doc/tenon)
install(FILES grammar/language.md DESTINATION share/doc/tenon OPTIONAL)
