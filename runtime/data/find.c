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

static void look_everywhere(Search *s, const RtProgram *p, const char *name)
{
    look_in(s, getenv(VARIABLE(TENON_DATA)), name);
    for (int i = 0; p->data_dirs && p->data_dirs[i]; i++)
        look_in(s, p->data_dirs[i], name);
    look_in(s, "./models/data", name);
    look_in(s, ".", name);
}

char *find_data(const RtProgram *p, const char *name)
{
    if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        if (!find_is_directory(name))
            rt_die(access(name, F_OK) == 0 ? "a data set is a directory: %s is not one"
                                           : "the data directory %s does not exist",
                   name);
        return rt_format("%s", name);
    }
    Search s = {.tried = ""};
    look_everywhere(&s, p, name);
    if (!s.found)
        rt_die("no data set %s; looked for%s\n  give a directory with --data DIR, or set "
               "TENON_DATA",
               name, s.tried);
    return s.found;
}

char *find_file(const RtProgram *p, const char *name)
{
    if (strchr(name, '/')) {
        if (access(name, F_OK) != 0)
            rt_die("the table %s does not exist", name);
        return rt_format("%s", name);
    }
    Search s = {.tried = "", .files = true};
    look_everywhere(&s, p, name);
    if (!s.found)
        rt_die("no table %s; looked for%s\n  give a file or a directory with --data, or set "
               "TENON_DATA",
               name, s.tried);
    return s.found;
}
