# reference.cmake -- tenon-reference, which writes docs/reference and the manual pages from the tables of tenon and of its programs.
#
# page.c needs only libc.  The compiler's part is linked with tenoncore.  Files of the runtime that contain only tables are compiled
# as sources, because libtenonrt.a cannot be linked as well: both libraries define file_read.
add_executable(tenon-reference docs/generate/main.c docs/generate/page.c
               docs/generate/made.c docs/generate/commands.c docs/generate/operations.c docs/generate/recipe.c bench/sweep/words.c
               docs/generate/program.c runtime/options/program_table.c)
target_compile_definitions(tenon-reference PRIVATE _GNU_SOURCE PROGRAM_REFERENCE TENON_VERSION="${PROJECT_VERSION}")
target_include_directories(tenon-reference PRIVATE bench runtime)
target_link_libraries(tenon-reference PRIVATE tenoncore)
set_target_properties(tenon-reference PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# The manual pages are made together with the compiler: build/man/man1/tenon.1 and so on.
set(manuals ${CMAKE_BINARY_DIR}/man/man1)
file(MAKE_DIRECTORY ${manuals})
add_custom_command(TARGET tenon-reference POST_BUILD COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:tenon-reference> man ${manuals} VERBATIM)
add_dependencies(tenon tenon-reference)
