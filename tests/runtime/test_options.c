/* test_options.c -- the --help of each kind of program, and the answer of a program to an option or
 * a command that it was built without. */
#define _GNU_SOURCE
#include "base/error.h"
#include "leaks.h"
#include "options/program_table.h"
#include "suite.h"
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *something = "";                    /* for pointers that nobody follows */
static const RtParam scale = {.name = RT_SCALING};

typedef enum Kind { CPU, F64, RANKS, GPU, GPUS, F16, FOLDERS, REVIEWS, CLASS_TEXT, NEXT, TOKENS, REGRESSION, BF16, KINDS } Kind;

static RtProgram program(Kind k)
{
    RtProgram p = {.model = "tiny",
                   .source = "tiny.tn",
                   .source_hash = "0123456789abcdef",
                   .compiler = "tenon",
                   .real_bytes = k == F64 ? 8 : 4,
                   .input_rank = 3,
                   .input_dim = {1, 28, 28},
                   .classes = 10,
                   .labels = 1,
                   .nmetric = k == REGRESSION ? 1 : 2,
                   .metric = {"loss", "accuracy"}};
    if (k == GPU || k == GPUS || k == F16)
        p.device = (const void *)something;
    if (k == RANKS || k == GPUS)
        p.transport = (const void *)something;
    if (k == GPUS)
        p.link = (const void *)something;
    if (k == F16)
        p.scaling = &scale;
    if (k == BF16)
        p.products = "bf16", p.isa = RT_ISA_X86_V4;
    if (k == FOLDERS)
        p.decode = (const void *)something;
    if (k == REVIEWS || k == NEXT || k == CLASS_TEXT)
        p.recipe.text.unit = RT_TEXT_CHAR;
    p.recipe.text.table = k == REVIEWS;
    if (k == REVIEWS || k == NEXT || k == TOKENS || k == CLASS_TEXT) {
        p.input_rank = 1;
        p.input_dim[0] = 12;
        p.vocab = 20;
        p.classes = k == NEXT ? 20 : 2;
        p.labels = k == NEXT ? 12 : 1;
    }
    return p;
}

/* Runs options_parse on "WORD WORD ..." in a process; what it prints goes to `said`.  Returns the exit code. */
static int parsed(Kind k, const char *words, char said[1 << 14])
{
    int pipes[2], status;
    ck_assert_int_eq(pipe(pipes), 0);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        char text[512], *argv[40] = {program_invocation_short_name};
        int argc = 1;
        const RtProgram p = program(k);
        static Options o;
        dup2(pipes[1], 1);
        dup2(pipes[1], 2);
        snprintf(text, sizeof text, "%s", words);
        for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
            argv[argc++] = word;
        options_parse(&o, &p, argc, argv);
        _exit(0);
    }
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t some; (some = read(pipes[0], said + n, (1 << 14) - 1 - n)) > 0;)
        n += (size_t)some;
    said[n] = '\0';
    close(pipes[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

/* ---- help */

static const struct {
    Kind kind;
    const char *words, *has, *lacks;                  /* of --help, in words that blanks separate */
} help[] = {
    {CPU, "", "--epochs --threads --groups --trace --stop-at", "--timeout --wire --reduce --loss-scale --launch-steps --samples-in GPU NCCL f16 %r 76"},
    {CPU, "", "train test predict bench info grads", "\n__generate \n__gradcheck"},
    {CPU, "bench", "--layers --trace --steps synthetic", "--comm --scale --timeout --launch-steps --samples-in --wire --reduce GPU 75 76"},
    {CPU, "test", "--weights --data", "--timeout --samples-in GPU 75"},
    {CPU, "predict", "--input .npy (N, 28) .csv PNG", "--text --samples-in tab"},
    {F64, "", "\n__gradcheck", "\n__generate"},
    {RANKS, "", "--timeout --timeout-start --wire %r 76", "--reduce --launch-steps --samples-in --loss-scale"},
    {RANKS, "bench", "--comm --scale", "--reduce"},
    {GPU, "", "--launch-steps --samples-in", "--groups --trace --timeout --wire --reduce --loss-scale"},
    {GPU, "bench", "--launch-steps --samples-in", "--layers --trace"},
    {GPUS, "", "--timeout --reduce --launch-steps", "--wire --groups"},
    {F16, "", "--loss-scale --loss-scale-steps", "--timeout"},
    {FOLDERS, "predict", "folder PNG tab", "--text"},
    {FOLDERS, "", "train/CLASS/*.png", "IDX"},
    {REVIEWS, "predict", "--text texts tab", "PNG"},
    {REVIEWS, "", "train.tsv", "\n__generate"},
    {CLASS_TEXT, "predict", "--text texts", "PNG"},
    {NEXT, "", "\n__generate input.txt", "train.tsv"},
    {NEXT, "generate", "--prompt --length --temperature --top-k --anew", "--epochs"},
    {NEXT, "predict", "tokens: (N, 12) CSV", "--text tab"},
    {TOKENS, "predict", "tokens: (N, 12)", "--text"},
    {REGRESSION, "", "--epochs", "--stop-at"},
};

/* The next word of a list; "_" in it stands for a blank. */
static const char *next_word(const char **list)
{
    static char word[64];
    size_t n = 0;
    while (**list == ' ')
        ++*list;
    for (; **list && **list != ' ' && n < sizeof word - 1; ++*list)
        word[n++] = **list == '_' ? ' ' : **list;
    word[n] = '\0';
    return n ? word : NULL;
}

START_TEST(help_lists_what_the_program_can_do)
{
    static char said[1 << 14];
    char words[64];
    snprintf(words, sizeof words, "%s --help", help[_i].words);
    ck_assert_int_eq(parsed(help[_i].kind, words, said), 0);
    const char *word, *list = help[_i].has;
    while ((word = next_word(&list)))
        ck_assert_msg(strstr(said, word) != NULL, "%d %s: '%s' is missing in:\n%s", help[_i].kind, words, word, said);
    list = help[_i].lacks;
    while ((word = next_word(&list)))
        ck_assert_msg(strstr(said, word) == NULL, "%d %s: '%s' should not be in:\n%s", help[_i].kind, words, word, said);
}
END_TEST

/* ---- answers */

static const struct {
    Kind kind;
    const char *words, *want;
} wrong[] = {
    {CPU, "--launch-steps 2", "--launch-steps is for programs for a GPU: build with --target cuda"},
    {CPU, "--samples-in host", "--samples-in is for programs for a GPU"},
    {CPU, "--loss-scale 8", "--loss-scale is for programs built with --dtype f16: build with --target cuda --dtype f16"},
    {GPU, "--loss-scale-steps 8", "--loss-scale-steps is for programs built with --dtype f16"},
    {CPU, "--timeout 3", "--timeout is for programs of several ranks: build with --comm mpi"},
    {GPU, "--wire bf16", "--wire is for programs built with --comm mpi"},
    {RANKS, "--wire f16", "--wire is f32 or bf16, not 'f16'"},
    {RANKS, "--wire f", "--wire is f32 or bf16, not 'f'"},
    {RANKS, "--reduce nccl", "--reduce is for programs built with --comm nccl: build with --target cuda --comm nccl"},
    {GPUS, "--reduce ring", "--reduce is tree or nccl, not 'ring'"},
    {GPU, "--groups 2", "--groups is for programs on the processor: build without --target cuda"},
    {GPU, "bench --layers", "--layers is for programs on the processor"},
    {GPU, "--trace t.json", "--trace is for programs on the processor"},
    {CPU, "bench --comm", "--comm is for programs of several ranks: build with --comm mpi"},
    {CPU, "bench --scale 8", "build with --comm mpi"},
    {CPU, "predict --text a", "--text is for programs that predict from texts: build with data = tsv"},
    {CPU, "generate", "generate is for networks that say which token comes next: build with data = text"},
    {CPU, "generate --help", "generate is for networks that say which token comes next"},
    {CPU, "gradcheck", "gradcheck is for programs built with --dtype f64, because f32 is too coarse for differences: build with --dtype f64"},
    {REGRESSION, "--stop-at 0.9", "--stop-at is for programs that report an accuracy"},
    {CPU, "--timeuot 3", "unknown option --timeuot"},
    {RANKS, "--timeuot 3", "did you mean --timeout?"},
    {CPU, "gradchek", "unknown command gradchek"},
    {CPU, "info --wire f32", "--wire is not an option of info"},
    {CPU, "predict --weights w", "predict needs --input FILE; images as numbers: .npy (N, 1, 28, 28) or .csv"},
    {REVIEWS, "predict --weights w", "predict needs --input FILE or --text TEXT; texts, one on each line"},
    {REVIEWS, "predict --weights w --input x --text y", "predict takes one of them"},
    {NEXT, "predict --weights w", "predict needs --input FILE; tokens: .npy (N, 12)"},
    {CPU, "--seed 08x", "--seed needs a whole number from 0 to 2^64 - 1, not '08x'"},
    {CPU, "--seed 0x", "--seed needs a whole number from 0 to 2^64 - 1, not '0x'"},
    {CPU, "--seed 18446744073709551616", "--seed needs a whole number from 0 to 2^64 - 1"},
    {CPU, "--epochs 1000000001", "--epochs needs a whole number from 0 to 1000000000, not '1000000001'"},
    {F16, "--loss-scale 16777217", "--loss-scale needs a number from 1 to 16777216, not '16777217'"},
    {RANKS, "bench --scale 0.0009", "--scale needs a number from 0.001 to 1000000000, not '0.0009'"},
    {CPU, "help", "unknown command help: `"},
    {CPU, "--txt x", "unknown option --txt: `"},
    {CPU, "--lr 0.1", "unknown option --lr: `"},
    {CPU, "--=3", "unknown option --: `"},
    {CPU, "--lgo x", "unknown option --lgo, did you mean --log?"},
    {CPU, "--shuffle maybe", "--shuffle is on or off, not 'maybe'"},
};

START_TEST(what_was_left_out_is_said)
{
    static char said[1 << 14];
    const int code = parsed(wrong[_i].kind, wrong[_i].words, said);
    ck_assert_msg(code == 1, "%s: exit code %d: %s", wrong[_i].words, code, said);
    ck_assert_msg(strstr(said, wrong[_i].want) != NULL, "%s: '%s' is missing in: %s", wrong[_i].words, wrong[_i].want, said);
}
END_TEST

START_TEST(seeds_are_decimal_numbers)
{
    static const struct {
        const char *word;
        uint64_t seed;
    } good[] = {{"0", 0}, {"010", 10}, {"08", 8}, {"0x10", 16}, {"18446744073709551615", UINT64_MAX}};
    const RtProgram p = program(CPU);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char word[32], *argv[] = {"tiny", "--seed", word};
        Options o;
        strcpy(word, good[i].word);
        options_parse(&o, &p, 3, argv);
        ck_assert_msg(o.seed == good[i].seed, "--seed %s is %llu", word, (unsigned long long)o.seed);
    }
}
END_TEST

/* ---- tables */

/* Every need of the table can be met, and each row is for a command that exists in some program. */
START_TEST(every_row_exists_somewhere)
{
    int met = 0;
    for (Kind k = CPU; k < KINDS; k++) {
        const RtProgram p = program(k);
        for (int i = 0; i < NEEDS; i++)
            met |= program_needs[i].met(&p) ? (int)program_needs[i].need : 0;
    }
    ck_assert_int_eq(met, (1 << NEEDS) - 1);
    for (int i = 0; i < program_option_count; i++) {
        const ProgramOption *t = &program_options[i];
        bool somewhere = false;
        for (Kind k = CPU; k < KINDS; k++) {
            const RtProgram p = program(k);
            for (int c = 0; c < COMMANDS; c++)
                somewhere |= t->commands >> c & 1 && !program_lacks(&p, t->needs | program_commands[c].needs);
        }
        ck_assert_msg(somewhere, "--%s exists in no program", t->name);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("options");
    TCase *t = tcase_create("tables");
    tcase_add_loop_test(t, help_lists_what_the_program_can_do, 0, sizeof help / sizeof *help);
    tcase_add_loop_test(t, what_was_left_out_is_said, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(t, seeds_are_decimal_numbers);
    tcase_add_test(t, every_row_exists_somewhere);
    suite_add_tcase(s, t);
    return suite_run(s);
}
