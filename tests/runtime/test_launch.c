/* test_launch.c -- the variables of launchers (comm/launch.c): valid values, and errors. */
#include "comm/launch.h"
#include "suite.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const variable[] = {"TENON_RANKS", "TENON_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                       "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_NODES"};

/* Runs launch_read in a process with the environment `set`, "NAME=VALUE NAME=VALUE"; `said` gets its output, "RANK of SIZE, here" or a
 * message.  Returns the exit code. */
static int launched(const char *set, char said[512])
{
    int pipes[2], status;
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char words[512];
        dup2(pipes[1], 2);
        for (size_t i = 0; i < sizeof variable / sizeof *variable; i++)
            unsetenv(variable[i]);
        snprintf(words, sizeof words, "%s", set);
        for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
            putenv(word);
        const Launch l = launch_read();
        dprintf(2, "%d of %d%s", l.rank, l.size, l.one_host ? ", here" : "");
        _exit(0);
    }
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t some; (some = read(pipes[0], said + n, 511 - n)) > 0;)
        n += (size_t)some;
    said[n] = '\0';
    close(pipes[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static const struct { const char *set, *want; } good[] = {
    {"", "0 of 1, here"},
    {"TENON_RANKS= TENON_RANK=", "0 of 1, here"},
    {"TENON_RANKS=1 TENON_RANK=0", "0 of 1, here"},
    {"TENON_RANKS=4 TENON_RANK=3", "3 of 4, here"},
    {"TENON_RANKS=4 TENON_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1", "0 of 4, here"},
    {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=2", "2 of 4"},
    {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=4", "2 of 4, here"},
    {"PMI_SIZE=2 PMI_RANK=1 MPI_LOCALNRANKS=2", "1 of 2, here"},
    {"SLURM_PROCID=0", "0 of 1, here"},
    {"SLURM_STEP_NUM_TASKS=1", "0 of 1, here"},
    {"SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=7 SLURM_STEP_NUM_NODES=2", "7 of 8"},
};

START_TEST(what_launchers_say)
{
    char said[512];
    ck_assert_int_eq(launched(good[_i].set, said), 0);
    ck_assert_str_eq(said, good[_i].want);
}
END_TEST

static const struct { const char *set, *want; } wrong[] = {
    {"TENON_RANKS=abc", "TENON_RANKS=abc in the environment: a whole number from 1"},
    {"TENON_RANKS=-5 TENON_RANK=0", "TENON_RANKS=-5 in the environment"},
    {"TENON_RANKS=0 TENON_RANK=0", "TENON_RANKS=0 in the environment"},
    {"TENON_RANKS=2x TENON_RANK=0", "TENON_RANKS=2x in the environment"},
    {"TENON_RANKS=+2 TENON_RANK=0", "TENON_RANKS=+2 in the environment"},
    {"TENON_RANKS=99999999999999999999 TENON_RANK=0", "TENON_RANKS=99999999999999999999 in the environment"},
    {"TENON_RANKS=2 TENON_RANK=abc", "TENON_RANK=abc in the environment: a whole number from 0"},
    {"TENON_RANKS=1 TENON_RANK=abc", "TENON_RANK=abc in the environment"},
    {"TENON_RANKS=2 TENON_RANK=-1", "TENON_RANK=-1 in the environment"},
    {"TENON_RANKS=2 TENON_RANK=2", "TENON_RANK=2 with TENON_RANKS=2 in the environment: ranks are numbered from 0 to 1"},
    {"TENON_RANKS=1 TENON_RANK=1", "TENON_RANK=1 with TENON_RANKS=1"},
    {"TENON_RANKS=2", "TENON_RANKS=2 in the environment without TENON_RANK"},
    {"TENON_RANKS=1", "TENON_RANKS=1 in the environment without TENON_RANK"},
    {"TENON_RANK=1", "TENON_RANK=1 in the environment without TENON_RANKS"},
    {"OMPI_COMM_WORLD_SIZE=two OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=two in the environment"},
    {"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=x", "OMPI_COMM_WORLD_RANK=x in the environment"},
    {"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=0", "OMPI_COMM_WORLD_LOCAL_SIZE=0 in the environment"},
    {"PMI_SIZE=2", "PMI_SIZE=2 in the environment without PMI_RANK"},
    {"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=4", "SLURM_PROCID=4 with SLURM_STEP_NUM_TASKS=4"},
    {"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 SLURM_STEP_NUM_NODES=-1", "SLURM_STEP_NUM_NODES=-1 in the environment"},
};

START_TEST(what_they_must_not_say)
{
    char said[512];
    const int code = launched(wrong[_i].set, said);
    ck_assert_msg(code == 1, "%s: exit code %d: %s", wrong[_i].set, code, said);
    ck_assert_msg(strstr(said, wrong[_i].want) != NULL, "%s: '%s' is missing in: %s", wrong[_i].set, wrong[_i].want, said);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("launch");
    TCase *t = tcase_create("variables");
    tcase_add_loop_test(t, what_launchers_say, 0, sizeof good / sizeof *good);
    tcase_add_loop_test(t, what_they_must_not_say, 0, sizeof wrong / sizeof *wrong);
    suite_add_tcase(s, t);
    return suite_run(s);
}
