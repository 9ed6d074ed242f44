/* kept.c -- which results of tests are still valid, decided by content.
 *
 *   kept save DIR NAME START COST     keeps the result of a test that passed; reads DIR/NAME.trace
 *                                     (lines of trace.c, without duplicates), and from the standard
 *                                     input the verdict: passed, failed, skipped, seconds
 *   kept check DIR JOBS NAME...       prints "NAME PASSED FAILED SKIPPED SECONDS" for each test
 *                                     whose kept result is valid
 *
 * A record DIR/NAME has a line with a hash for everything that the test read.  It is valid while
 * all of it is the same.  The compiler is an exception: if its binary (or a header or model that it
 * read) has changed, the calls of the test are repeated, and the result stays valid if all answers
 * are the same: exit code, output, written files.  For `build` and `run` the answer is the key of
 * the program (`--key`), a hash of emitted text, headers, flags, C compiler and runtime.
 *
 * Some calls depend on the driver: `sweep`, `results` and `watch` start another program, `cache` compiles
 * nothing, and a build can fail after its key is known, for example when the C compiler fails.  For
 * these, the sources of the driver count, too: compiler/main.c, base/, tool/.  The binary itself
 * counts if a call cannot be repeated (--tune, fmt, new, completion, lsp), if there are more than CALLS_MOST calls, and for
 * tests of less than COST seconds.
 *
 * START: when the test began (seconds since 1970); a file that changed later makes the result
 * invalid.  Environment: CHECK_TRACE_ROOT, CHECK_TRACE_TENON, CHECK_QUIET as for trace.c;
 * CHECK_TRACER: that library; CHECK_SCRATCH_ROOT.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 4096, CALL_SECONDS = 60, CALLS_MOST = 400 };

static const char *tenon, *tracer, *scratch_root;

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "kept: %s %s: %s\n", what, name, strerror(errno));
    exit(1);
}

__attribute__((format(printf, 1, 2))) static char *text(const char *format, ...)
{
    char *s;
    va_list list;
    va_start(list, format);
    if (vasprintf(&s, format, list) < 0)
        fail("no memory for", format);
    va_end(list);
    return s;
}

/* ---- hashes: two of 64 bits (FNV-1a with different starts and multipliers) */

typedef struct Hash { uint64_t a, b; } Hash;

static void hash_bytes(Hash *h, const void *bytes, size_t n)
{
    const unsigned char *s = bytes;
    for (size_t i = 0; i < n; i++) {
        h->a = (h->a ^ s[i]) * 1099511628211u;
        h->b = (h->b ^ s[i]) * 0x9e3779b97f4a7c15u;
        h->b ^= h->b >> 29;
    }
}

static void hash_text(Hash *h, const char *s)
{
    hash_bytes(h, s, strlen(s) + 1);
}

/* Hashes the content of a file; "absent" and "unreadable" count as contents. */
static void hash_file(Hash *h, const char *path)
{
    static char bytes[1 << 16];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        hash_text(h, errno == ENOENT ? "absent" : "unreadable");
    for (ssize_t n; fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0;)
        hash_bytes(h, bytes, (size_t)n);
    if (fd >= 0)
        close(fd);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void hash_directory(Hash *h, const char *path)
{
    struct dirent **e;
    const int n = scandir(path, &e, NULL, by_name);
    for (int i = 0; i < n; i++) {
        hash_text(h, e[i]->d_name);
        free(e[i]);
    }
    if (n >= 0)
        free(e);
}

static const Hash FIRST = {1469598103934665603u, 0x2545f4914f6cdd1du};

static char *print(Hash h)
{
    return text("%016llx%016llx", (unsigned long long)h.a, (unsigned long long)h.b);
}

/* The hash of a path's state.  letter: D, the names in a directory; A, whether the path exists; else, the content of a file.  Each
 * path is read once in a run; `known` is a table of earlier results. */
static const char *state_of(char letter, const char *path)
{
    typedef struct Known { char *key, *hash; struct Known *next; } Known;
    static Known *known[1 << 14];
    char *key = text("%c%s", letter == 'D' || letter == 'A' ? letter : 'F', path);
    Hash h = FIRST;
    hash_text(&h, key);
    Known **place = &known[h.a % (sizeof known / sizeof *known)];
    for (Known *k = *place; k; k = k->next)
        if (strcmp(k->key, key) == 0)
            return free(key), k->hash;
    h = FIRST;
    if (letter == 'D')
        hash_directory(&h, path);
    else if (letter == 'A')
        hash_text(&h, access(path, F_OK) == 0 ? "present" : "absent");
    else
        hash_file(&h, path);
    Known *k = malloc(sizeof *k);
    *k = (Known){key, print(h), *place};
    *place = k;
    return k->hash;
}

/* ---- calls of the compiler */

/* The words of a file, each ended by NUL; NULL follows the last one. */
static char **words(const char *path)
{
    size_t len = 0, n = 0;
    char *line = NULL, **word = calloc(WORDS, sizeof *word);
    FILE *f = fopen(path, "re");
    while (f && n + 8 < WORDS && getdelim(&line, &len, 0, f) > 0)
        word[n++] = strdup(line);
    if (f)
        fclose(f);
    free(line);
    return word;
}

static char *line_of(const char *path)
{
    char *line = NULL;
    size_t len = 0;
    FILE *f = fopen(path, "re");
    if (!f || getdelim(&line, &len, 0, f) < 0)
        line = strdup("");
    if (f)
        fclose(f);
    line[strcspn(line, "\n")] = 0;
    return line;
}

static void make_parents(char *path)
{
    for (char *s = path + 1; (s = strchr(s, '/')); s++) {
        *s = 0;
        mkdir(path, 0777);
        *s = '/';
    }
}

static void copy(const char *from, const char *to)
{
    char bytes[1 << 14];
    const int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    for (ssize_t n; in >= 0 && out >= 0 && (n = read(in, bytes, sizeof bytes)) > 0;)
        if (write(out, bytes, (size_t)n) != n)
            fail("cannot write", to);
    close(in);
    close(out);
}

/* In a directory of the test, makes a link to the repository's models if a word such as models/lenet.tn of the command line needs
 * it. */
static void link_to_repository(const char *word, const char *cwd)
{
    const int n = (int)strcspn(word, "/");
    const char *here = text("%s/%.*s", cwd, n, word), *there = text("%s/%.*s", getenv("CHECK_TRACE_ROOT"), n, word);
    if (n > 0 && word[n] && access(here, F_OK) != 0 && access(there, F_OK) == 0 && symlink(there, here) != 0)
        fail("cannot make", here);
}

/* Restores the model files of a call, and makes the directories that its words name; not if the call has failed, because a
 * missing directory may have been the reason. */
static void restore(const char *call, char **argv, const char *cwd, bool failed)
{
    char *line = NULL, *path;
    size_t len = 0;
    FILE *f = fopen(text("%s/in", call), "re");
    while (f && getline(&line, &len, f) > 0) {
        line[strcspn(line, "\n")] = 0;
        path = strchr(line, ' ');
        *path++ = 0;
        make_parents(path);
        copy(text("%s/%s", call, line), path);
    }
    if (f)
        fclose(f);
    free(line);
    make_parents(text("%s/", cwd));
    for (; !failed && *argv; argv++)
        if (strncmp(*argv, scratch_root, strlen(scratch_root)) == 0)
            make_parents(text("%s", *argv));
        else if (strncmp(cwd, scratch_root, strlen(scratch_root)) == 0)
            link_to_repository(*argv, cwd);
}

typedef enum CallKind { CALL_REPEATED, CALL_DRIVER, CALL_NEVER } CallKind;

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* How a call is repeated.  `build` and `run` become `build --key`; an unknown command is an error, which can be repeated. */
static CallKind kind_of(char **argv, bool failed)
{
    static const char *const driver[] = {"sweep", "results", "watch", "cache", NULL}, *const build[] = {"build", "run", NULL};
    static const char *const never[] = {"fmt", "new", "completion", "lsp", NULL}; /* they read standard input, make files, or ask tenon-bench */
    size_t n = 1;
    if (!argv[0])
        return CALL_NEVER;
    if (!argv[1])
        return CALL_REPEATED;
    if (is_one_of(argv[1], driver))
        return CALL_DRIVER;
    if (is_one_of(argv[1], never))
        return CALL_NEVER;
    for (; argv[n] && strcmp(argv[n], "--") != 0; n++)
        if (strcmp(argv[n], "--tune") == 0 && !failed)
            return CALL_NEVER;
    if (is_one_of(argv[1], build)) {                  /* first, because after an option it could be its value */
        while (argv[n])
            n++;
        memmove(argv + 3, argv + 2, (n - 1) * sizeof *argv);
        argv[2] = strdup("--key");
    }
    return CALL_REPEATED;
}

/* Whether a word of the environment names a C compiler that the test has made: a script that no longer exists, which called the
 * C compiler that is found without it. */
static bool is_own_compiler(const char *word)
{
    static const char *const name[] = {"CC=", "MPICC=", "NVCC="};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (strncmp(word, name[i], strlen(name[i])) == 0)
            return strncmp(word + strlen(name[i]), scratch_root, strlen(scratch_root)) == 0;
    return false;
}

static void run_call(const char *call, char **argv, const char *cwd, const char *out)
{
    char **env = words(text("%s/env", call));
    size_t n = 0;
    const struct rlimit cpu = {CALL_SECONDS, CALL_SECONDS};
    for (size_t i = 0; env[i]; i++)
        if (!is_own_compiler(env[i]))
            env[n++] = env[i];
    env[n++] = text("LD_PRELOAD=%s", tracer);
    env[n++] = text("CHECK_TRACE=%s.wrote", out);
    mkdir(text("%s.wrote.d", out), 0777);
    env[n++] = text("CHECK_TRACE_ROOT=%s", getenv("CHECK_TRACE_ROOT"));
    env[n++] = text("CHECK_TRACE_TENON=%s", tenon);
    env[n++] = "CHECK_QUIET=";
    env[n++] = "CHECK_WRITES=1";
    env[n] = NULL;
    setrlimit(RLIMIT_CPU, &cpu);
    if (chdir(cwd) != 0 || !freopen("/dev/null", "r", stdin) || !freopen(text("%s.stdout", out), "w", stdout) ||
        !freopen(text("%s.stderr", out), "w", stderr))
        _exit(126);
    argv[0] = (char *)tenon;
    execve(tenon, argv, env);
    _exit(127);
}

static void hash_written(Hash *h, const char *list)
{
    char *line = NULL;
    size_t len = 0;
    FILE *f = fopen(list, "re");
    while (f && getline(&line, &len, f) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == 'W' && strncmp(line + 2, scratch_root, strlen(scratch_root)) == 0)
            hash_text(h, line), hash_file(h, line + 2);
    }
    if (f)
        fclose(f);
    free(line);
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(path), 0;
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The result of a repeated call: a hash of the compiler's answer, its recorded exit code (-1: it was replaced by a program that
 * it started) and its exit code now (-1: it did not end normally). */
typedef struct Answer {
    CallKind kind;
    char *hash;
    int then, now;
} Answer;

static Answer answer(const char *call, const char *name)
{
    static const char *const parts[] = {".stdout", ".stderr"};
    char **argv = words(text("%s/argv", call)), *cwd = line_of(text("%s/cwd", call)), *out = text("%s/%s.answer", scratch_root, name);
    const char *seen = line_of(text("%s/exit", call));
    Answer a = {.then = *seen ? atoi(seen) : -1, .now = -1};
    int status = -1;
    Hash h = FIRST;
    a.kind = kind_of(argv, a.then > 0);
    if (a.kind != CALL_REPEATED)
        return a;
    restore(call, argv, cwd, a.then > 0);
    const pid_t pid = fork();
    if (pid == 0)
        run_call(call, argv, cwd, out);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        status = -1;
    a.now = status == -1 ? -1 : WEXITSTATUS(status);
    hash_text(&h, text("%d", status));
    for (int i = 0; i < 2; i++) {
        hash_file(&h, text("%s%s", out, parts[i]));
        unlink(text("%s%s", out, parts[i]));
    }
    hash_written(&h, text("%s.wrote.d/%d", out, (int)pid));
    remove_tree(text("%s.wrote.d", out));
    a.hash = print(h);
    return a;
}

/* ---- records */

/* Adds the sources of the driver to the record. */
static void save_driver(FILE *record)
{
    static const char *const part[] = {"compiler/main.c", "compiler/base", "compiler/tool"};
    struct dirent **e;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        const char *path = text("%s/%s", getenv("CHECK_TRACE_ROOT"), part[i]);
        const int n = scandir(path, &e, NULL, by_name);
        fprintf(record, "%c %s %s\n", n < 0 ? 'F' : 'D', state_of(n < 0 ? 'F' : 'D', path), path);
        for (int k = 0; k < n; k++)
            if (e[k]->d_name[0] != '.') {
                const char *file = text("%s/%s", path, e[k]->d_name);
                fprintf(record, "F %s %s\n", state_of('F', file), file);
            }
    }
}

static void explain(const char *call, const char *name, Answer a)
{
    if (!getenv("CHECK_VERBOSE"))
        return;
    fprintf(stderr, "%s: cannot be repeated, exit code %d then, %d now:", name, a.then, a.now);
    for (char **word = words(text("%s/argv", call)); *word; word++)
        fprintf(stderr, " %s", *word);
    fputc('\n', stderr);
}

/* Adds the calls of a trace to the record; false if one of them cannot be repeated. */
static bool save_calls(FILE *record, const char *dir, const char *name)
{
    char *line = NULL;
    size_t len = 0;
    bool ok = true, driver = false;
    const char *calls = text("%s/%s.calls", dir, name);
    remove_tree(calls);
    if (rename(text("%s/%s.trace.calls", dir, name), calls) != 0)
        return false;
    FILE *f = fopen(text("%s/%s.trace", dir, name), "re");
    while (ok && f && getline(&line, &len, f) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] != 'C')
            continue;
        const char *call = text("%s%s", calls, strrchr(line, '/'));
        const Answer a = answer(call, name);
        const bool same = a.then == a.now || (a.then == -1 && a.now == 0);
        ok = a.kind == CALL_DRIVER || (a.kind == CALL_REPEATED && (same || (a.then > 0 && a.now >= 0)));
        driver |= a.kind == CALL_DRIVER || !same;
        if (!ok)
            explain(call, name, a);
        else if (a.kind == CALL_REPEATED)
            fprintf(record, "C %s %s\n", a.hash, call);
    }
    if (f)
        fclose(f);
    free(line);
    remove_tree(text("%s/%s", scratch_root, name));
    if (!ok)
        remove_tree(calls);
    else if (driver)
        save_driver(record);
    return ok;
}

/* Number of directories of recorded calls. */
static int calls_of(const char *dir, const char *name)
{
    struct dirent **e;
    const int n = scandir(text("%s/%s.trace.calls", dir, name), &e, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(e[i]);
    if (n >= 0)
        free(e);
    return n - 2;
}

static int save(const char *dir, const char *name, long start, long cost)
{
    char *line = NULL;
    size_t len = 0;
    int passed, failed, skipped, seconds;
    bool opaque, compiles = false, same = true;
    struct stat s;
    if (scanf("%d %d %d %d", &passed, &failed, &skipped, &seconds) != 4)
        fail("no verdict of", name);
    const char *path = text("%s/%s", dir, name), *new = text("%s.new", path);
    FILE *trace = fopen(text("%s.trace", path), "re"), *record = fopen(new, "we");
    if (!trace || !record)
        fail("cannot keep the result of", name);
    fprintf(record, "V %d %d %d %d\nT %s %s\n", passed, failed, skipped, seconds, state_of('F', tenon), tenon);
    opaque = seconds < cost || calls_of(dir, name) > CALLS_MOST;
    while (getline(&line, &len, trace) > 0) {
        line[strcspn(line, "\n")] = 0;
        opaque |= line[0] == 'O';
        compiles |= line[0] == 'C';
        if (!strchr("FADI", line[0]))
            continue;
        same &= line[0] == 'A' || line[0] == 'D' || stat(line + 2, &s) != 0 || s.st_mtime < start;
        fprintf(record, "%c %s %s\n", line[0], state_of(line[0], line + 2), line + 2);
    }
    fclose(trace);
    free(line);
    if (compiles && (opaque || !save_calls(record, dir, name)))
        fprintf(record, "F %s %s\n", state_of('F', tenon), tenon);
    if (fclose(record) != 0 || !same || rename(new, path) != 0)
        unlink(new);
    return 0;
}

/* Whether the record is still valid. */
static bool valid(const char *dir, const char *name, char **verdict)
{
    char *line = NULL, letter, hash[40];
    size_t len = 0;
    int at = 0;
    bool ok = true, again = false;
    FILE *f = fopen(text("%s/%s", dir, name), "re"), *record = NULL;
    if (!f)
        return false;
    for (int pass = 0; ok && pass < 2; pass++) {      /* first the cheap checks, then the repeated calls of the compiler */
        rewind(f);
        if (pass == 1 && !again)
            break;
        if (pass == 1)
            record = fopen(text("%s/%s.new", dir, name), "we");
        while (ok && getline(&line, &len, f) > 0) {
            line[strcspn(line, "\n")] = 0;
            const char *path = sscanf(line, "%c %39s %n", &letter, hash, &at) == 2 ? line + at : "";
            const char *now = letter == 'V' ? NULL : letter == 'C' ? (pass ? answer(path, name).hash : hash) : state_of(letter, path);
            if (letter == 'V')
                *verdict = strdup(line + 2);
            else if (!now || strcmp(now, hash) != 0) {
                if (letter == 'T' || letter == 'I')
                    again = true;
                else
                    ok = false;
                if (!ok && getenv("CHECK_VERBOSE"))
                    fprintf(stderr, "%s: changed: %c %s\n", name, letter, path);
            }
            if (record)
                letter == 'V' ? fprintf(record, "%s\n", line) : fprintf(record, "%c %s %s\n", letter, now ? now : hash, path);
        }
    }
    fclose(f);
    free(line);
    if (again)
        remove_tree(text("%s/%s", scratch_root, name));
    if (record && fclose(record) == 0 && ok)
        rename(text("%s/%s.new", dir, name), text("%s/%s", dir, name));
    return ok;
}

static int check(const char *dir, int jobs, char **name)
{
    int running = 0, status;
    for (; *name || running > 0;) {
        if (*name && running < jobs) {
            const pid_t pid = fork();
            char *verdict = NULL;
            if (pid == 0) {
                if (valid(dir, *name, &verdict)) {
                    printf("%s %s\n", *name, verdict);
                    fflush(stdout);
                }
                _exit(0);
            }
            running += pid > 0;
            name++;
        } else if (wait(&status) > 0)
            running--;
    }
    return 0;
}

int main(int argc, char **argv)
{
    tenon = getenv("CHECK_TRACE_TENON");
    tracer = getenv("CHECK_TRACER");
    scratch_root = getenv("CHECK_SCRATCH_ROOT");
    if (!tenon || !tracer || !scratch_root || argc < 4) {
        fputs("kept: only ./check starts this program\n", stderr);
        return 1;
    }
    mkdir(scratch_root, 0777);
    if (strcmp(argv[1], "save") == 0 && argc == 6)
        return save(argv[2], argv[3], atol(argv[4]), atol(argv[5]));
    return check(argv[2], atoi(argv[3]), argv + 4);
}
