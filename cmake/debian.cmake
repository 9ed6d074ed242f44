# debian.cmake -- run by cpack on the tree that becomes a .deb: manual pages, changelog and licence as Debian's policy asks (chapters
# 12.1, 12.5 and 12.7).
set(root ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
set(doc ${root}/doc/tenon)
file(GLOB pages ${root}/man/man1/*.1)
execute_process(COMMAND gzip -9n ${pages} RESULT_VARIABLE failed)
if(failed OR NOT pages)
    message(FATAL_ERROR "the manual pages in ${root} were not compressed")
endif()
execute_process(COMMAND gzip -9nc INPUT_FILE ${doc}/CHANGELOG.md OUTPUT_FILE ${doc}/changelog.gz RESULT_VARIABLE failed)
if(failed)
    message(FATAL_ERROR "${doc}/CHANGELOG.md was not compressed")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/copyright ${doc}/copyright COPYONLY)
file(REMOVE ${doc}/LICENSE)
file(CREATE_LINK ../../common-licenses/Apache-2.0 ${doc}/LICENSE SYMBOLIC)     # the documents link to this name
