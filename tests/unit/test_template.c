/* test_template.c -- templates of scripts: placeholders, alternatives, blocks of lines, parts. */
#include "scripts/template.h"
#include "suite.h"
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static Arena *arena;

static void setup(void)
{
    arena = arena_new();
}

static void teardown(void)
{
    arena_free(arena);
}

static Places two_places(void)
{
    PlaceList *l = arena_alloc(arena, sizeof *l);
    l->arena = arena;
    places_add(l, "yes", "1");
    places_add(l, "no", NULL);
    places_add(l, "lines", "a\nb\n");
    places_int(l, "n2", -7);
    places_flag(l, "flag", true);
    return places_of(l);
}

START_TEST(filled)
{
    static const struct {
        const char *template, *want;
    } t[] = {
        {"@yes, @(yes)st @n2.", "1, 1st -7."},
        {"$@ @120 @\"", "$@ @120 @\""},
        {"@(yes?a@(n2)b)@(no?c)@(no?d|e)", "a-7be"},
        {"@(yes?f(a|b)|c)", "f(a|b)"},
        {"@(no?f(a|b)|@(yes?g(?)|h))", "g(?)"},
        {"@(not no?a)@(no or yes?b)@(yes and no?c)@(no and no or flag?d)@(yes and not no?e)", "abde"},
        {"@if yes\na\n@else\nb\n@end\nc", "a\nc"},
        {"@if no\na\n@elif yes\nb\n@elif flag\nc\n@else\nd\n@end\n", "b\n"},
        {"@if no\n@if yes\na\n@end\n@no.\n@else\n@if yes\nb\n@end\n@end\n", "b\n"},
        {"x\n@lines\n@no\n@flag\n @yes\ny\n", "x\na\nb\n 1\ny\n"},
        {"@yes\nend", "1\nend"},
    };
    const Places p = two_places();
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        Text out = text_new(arena);
        template_fill(t[i].template, &p, &out);
        ck_assert_str_eq(out.s, t[i].want);
    }
}
END_TEST

START_TEST(parts)
{
    const char *template = "@part a\n1\n2\n@part b\n3\n";
    ck_assert_str_eq(template_part(arena, template, "a"), "1\n2\n");
    ck_assert_str_eq(template_part(arena, template, "b"), "3\n");
}
END_TEST

/* A faulty template ends the compiler, also if the placeholder has no value. */
START_TEST(faults)
{
    static const char *const t[] = {"@unknown", "@(unknown?a)", "a @no b", "@if yes\na\n", "a\n@end\n"};
    const Places p = two_places();
    Text out = text_new(arena);
    template_fill(t[_i], &p, &out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("template");
    TCase *c = tcase_create("template");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, filled);
    tcase_add_test(c, parts);
    tcase_add_loop_test_raise_signal(c, faults, SIGABRT, 0, 5);
    suite_add_tcase(s, c);
    return suite_run(s);
}
