# bundle.cmake -- installs the shared libraries of tenon-lsp and tenon-bench beside them, so that the installed tree needs only libc.
#
#   TENON_BUNDLE = ON     for packages that cannot name other packages: packages/wheel, which adds the licences
option(TENON_BUNDLE "install SQLite and cJSON beside the programs that need them" OFF)
if(NOT TENON_BUNDLE)
    return()
endif()
if(NOT TARGET tenon-bench OR NOT TARGET tenon-lsp)
    message(FATAL_ERROR "TENON_BUNDLE=ON needs SQLite and cJSON (Debian: apt-get install libsqlite3-dev libcjson-dev)")
endif()
set_target_properties(tenon-bench tenon-lsp PROPERTIES INSTALL_RPATH "$ORIGIN")
install(CODE "
    file(GET_RUNTIME_DEPENDENCIES RESOLVED_DEPENDENCIES_VAR found EXECUTABLES $<TARGET_FILE:tenon-bench> $<TARGET_FILE:tenon-lsp>
         PRE_EXCLUDE_REGEXES [[^(lib(c|m|dl|rt|pthread)|ld-linux.*)\\.so]])
    foreach(library IN LISTS found)                       # the file itself, under the name that the programs ask for: a wheel has no links
        get_filename_component(name \${library} NAME)
        get_filename_component(file \${library} REALPATH)
        file(INSTALL \${file} DESTINATION \${CMAKE_INSTALL_PREFIX}/lib/tenon RENAME \${name})
    endforeach()")
