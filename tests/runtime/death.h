/* death.h -- checks how a function ends its process with an error: exit code 1 and one message on
 * stderr. */
#include <check.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *last_words(void (*run)(void))
{
    static char said[1024];
    int end[2], status;
    ck_assert_int_eq(pipe(end), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(end[1], 2);
        run();
        _exit(0);
    }
    close(end[1]);
    const ssize_t n = read(end[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = 0;
    close(end[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 1, "status %d: %s", status, said);
    return said;
}
