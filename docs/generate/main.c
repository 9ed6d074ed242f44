/* main.c -- tenon-reference: writes the generated pages of docs/reference, or the manual pages.
 *
 *   tenon-reference markdown DIR       DIR/commands.md, DIR/operations.md ...
 *   tenon-reference man DIR            DIR/tenon.1, DIR/tenon-build.1 ...
 */
#include "reference.h"
#include <errno.h>
#include <string.h>

static void reference_environment(Page *p);
static void reference_limits(Page *p);

static const struct {
    const char *name, *title, *brief;
    void (*write)(Page *p);
} pages[] = {
    {"commands", "Commands", "every command of `tenon` with its options", reference_commands},
    {"operations", "Operations", "every operation of the language, with its arguments, shapes, formula, gradient and an example", reference_operations},
    {"recipe", "Recipe", "every key of a train block, with its values, ranges and defaults", reference_recipe},
    {"program", "Programs", "every command and option of a program that `tenon build` makes", reference_program},
    {"log", "Log records", "the records that a program writes with --log, and their fields", reference_program_log},
    {"files", "Files", "the files that a program writes and reads", reference_program_files},
    {"exit-codes", "Exit codes", "how programs and `tenon` end", reference_program_exits},
    {"environment", "Environment", "the environment variables that `tenon` and its programs read", reference_environment},
    {"limits", "Limits", "the limits of `tenon` and its programs", reference_limits},
};

/* The page has a chapter for the compiler and one for its programs. */
static void reference_environment(Page *p)
{
    page_section(p, "tenon");
    reference_tenon_environment(p);
    page_section(p, "Programs");
    reference_program_environment(p);
}

static void reference_limits(Page *p)
{
    page_section(p, "tenon");
    reference_tenon_limits(p);
    page_section(p, "Programs");
    reference_program_limits(p);
}

FILE *reference_open(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *out = fopen(path, "w");
    if (!out)
        fprintf(stderr, "tenon-reference: cannot write %s: %s\n", path, strerror(errno));
    return out;
}

static bool write_pages(const char *dir)
{
    bool good = true;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s.md", pages[i].name);
        FILE *out = reference_open(dir, name);
        if (!out)
            return false;
        Page p;
        page_begin(&p, out, PAGE_MARKDOWN, pages[i].name, pages[i].title, pages[i].brief);
        pages[i].write(&p);
        page_end(&p);
        good &= fclose(out) == 0;
    }
    return good;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "markdown") == 0)
        return !write_pages(argv[2]);
    if (argc == 3 && strcmp(argv[1], "man") == 0)
        return !reference_manuals(argv[2]) || !reference_program_manual(argv[2]);
    fputs("usage: tenon-reference markdown|man DIR\n", stderr);
    return 1;
}
