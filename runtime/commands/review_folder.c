/* review_folder.c -- see review.h.
 *
 * metrics.json lists the files of a report, and gets its name last.  So an earlier report is known
 * by it.  Its files are removed when the new ones are on disk; metrics.json stays until it is
 * replaced.
 */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/json.h"
#include "commands/review.h"
#include "files/names.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The list of files in the metrics.json of an earlier report; NULL: there is none. */
static char *earlier_files(const char *path)
{
    enum { MOST = 1 << 16 };
    const int fd = open(rt_format("%s/metrics.json", path), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *text = rt_alloc(MOST);
    const ssize_t n = read(fd, text, MOST - 1);
    close(fd);
    const size_t mark = strlen(REVIEW_MARK);
    return n > (ssize_t)mark && memcmp(text, REVIEW_MARK, mark) == 0 ? text + mark : NULL;
}

/* Removes the temporary files that a killed run has left. */
static bool is_empty(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    if (!d)
        rt_die("--report: %s cannot be read: %s", path, strerror(errno));
    for (const struct dirent *e; (e = readdir(d));) {
        const char *end = strstr(e->d_name, FILE_TEMPORARY);
        if (end)
            file_others(rt_format("%s/%.*s", path, (int)(end - e->d_name), e->d_name));
        struct stat s;
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0;
    }
    closedir(d);
    return n == 0;
}

/* metrics.json stays until the new one replaces it.  A name with a slash is none of a report. */
static void clear(const ReviewFolder *f)
{
    char name[256];
    bool first = true;
    const char *list = earlier_files(f->path);
    Json j = json_read(list ? list : "]", list ? (int64_t)strlen(list) : 1);
    while (json_next(&j, ']', &first) && json_string(&j, name, sizeof name))
        if (!strchr(name, '/') && strcmp(name, "metrics.json") != 0)
            unlink(rt_format("%s/%s", f->path, name));
}

/* The directory in which `path` lies: "." of "report/". */
static const char *parent_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n > 0 ? rt_format("%.*s", (int)n, path) : ".";
}

void review_folder_check(ReviewFolder *f, const char *path)
{
    f->path = path;
    struct stat s;
    if (stat(path, &s) != 0) {
        if (errno != ENOENT || !*path || access(parent_of(path), W_OK | X_OK) != 0)
            rt_die("--report: the directory %s cannot be made: %s", path, strerror(errno));
        return;
    }
    if (!S_ISDIR(s.st_mode))
        rt_die("--report: %s is not a directory: name another one", path);
    if (!earlier_files(path) && !is_empty(path))
        rt_die("--report: the directory %s holds files that are no report: name an empty or a new "
               "one",
               path);
    file_check(rt_format("%s/metrics.json", path));
}

void review_folder_open(ReviewFolder *f)
{
    f->made = mkdir(f->path, 0777) == 0;
    if (f->made)
        rt_unfinished(f->path);
    else if (errno != EEXIST)
        rt_die("--report: the directory %s cannot be made: %s", f->path, strerror(errno));
}

void review_folder_commit(ReviewFolder *f)
{
    clear(f);
    for (int i = 0; i < f->n; i++)
        file_commit(&f->file[i]);
    if (f->made)
        rt_finished(f->path);
}

void review_begin(ReviewFolder *f, const char *name)
{
    f->written[f->n] = name;
    file_create(&f->file[f->n], rt_format("%s/%s", f->path, name));
}

void review_bytes(ReviewFolder *f, const void *bytes, int64_t n)
{
    file_write(&f->file[f->n], bytes, n);
}

void review_print(ReviewFolder *f, const char *fmt, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, fmt);
    const int n = vasprintf(&text, fmt, args);
    va_end(args);
    if (n < 0)
        rt_die("out of memory for a report");
    file_write(&f->file[f->n], text, n);
    free(text);
}

void review_field(ReviewFolder *f, const char *text)
{
    const bool quoted = strpbrk(text, ",;\t\"\r\n") != NULL;
    review_print(f, quoted ? "\"" : "");
    for (; *text; text++)
        review_print(f, *text == '"' ? "\"\"" : "%c", *text);
    review_print(f, quoted ? "\"" : "");
}

void review_string(ReviewFolder *f, const char *text)
{
    const int64_t room = json_room((int64_t)strlen(text));
    char *quoted = rt_alloc((size_t)room);
    file_write(&f->file[f->n], quoted, json_quote(quoted, room, text));
    free(quoted);
}

void review_number(ReviewFolder *f, double v)
{
    /* v - v is not 0 for NaN and infinity */
    review_print(f, v - v == 0 ? "%.12g" : "null", v);
}

void review_value(ReviewFolder *f, double v, int digits)
{
    if (isnan(v))
        review_print(f, ",nan"); /* printf writes its sign, too */
    else
        review_print(f, ",%.*g", digits, v);
}

void review_xml(ReviewFolder *f, const char *text)
{
    static const char special[] = "<>&\"";
    static const char *const name[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    for (; *text; text++) {
        const char *at = strchr(special, *text);
        const bool control = (unsigned char)*text < ' '; /* XML has no such characters */
        review_print(f, "%.*s", at ? 8 : 1, at ? name[at - special] : control ? " " : text);
    }
}

void review_finish(ReviewFolder *f)
{
    file_sync(&f->file[f->n++]);
}
