/* main.c -- tenon-lsp: the language server, which `tenon lsp` starts.
 *
 * A program of its own, so that the compiler needs no cJSON.
 */
#include "lsp/server.h"
#include "tool/process.h"
#include "tool/stack.h"
#include <stdio.h>
#include <unistd.h>

static int run(void *arg)
{
    (void)arg;
    return server_run(STDIN_FILENO, STDOUT_FILENO);
}

int main(int argc, char **argv)
{
    (void)argv;
    process_begin();
    if (isatty(STDIN_FILENO))
        fputs("tenon lsp waits for an editor on standard input; end it with Ctrl-D, or see "
              "docs/how-to/editors.md\n",
              stderr);
    if (argc > 1) {
        fputs("tenon-lsp takes no options: it is started by tenon lsp\n", stderr);
        return 1;
    }
    return stack_run(run, NULL);
}
