/* store_error.c -- messages for SQLite's errors that say what the user can do. */
#include "sweep/store_error.h"
#include "tool/file.h"
#include <errno.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;

const char *store_directory(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_strndup(a, path, (size_t)(slash - path) + (slash == path)) : ".";
}

bool store_is_directory(const char *path, Diag *d)
{
    if (!dir_exists(path))
        return false;
    diag_error(d, nowhere, "%s is a directory, not a store", path);
    diag_help(d, "name a file: --store FILE");
    return true;
}

/* SQLite's own message is about its last attempt, which can be another one than the attempt that matters. */
static void say_no_file(Arena *a, Diag *d, const char *path, const char *message)
{
    const char *dir = store_directory(a, path);
    if (access(dir, F_OK) != 0)
        diag_error(d, nowhere, "there is no directory %s for the store %s", dir, path);
    else if (access(path, F_OK) != 0 && access(dir, W_OK) != 0)
        diag_error(d, nowhere, "cannot make the store %s: its directory cannot be written", path);
    else
        diag_error(d, nowhere, "cannot open the store %s: %s", path,
                   access(path, R_OK) != 0 ? strerror(errno) : message);
    diag_help(d, "name another: --store FILE");
}

void store_say(Arena *a, Diag *d, const char *path, int code, const char *message,
               const char *doing)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        diag_error(d, nowhere, "the store %s is locked by another program", path);
        diag_help(d, "wait until it is done, or find it: fuser %s", path);
        break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        diag_error(d, nowhere, "the store %s cannot be written", path);
        diag_help(d, "make the file and its directory writable, or name another: --store FILE");
        break;
    case SQLITE_FULL:
    case SQLITE_IOERR:
        diag_error(d, nowhere, "cannot %s the store %s: %s", doing, path,
                   (code & 0xff) == SQLITE_FULL ? "no space left" : message);
        diag_help(d, "what it holds is whole; make room and give the same command again");
        break;
    case SQLITE_NOTADB:
        diag_error(d, nowhere, "%s is no store of results", path);
        break;
    case SQLITE_CORRUPT:
        diag_error(d, nowhere, "the store %s is damaged", path);
        diag_help(d, "sqlite3 %s .recover saves what can be read", path);
        break;
    case SQLITE_CANTOPEN:
        say_no_file(a, d, path, message);
        break;
    default:
        diag_error(d, nowhere, "cannot %s the store %s: %s", doing, path, message);
    }
}
