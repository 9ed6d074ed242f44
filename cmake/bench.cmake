# bench.cmake -- tenon-bench, which `tenon sweep` and `tenon results` start.  Without its libraries, these commands report it.
find_path(SQLITE_INCLUDE sqlite3.h)
find_library(SQLITE_LIBRARY sqlite3)
find_path(CJSON_INCLUDE cjson/cJSON.h)
find_library(CJSON_LIBRARY cjson)
if(NOT SQLITE_INCLUDE OR NOT SQLITE_LIBRARY OR NOT CJSON_INCLUDE OR NOT CJSON_LIBRARY)
    message(STATUS "SQLite or cJSON was not found (Debian: apt-get install libsqlite3-dev libcjson-dev): no tenon sweep")
    return()
endif()

file(GLOB bench CONFIGURE_DEPENDS bench/sweep/*.c)
list(FILTER bench EXCLUDE REGEX "/(main|peak)\\.c$")
add_library(tenonbench STATIC ${bench})
target_include_directories(tenonbench PUBLIC bench ${SQLITE_INCLUDE} ${CJSON_INCLUDE})
target_link_libraries(tenonbench PUBLIC tenoncore ${SQLITE_LIBRARY} ${CJSON_LIBRARY} ${CMAKE_DL_LIBS})

add_executable(tenon-bench bench/sweep/main.c)
target_link_libraries(tenon-bench PRIVATE tenonbench)

# A separate program, because compiler/ and runtime/ do not include each other.
find_package(Threads REQUIRED)
add_executable(tenon-peak bench/sweep/peak.c)
target_include_directories(tenon-peak PRIVATE runtime)
target_link_libraries(tenon-peak PRIVATE tenonrt Threads::Threads m)
add_dependencies(tenon tenon-bench tenon-peak)

# Writes the commit from which the compiler was built, for the store of results.
add_custom_target(tenon-commit COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUT=${CMAKE_BINARY_DIR}/tenon.commit
                  -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake BYPRODUCTS ${CMAKE_BINARY_DIR}/tenon.commit)
add_dependencies(tenon-bench tenon-commit)
