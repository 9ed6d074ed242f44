/* cudnn_load.c -- the plans of a program at its start; see cudnn_load.h. */
#include "cuda/cudnn_load.h"
#include "base/variables.h"
#include "files/names.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- plans on disk */

/* FNV-1a over everything that determines a plan.  The file repeats graph and key, and both are
 * compared. */
static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *s = bytes; n--; s++)
        h = (h ^ *s) * 0x100000001b3;
    return h;
}

static void plan_path(char path[PATH_MAX], const char *dir, const CudnnPlanned *w,
                      const CudnnKey *k)
{
    const unsigned char rules =
        (unsigned char)(w->rules.exact + 2 * w->rules.any_order + 4 * CUDNN_RULES);
    uint64_t h = hash(0xcbf29ce484222325, w->graph, strlen(w->graph));
    h = hash(hash(h, k, sizeof *k), &rules, 1);
    snprintf(path, PATH_MAX, "%s/" FILE_PLAN, dir, (unsigned long long)h);
}

static char *read_plan(const char *path, size_t *n)
{
    struct stat s;
    FILE *f = fopen(path, "rb");
    char *text = f && fstat(fileno(f), &s) == 0 && s.st_size > 0 ? malloc((size_t)s.st_size) : NULL;
    *n = text ? fread(text, 1, (size_t)s.st_size, f) : 0;
    if (f)
        fclose(f);
    if (text && *n == (size_t)s.st_size)
        return text;
    free(text);
    return NULL;
}

/* Whether the second line is the graph. */
static bool is_of(const char *text, size_t n, const char *graph)
{
    const size_t len = strlen(graph);
    const char *s = memchr(text, '\n', n);
    return s && (size_t)(text + n - s) > len + 1 && memcmp(s + 1, graph, len) == 0 &&
           s[1 + len] == '\n';
}

static bool load_kept(CudnnPlan *p, const CudnnDevice *d, const CudnnPlanned *w, const char *path)
{
    size_t n;
    char *text = read_plan(path, &n);
    const bool ok = text && is_of(text, n, w->graph) && cudnn_plan_load(p, d, text, n);
    free(text);
    return ok;
}

/* Writes a temporary file and renames it: programs that start at the same time, also on other hosts
 * with the same directory, see complete files.  O_EXCL: an existing file belongs to another
 * process. */
static void keep_plan(CudnnPlan *p, const char *graph, const char *path)
{
    char beside[PATH_MAX + 128], host[65] = "";
    size_t n;
    char *text = cudnn_plan_text(p, graph, &n);
    if (gethostname(host, sizeof host - 1) != 0)
        *host = 0;
    snprintf(beside, sizeof beside, "%s.tmp-%s-%ld", path, host, (long)getpid());
    const int fd =
        text ? open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666) : -1;
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    bool ok = f && fwrite(text, 1, n, f) == n;
    ok = f && fclose(f) == 0 && ok;
    if (f && (!ok || rename(beside, path) != 0))
        unlink(beside);
    free(text);
}

/* Locks the file beside a plan; the lock ends with the process.  Returns the open file, or -1.
 * Then *busy says whether another process has the lock; if not, the directory allows no locks. */
static int lock_plan(const char *path, bool wait, bool *busy)
{
    char beside[PATH_MAX + sizeof FILE_LOCK];
    snprintf(beside, sizeof beside, "%s" FILE_LOCK, path);
    const int fd = open(beside, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    *busy = false;
    while (fd >= 0 && flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0)
        if (errno != EINTR) {
            *busy = errno == EWOULDBLOCK;
            close(fd);
            return -1;
        }
    return fd;
}

/* Removes the file.  A process that waits for its lock finds the plan when it gets the lock. */
static void unlock_plan(const char *path, int fd)
{
    char beside[PATH_MAX + sizeof FILE_LOCK];
    if (fd < 0)
        return;
    snprintf(beside, sizeof beside, "%s" FILE_LOCK, path);
    unlink(beside);
    close(fd);
}

/* Makes a directory and its parents, like mkdir -p. */
static bool make_dir(char *path)
{
    for (char *s = path + 1; *s; s++)
        if (*s == '/') {
            *s = 0;
            mkdir(path, 0777);
            *s = '/';
        }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

bool cudnn_load_dir(char *to, size_t room)
{
    const char *own = getenv(VARIABLE(TENON_CACHE)), *xdg = getenv(VARIABLE(XDG_CACHE_HOME)),
               *home = getenv(VARIABLE(HOME));
    int n = -1;
    if (own && *own)
        n = snprintf(to, room, "%s/plans", own);
    else if (xdg && *xdg)
        n = snprintf(to, room, "%s/tenon/plans", xdg);
    else if (home && *home)
        n = snprintf(to, room, "%s/.cache/tenon/plans", home);
    return n > 0 && (size_t)n < room && make_dir(to);
}

/* ---- a plan that is embedded, kept, or made now */

static bool make_plan(CudnnPlan *p, const CudnnDevice *d, const CudnnPlanned *w)
{
    CudnnGraph *g = malloc(sizeof *g);
    if (!g)
        return false;
    const bool read = cudnn_graph_read(g, d->api, w->graph),
               ok = read && cudnn_plan_make(p, g, d, &w->rules);
    if (!read)
        memcpy(p->why, g->why, sizeof p->why);
    cudnn_graph_free(g);
    free(g);
    return ok;
}

/* Makes a plan that no other process is making, and keeps it. */
static bool make_once(CudnnPlan *p, const CudnnDevice *d, const CudnnPlanned *planned,
                      const char *path, bool wait, CudnnFrom *from)
{
    bool busy, ok;
    const int lock = lock_plan(path, wait, &busy);
    *from = CUDNN_BUSY;
    if (busy)
        return false;
    *from = CUDNN_KEPT;
    ok = load_kept(p, d, planned, path); /* by the process that had the lock before */
    if (!ok) {
        *from = CUDNN_MADE;
        ok = make_plan(p, d, planned);
        if (ok)
            keep_plan(p, planned->graph, path);
    }
    unlock_plan(path, lock);
    return ok;
}

bool cudnn_load(CudnnPlan *p, const CudnnDevice *d, const CudnnPlanned *planned, const char *dir,
                bool wait, CudnnFrom *from)
{
    char path[PATH_MAX];
    const CudnnKey here = cudnn_key(d);
    *p = (CudnnPlan){0};
    *from = CUDNN_EMBEDDED;
    if (planned->plan && cudnn_plan_load(p, d, planned->plan, planned->bytes))
        return true;
    if (!dir) {
        *from = CUDNN_MADE;
        return make_plan(p, d, planned);
    }
    plan_path(path, dir, planned, &here);
    *from = CUDNN_KEPT;
    return load_kept(p, d, planned, path) || make_once(p, d, planned, path, wait, from);
}

/* ---- a launch */

bool cudnn_plan_run(CudnnPlan *p, cudnnHandle_t handle, int n, const int64_t *id, void *const *data,
                    void *workspace)
{
    const CudnnApi *api = p->api;
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t s = api->BackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (!s)
        s = api->BackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n,
                                     id);
    if (!s)
        s = api->BackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                     CUDNN_TYPE_VOID_PTR, n, data);
    if (!s)
        s = api->BackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                                     1, &workspace);
    if (!s)
        s = api->BackendFinalize(pack);
    if (!s)
        s = api->BackendExecute(handle, p->plan, pack);
    if (s)
        snprintf(p->why, sizeof p->why, "cuDNN: %s", api->GetErrorString(s));
    if (pack)
        api->BackendDestroyDescriptor(pack);
    return !s;
}
