/* main.c -- tenon-bench: what `tenon sweep` and `tenon results` start.
 *
 *   tenon-bench TENON sweep ...      measure: plan, build, run, store     sweep.c
 *   tenon-bench TENON results ...    list, table, compare, report         results.c
 *   tenon-bench TENON watch ...      curves of training                   watch.c
 *   tenon-bench TENON words          options of both, for completion      words.c
 *
 * TENON is the compiler.  tenon-bench is a separate program so that the compiler needs no database.
 */
#include "sweep/results.h"
#include "sweep/sweep.h"
#include "sweep/watch.h"
#include "sweep/words.h"
#include "tool/process.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    process_begin();
    if (argc < 3) {
        fprintf(stderr, "error: tenon-bench is started by tenon sweep, results and watch\n");
        return 1;
    }
    if (strcmp(argv[2], "words") == 0) {
        words_print();
        return 0;
    }
    Arena *a = arena_new();
    Diag *d = diag_new(a, DIAG_AUTO);
    const bool sweep = strcmp(argv[2], "sweep") == 0;
    const bool watch = strcmp(argv[2], "watch") == 0;
    int code = sweep   ? sweep_main(a, d, argv[1], argc - 3, argv + 3)
               : watch ? watch_main(a, d, argc - 3, argv + 3)
                       : results_main(a, d, argc - 3, argv + 3);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        diag_error(d, (Span){0}, "cannot write to stdout");
        code = 1;
    }
    diag_print(d, stderr);
    arena_free(a);
    return code;
}
