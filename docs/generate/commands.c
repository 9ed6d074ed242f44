/* commands.c -- commands.md and the manual pages, from command_table and option_table. */
#include "reference.h"
#include "tool/option.h"
#include <string.h>

static void define_options(Page *p, CommandKind command)
{
    for (const OptionRow *o = option_table; o->name; o++)
        if (o->commands & 1u << command)
            page_define(p, o->name, o->value, o->help);
}

void reference_commands(Page *p)
{
    for (const CommandRow *c = command_table; c->name; c++) {
        page_section(p, c->name);
        page_code(p, "sh", c->usage);
        page_paragraph(p, "%s", c->brief);
        define_options(p, c->kind);
    }
}

bool reference_manuals(const char *dir)
{
    bool good = true;
    for (const CommandRow *c = command_table; c->name; c++) {
        char name[64], title[64];
        snprintf(name, sizeof name, "tenon-%s", c->name);
        snprintf(title, sizeof title, "%s.1", name);
        FILE *out = reference_open(dir, title);
        if (!out)
            return false;
        Page p;
        page_begin(&p, out, PAGE_MAN, name, name, c->brief);
        page_section(&p, "Synopsis");
        page_code(&p, "sh", c->usage);
        page_section(&p, "Options");
        define_options(&p, c->kind);
        page_end(&p);
        good &= fclose(out) == 0;
    }
    return good;
}
