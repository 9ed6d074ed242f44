/* process.c -- other programs: the C compiler, and the program just built. */
#define _GNU_SOURCE                                   /* environ */
#include "tool/process.h"
#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void argv_add(Arena *a, Argv *v, const char *word)
{
    ARENA_PUSH(a, v->word, v->n, arena_strdup(a, word));
}

void argv_split(Arena *a, Argv *v, const char *words)
{
    while (*words) {
        const size_t blank = strspn(words, " \t\n"), len = strcspn(words + blank, " \t\n");
        if (len)
            ARENA_PUSH(a, v->word, v->n, arena_strndup(a, words + blank, len));
        words += blank + len;
    }
}

void argv_end(Arena *a, Argv *v)
{
    ARENA_PUSH(a, v->word, v->n, NULL);
    v->n--;
}

const char *argv_text(Arena *a, const Argv *v)
{
    Text t = text_new(a);
    for (int i = 0; i < v->n; i++) {
        const bool quote = v->word[i][strcspn(v->word[i], " \t\"'$&;()<>|*?")] != 0;
        text_printf(&t, quote ? "%s'%s'" : "%s%s", i ? " " : "", v->word[i]);
    }
    return t.s;
}

static void drain(int fd, Text *output)
{
    char bytes[4096];
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) != 0;) {
        if (n > 0)
            text_addn(output, bytes, (size_t)n);
        else if (errno != EINTR)
            return;
    }
}

int process_run(const Argv *v, Text *output)
{
    int pipe_fd[2], status = 0;
    pid_t pid;
    if (pipe(pipe_fd) != 0)
        return -1;
    posix_spawn_file_actions_t act;
    posix_spawn_file_actions_init(&act);
    posix_spawn_file_actions_adddup2(&act, pipe_fd[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&act, pipe_fd[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&act, pipe_fd[0]);
    posix_spawn_file_actions_addclose(&act, pipe_fd[1]);
    const int error = posix_spawnp(&pid, v->word[0], &act, NULL, v->word, environ);
    posix_spawn_file_actions_destroy(&act);
    close(pipe_fd[1]);
    if (!error) {
        drain(pipe_fd[0], output);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(pipe_fd[0]);
    errno = error;
    return error ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
