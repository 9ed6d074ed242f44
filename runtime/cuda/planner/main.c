/* main.c -- tenon-plan: plans cuDNN graphs for a GPU that need not be present.
 *
 *   tenon-plan [--arch sm_90] [--driver 13.0] [--exact] [--any-order] [--jobs N] [--props FILE]
 *              [--out DIR] GRAPHS
 *   tenon-plan --version
 *
 * GRAPHS is a file with a graph in each line, in the language of runtime/cuda/cudnn_graph.h.  A
 * line can have several variants, separated by '|': the first variant with an engine is used.
 * Empty lines, and lines that begin with #, are skipped.  Each graph has one line of output, in the
 * order of the graphs:
 *
 *   plan WAY ENGINE NOTES WORKSPACE BYTES MILLISECONDS      DIR/NUMBER.plan has the plan
 *   none MILLISECONDS WHY
 *
 * WAY is the index of the variant, NUMBER that of the graph; both are counted from 0.
 *
 * tenon-plan is a separate program, so that the compiler links neither CUDA nor the runtime.  A
 * fused graph takes seconds, and cuDNN compiles one at a time in each process, so several processes
 * divide the lines.  If a process dies, its current line fails, and the others continue.
 */
#include "cuda/cudnn_plan.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS = 256 };

typedef enum { WAITING, AT_WORK, PLANNED, NONE } State;
typedef struct Answer {
    State state;
    int variant;
    pid_t by;
    CudnnPlan plan; /* its descriptor is valid only in the process that made it */
    size_t bytes;
    double ms;
    char why[2 * CUDNN_WHY];
} Answer;

typedef struct Planner {
    const char *arch, *props, *out, *file;
    int driver, jobs;
    CudnnRules rules;
    char **line;
    int n;
    CudnnApi api;
    CudnnDevice device;
    Answer *answer; /* shared by all processes */
    atomic_int *next;
} Planner;

static void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("tenon-plan: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- one graph */

static bool keep(const Planner *p, int i, const char *graph, Answer *a)
{
    char path[PATH_MAX];
    char *text = cudnn_plan_text(&a->plan, graph, &a->bytes);
    bool ok = text != NULL;
    if (ok && p->out) {
        snprintf(path, sizeof path, "%s/%d.plan", p->out, i);
        FILE *f = fopen(path, "wb");
        ok = f && fwrite(text, 1, a->bytes, f) == a->bytes;
        ok = f && fclose(f) == 0 && ok;
        if (!ok)
            snprintf(a->why, sizeof a->why, "cannot write a plan into %s: %s", p->out,
                     strerror(errno));
    } else if (!ok)
        snprintf(a->why, sizeof a->why, "%s", a->plan.why);
    free(text);
    return ok;
}

static bool plan_variant(const Planner *p, int i, const char *graph, Answer *a)
{
    CudnnGraph *g = malloc(sizeof *g);
    if (!g)
        die("out of memory");
    const bool read = cudnn_graph_read(g, &p->api, graph);
    bool ok = read && cudnn_plan_make(&a->plan, g, &p->device, &p->rules);
    if (ok)
        ok = keep(p, i, graph, a);
    else
        snprintf(a->why, sizeof a->why, "%s", read ? a->plan.why : g->why);
    cudnn_plan_free(&a->plan);
    cudnn_graph_free(g);
    free(g);
    return ok;
}

static void plan_line(const Planner *p, int i)
{
    Answer *a = &p->answer[i];
    const double start = now_ms();
    a->by = getpid(), a->state = AT_WORK, a->plan.api = &p->api;
    char *line = strdup(p->line[i]), *rest = line;
    if (!line)
        die("out of memory");
    for (a->variant = 0; a->state == AT_WORK && rest; a->variant++) {
        char *graph = strsep(&rest, "|");
        graph += strspn(graph, " ");
        for (size_t n = strlen(graph); n && graph[n - 1] == ' ';)
            graph[--n] = 0;
        if (plan_variant(p, i, graph, a))
            a->state = PLANNED;
    }
    a->variant--;
    a->ms = now_ms() - start;
    a->state = a->state == PLANNED ? PLANNED : NONE;
    free(line);
}

/* ---- all of them */

static void work(const Planner *p)
{
    for (int i; (i = atomic_fetch_add(p->next, 1)) < p->n;)
        plan_line(p, i);
    _exit(0);
}

static int start(const Planner *p, int running)
{
    while (running < p->jobs && running < p->n) {
        const pid_t pid = fork();
        if (pid < 0)
            die("cannot start a process: %s", strerror(errno));
        if (pid == 0)
            work(p);
        running++;
    }
    return running;
}

static void note_death(const Planner *p, pid_t pid, int status)
{
    for (int i = 0; i < p->n; i++)
        if (p->answer[i].state == AT_WORK && p->answer[i].by == pid) {
            p->answer[i].state = NONE;
            snprintf(p->answer[i].why, sizeof p->answer[i].why, "cuDNN's planner ended %s %d",
                     WIFSIGNALED(status) ? "by signal" : "with exit code",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
}

static void plan_all(const Planner *p)
{
    int status, running = start(p, 0);
    for (pid_t pid; running > 0 && (pid = wait(&status)) > 0;) {
        running--;
        if (status == 0)
            continue;
        note_death(p, pid, status);
        if (atomic_load(p->next) < p->n)
            running = start(p, running);
    }
}

static void print_answers(const Planner *p)
{
    char notes[128];
    for (int i = 0; i < p->n; i++) {
        const Answer *a = &p->answer[i];
        cudnn_plan_notes(&a->plan, notes);
        if (a->state == PLANNED)
            printf("plan %d %lld %s %lld %zu %.1f\n", a->variant, (long long)a->plan.engine, notes,
                   (long long)a->plan.workspace, a->bytes, a->ms);
        else
            printf("none %.1f %s\n", a->ms, a->why);
    }
}

/* ---- arguments */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t n = 0, room = 1 << 16;
    char *text = malloc(room);
    if (!f)
        die("cannot read %s: %s", path, strerror(errno));
    while (text && (n += fread(text + n, 1, room - n - 1, f)) == room - 1)
        text = realloc(text, room *= 2);
    if (!text || ferror(f))
        die("cannot read %s", path);
    fclose(f);
    text[n] = 0;
    return text;
}

static void read_graphs(Planner *p)
{
    char *text = read_file(p->file);
    size_t most = 1;
    for (const char *s = text; *s; s++)
        most += *s == '\n';
    p->line = calloc(most, sizeof *p->line);
    for (char *s; p->line && (s = strsep(&text, "\n"));)
        if (*s && *s != '#')
            p->line[p->n++] = s;
    p->answer = mmap(NULL, (size_t)p->n * sizeof *p->answer + sizeof *p->next,
                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!p->line || p->answer == MAP_FAILED)
        die("out of memory");
    p->next = (atomic_int *)(p->answer + p->n);
}

/* "13.0" -> 13000 */
static int driver_of(const char *word)
{
    int major = 0, minor = 0, end = 0;
    if (sscanf(word, "%d.%d%n", &major, &minor, &end) != 2 || word[end] || major < 12 ||
        major > 99 || minor < 0 || minor > 9)
        die("--driver takes the CUDA version of a driver, such as 13.0, not '%s'", word);
    return 1000 * major + 10 * minor;
}

static bool read_arguments(Planner *p, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *w = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(w, "--version") == 0)
            return true;
        if (strcmp(w, "--exact") == 0)
            p->rules.exact = true;
        else if (strcmp(w, "--any-order") == 0)
            p->rules.any_order = true;
        else if (w[0] != '-')
            p->file = w;
        else if (!v)
            die("%s needs a value", w);
        else if (i++, strcmp(w, "--arch") == 0)
            p->arch = v;
        else if (strcmp(w, "--driver") == 0)
            p->driver = driver_of(v);
        else if (strcmp(w, "--jobs") == 0)
            p->jobs = atoi(v);
        else if (strcmp(w, "--props") == 0)
            p->props = v;
        else if (strcmp(w, "--out") == 0)
            p->out = v;
        else
            die("no option '%s'; --arch, --driver, --exact, --any-order, --jobs, --props and --out "
                "are known",
                w);
    }
    if (!p->file)
        die("no file of graphs is given: tenon-plan [options] FILE");
    p->jobs = p->jobs < 1 ? 1 : p->jobs > JOBS ? JOBS : p->jobs;
    return false;
}

/* Opens the stand-in: in lib/ beside the program (a build tree), or beside the program (an
 * installed one). */
static void open_standin(const CudnnDevice *d)
{
    static const char *const places[] = {"lib/libtenonstandin.so", "libtenonstandin.so"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    void *so = NULL;
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    for (int i = 0; slash && !so && i < 2; i++) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self), self, places[i]);
        so = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    int *driver = so ? dlsym(so, "tenon_standin_driver") : NULL,
        *sms = so ? dlsym(so, "tenon_standin_sms") : NULL;
    if (!driver || !sms)
        die("libtenonstandin.so was not found beside %s: without it fused graphs cannot be planned",
            self);
    *driver = d->driver, *sms = d->sms;
}

int main(int argc, char **argv)
{
    char why[CUDNN_WHY];
    static Planner p = {.arch = "sm_90", .driver = 13000, .jobs = 1};
    const bool version = read_arguments(&p, argc, argv);
    if (!cudnn_open(&p.api, NULL, why))
        die("%s", why);
    if (version)
        return printf("cudnn %zu rules %d\n", p.api.version, CUDNN_RULES) < 0;
    const char *json = p.props ? read_file(p.props) : NULL;
    if (json ? !cudnn_device_described(&p.device, &p.api, json, why)
             : !cudnn_device_named(&p.device, &p.api, p.arch, p.driver, why))
        die("%s", why);
    open_standin(&p.device);
    read_graphs(&p);
    plan_all(&p);
    print_answers(&p);
    if (fflush(stdout) != 0)
        die("the answers could not be written: %s", strerror(errno));
    return 0;
}
