/* find.c -- from the name of a data set to its directory. */
#include "base/error.h"
#include "base/variables.h"
#include "data/data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Search {
    char tried[2048];
    char *found;
    bool files; /* a file can be found, too */
} Search;

bool find_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool find_has_ending(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static void look_in(Search *s, const char *directory, const char *name)
{
    if (s->found || !directory || !*directory)
        return;
    char *path = rt_format("%s/%s", directory, name);
    const size_t have = strlen(s->tried);
    snprintf(s->tried + have, sizeof s->tried - have, "\n    %s", path);
    if (find_is_directory(path) || (s->files && access(path, F_OK) == 0))
        s->found = path;
}

/* Ends the program if `name` is a file where a directory is expected. */
static void refuse_file(const char *name)
{
    const bool table = find_has_ending(name, ".csv") || find_has_ending(name, ".tsv");
    if (access(name, F_OK) != 0 || find_is_directory(name))
        return;
    rt_die(table ? "a data set is a directory, and %s is a file: a table is data = csv(\"%s\")"
                 : "a data set is a directory, and %s is a file: a text is data = text(\"%s\")",
           name, name);
}

/* The path of a name without '/' in the first directory that has it. */
static char *look_everywhere(const RtProgram *p, const char *name, bool files)
{
    Search s = {.tried = "", .files = files};
    look_in(&s, getenv(VARIABLE(TENON_DATA)), name);
    for (int i = 0; p->data_dirs && p->data_dirs[i]; i++)
        look_in(&s, p->data_dirs[i], name);
    look_in(&s, "./models/data", name);
    look_in(&s, ".", name);
    if (!s.found && !files)
        refuse_file(name);
    if (!s.found)
        rt_die("no %s %s; looked for%s\n  give %s, or set TENON_DATA", files ? "table" : "data set",
               name, s.tried,
               files ? "a file or a directory with --data" : "a directory with --data DIR");
    return s.found;
}

char *find_data(const RtProgram *p, const char *name)
{
    if (!strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return look_everywhere(p, name, false);
    refuse_file(name);
    if (!find_is_directory(name))
        rt_die("the data directory %s does not exist", name);
    return rt_format("%s", name);
}

char *find_file(const RtProgram *p, const char *name)
{
    if (!strchr(name, '/'))
        return look_everywhere(p, name, true);
    if (access(name, F_OK) != 0)
        rt_die("the table %s does not exist", name);
    return rt_format("%s", name);
}
