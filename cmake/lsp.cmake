# lsp.cmake -- tenon-lsp, the language server, which `tenon lsp` starts.  Without cJSON, this command reports it.
if(NOT CJSON_INCLUDE OR NOT CJSON_LIBRARY)
    message(STATUS "cJSON was not found (Debian: apt-get install libcjson-dev): no tenon lsp")
    return()
endif()

file(GLOB lsp CONFIGURE_DEPENDS compiler/lsp/*.c)
add_executable(tenon-lsp ${lsp})
target_include_directories(tenon-lsp PRIVATE ${CJSON_INCLUDE})
target_link_libraries(tenon-lsp PRIVATE tenoncore ${CJSON_LIBRARY})
target_compile_definitions(tenon-lsp PRIVATE TENON_VERSION="${PROJECT_VERSION}")
add_dependencies(tenon tenon-lsp)
