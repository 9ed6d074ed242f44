# commit.cmake -- writes the commit of the sources to OUT: "59cbae6", with a + if there are uncommitted changes; an empty line if the
# sources are not in git.  In a source tarball, commit.txt has the commit: `git archive` writes it.
file(STRINGS ${SOURCE}/cmake/commit.txt commit LIMIT_COUNT 1)
if(commit MATCHES "^[0-9a-f]+$")
    string(SUBSTRING ${commit} 0 10 commit)
else()
    execute_process(COMMAND git -C ${SOURCE} describe --always --dirty=+ --abbrev=10 --exclude=* OUTPUT_VARIABLE commit
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(WRITE ${OUT} "${commit}\n")
