# compiler.cmake -- the compiler: main.c, and a library of all directories, which unit tests link, too.
find_package(FLEX 2.6 REQUIRED)
find_package(BISON 3.8 REQUIRED)

set(grammar ${CMAKE_BINARY_DIR}/grammar)
file(MAKE_DIRECTORY ${grammar})
bison_target(parser ${CMAKE_SOURCE_DIR}/grammar/parser.y ${grammar}/parser.c
             DEFINES_FILE ${grammar}/parser.h)
flex_target(lexer ${CMAKE_SOURCE_DIR}/grammar/lexer.l ${grammar}/lexer.c
            DEFINES_FILE ${grammar}/lexer.h)
add_flex_bison_dependency(lexer parser)

file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
     compiler/base/*.c compiler/ir/*.c compiler/ops/*.c compiler/front/*.c
     compiler/passes/*.c compiler/emit/*.c compiler/cpu/*.c compiler/cuda/*.c compiler/scripts/*.c compiler/pictures/*.c
     compiler/tool/*.c)

# Each template of a script becomes an array in the compiler: pytorch.py.in is template_pytorch.
file(GLOB templates CONFIGURE_DEPENDS compiler/scripts/*.in)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/templates)
foreach(template ${templates})
    get_filename_component(stem ${template} NAME_WE)
    set(array ${CMAKE_BINARY_DIR}/templates/${stem}.c)
    add_custom_command(OUTPUT ${array} DEPENDS ${template} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
                       COMMAND ${CMAKE_COMMAND} -DFILE=${template} -DNAME=template_${stem} -DOUT=${array}
                               -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
    list(APPEND arrays ${array})
endforeach()

# The reader of tables, which `tenon new` shares with programs: runtime/data/sheet.h and what it needs.
set(reader base/clock base/error base/json base/near base/output data/csv data/sheet data/split data/table)
list(TRANSFORM reader REPLACE "(.+)" "runtime/\\1.c")
add_library(tenonreader OBJECT ${reader})
target_include_directories(tenonreader PRIVATE runtime)
set_source_files_properties(compiler/tool/table.c PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/runtime)

add_library(tenoncore STATIC ${sources} $<TARGET_OBJECTS:tenonreader> ${arrays} ${BISON_parser_OUTPUTS} ${FLEX_lexer_OUTPUTS})
# The root of the sources is for "runtime/constants.h", "runtime/base/glob.h" and "runtime/data/sheet.h", which the compiler shares with
# programs.
target_include_directories(tenoncore PUBLIC compiler ${CMAKE_BINARY_DIR} ${grammar} ${CMAKE_SOURCE_DIR})
target_compile_definitions(tenoncore PRIVATE TENON_VERSION="${PROJECT_VERSION}")
find_package(Threads REQUIRED)
target_link_libraries(tenoncore PUBLIC m Threads::Threads)
set_source_files_properties(${FLEX_lexer_OUTPUTS} PROPERTIES
                            COMPILE_OPTIONS "-Wno-unused-function;-Wno-sign-compare;-Wno-unused-parameter")

add_executable(tenon compiler/main.c)
target_link_libraries(tenon PRIVATE tenoncore)
