/* process.h -- the test starts itself as the program under test: `SELF mini ARGUMENTS`, in a scratch directory. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char self[4096], scratch[64], said[1 << 16];   /* said: stdout and stderr of the last program */
static rlim_t file_limit = RLIM_INFINITY;             /* largest file that a program may write */

/* A path in the scratch directory; four of them live at a time. */
static const char *in_scratch(const char *name)
{
    static char path[4][256];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", scratch, name);
    return path[next];
}

static void process_setup(void)
{
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert(n > 0);
    snprintf(scratch, sizeof scratch, "/tmp/tenon-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
}

static void process_teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    ck_assert_int_eq(system(command), 0);
}

static pid_t start(const char *arguments)
{
    char line[2048], *argv[64] = {self, "mini"};
    int argc = 2;
    snprintf(line, sizeof line, "%s", arguments);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL); /* a handler of the library Check would look like one of the program */
    const pid_t pid = fork();
    if (pid == 0) {
        const int out = open(in_scratch("said"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        const struct rlimit limit = {file_limit, file_limit};
        dup2(out, 1);
        dup2(out, 2);
        if (file_limit != RLIM_INFINITY)
            setrlimit(RLIMIT_FSIZE, &limit);
        execv(self, argv);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    return pid;
}

static void read_file(const char *path, char *to, size_t room)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, room - 1, f) : 0;
    to[n] = 0;
    if (f)
        fclose(f);
}

/* The end of what the program has said. */
static void read_said(void)
{
    FILE *f = fopen(in_scratch("said"), "rb");
    ck_assert_ptr_nonnull(f);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f), room = sizeof said - 1;
    fseek(f, size > room ? size - room : 0, SEEK_SET);
    said[fread(said, 1, (size_t)room, f)] = 0;
    fclose(f);
}

/* The exit code, or 1000 + the signal that ended it. */
static int finish(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    read_said();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int __attribute__((format(printf, 1, 2))) run(const char *fmt, ...)
{
    char arguments[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(arguments, sizeof arguments, fmt, ap);
    va_end(ap);
    return finish(start(arguments));
}

#define succeeds(...)                                                                              \
    do {                                                                                           \
        const int code = run(__VA_ARGS__);                                                         \
        ck_assert_msg(code == 0, "exit code %d: %s", code, said);                                  \
    } while (0)

/* Exit code 1 and a message that says `what`. */
#define refuses(what, ...)                                                                         \
    do {                                                                                           \
        const int code = run(__VA_ARGS__);                                                         \
        ck_assert_msg(code == 1, "exit code %d: %s", code, said);                                  \
        ck_assert_msg(strstr(said, what) != NULL, "'%s' is missing in: %s", what, said);           \
    } while (0)

/* The value of the last "key": in a log, up to the comma; "" when there is none. */
static const char *last(const char *log, const char *key)
{
    static char text[1 << 20], value[4][128];
    static int next;
    char pattern[64], *at = NULL;
    next = (next + 1) % 4;
    read_file(log, text, sizeof text);
    ck_assert_uint_lt(strlen(text), sizeof text - 1); /* all of the log, so the last value is its last */
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    for (char *k = text; (k = strstr(k, pattern)); k++)
        at = k + strlen(pattern);
    snprintf(value[next], sizeof *value, "%.*s", at ? (int)strcspn(at, ",}") : 0, at ? at : "");
    return value[next];
}
