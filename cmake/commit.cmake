# commit.cmake -- writes the commit of the sources to OUT: "59cbae6", with a + if there are uncommitted changes; an empty line if the
# sources are not in git.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty=+ --abbrev=10 --exclude=* OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(WRITE ${OUT} "${commit}\n")
