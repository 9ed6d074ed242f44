# commit.cmake -- writes "59cbae6", with a + after it when there are changes that are not committed, to OUT; an empty line where the sources are not in git.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty=+ --abbrev=10 --exclude=* OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(WRITE ${OUT} "${commit}\n")
