/* pages.c -- the memory nodes of the mapping of a process that has the most memory, of those without a file.
 *
 *   pages PID      prints "NODE PAGES" for each run of pages on the same node, in the order of their
 *                  addresses; NODE is -1 for pages that were never touched
 *
 * Source: Linux, move_pages(2): without a list of nodes it only reports.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* The nodes of the pages of the mapping begin..end; -1: not touched.  *touched: the number of others. */
static int *nodes(int process, unsigned long begin, unsigned long end, unsigned long *touched)
{
    const unsigned long n = (end - begin) / PAGE;
    void **page = calloc(n, sizeof *page);
    int *node = calloc(n, sizeof *node);
    for (unsigned long i = 0; page && i < n; i++)
        page[i] = (void *)(begin + i * PAGE);
    if (!page || !node || syscall(SYS_move_pages, process, n, page, NULL, node, 0) != 0) {
        perror("move_pages");
        exit(1);
    }
    *touched = 0;
    for (unsigned long i = 0; i < n; i++) {
        node[i] = node[i] < 0 ? -1 : node[i];
        *touched += node[i] >= 0;
    }
    free(page);
    return node;
}

int main(int argc, char **argv)
{
    char path[64], line[512], access[8];
    unsigned long from, to, inode, touched, most = 0, pages = 0;
    int *best = NULL;
    if (argc != 2)
        return 1;
    snprintf(path, sizeof path, "/proc/%s/maps", argv[1]);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &from, &to, access, &inode) == 4 &&
            inode == 0 && strncmp(access, "rw-p", 4) == 0 && !strchr(line, '[')) {
            int *node = nodes(atoi(argv[1]), from, to, &touched);
            if (touched > most) {
                best = node;
                most = touched;
                pages = (to - from) / PAGE;
            }
        }
    for (unsigned long i = 0, run = 1; i < pages; i++, run++)
        if (i + 1 == pages || best[i] != best[i + 1]) {
            printf("%d %lu\n", best[i], run);
            run = 0;
        }
    return most == 0;
}
