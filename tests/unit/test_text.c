/* test_text.c -- patterns of names; user text inside generated text; messages. */
#include "base/diag.h"
#include "base/quote.h"
#include "suite.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(patterns)
{
    static const struct {
        const char *pattern, *word;
        bool fits;
    } t[] = {{"a.b", "a.b", true},
             {"a.b", "a.bc", false},
             {"", "", true},
             {"*", "", true},
             {"*", "a.b", true},
             {"*.bias", "conv1.bias", true},
             {"*.bias", "a.b.bias", true},
             {"*.bias", "bias", false},
             {"stem.*", "stem.", true},
             {"stem.*", "stems.w", false},
             {"a*b*c", "aXbYbZc", true},
             {"a*b*c", "aXbYbZ", false},
             {"conv?.w", "conv1.w", true},
             {"conv?.w", "conv10.w", false},
             {"?", "", false},
             {"**a**", "bab", true}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        ck_assert_msg(text_glob(t[i].pattern, t[i].word) == t[i].fits, "%s, %s", t[i].pattern,
                      t[i].word);
}
END_TEST

START_TEST(shifted)
{
    static const struct {
        const char *lines, *want;
        int columns;
    } t[] = {{"a\n  b\n", "    a\n      b\n", 4},
             {"    a\n      b\n", "a\n  b\n", -4},
             {"  a\n\n", "\n\n", -4}, /* a line has fewer columns */
             {"", "", 4}};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        Text text = text_new(a);
        text_shifted(&text, t[i].lines, t[i].columns);
        ck_assert_str_eq(text.s, t[i].want);
    }
    arena_free(a);
}
END_TEST

START_TEST(quoted)
{
    static const struct {
        const char *(*quote)(Arena *a, const char *s);
        const char *s, *want;
    } t[] = {
        {quote_model, "a\"b\\c \xc3\xa9", "\"a\\\"b\\\\c \xc3\xa9\""},
        {quote_c, "a\"b\\c\n\x7f", "\"a\\\"b\\\\c\\012\\177\""},
        {quote_c,
         "?\?/\xc3\xa9\xff"
         "1",
         "\"?\\?/\xc3\xa9\\3771\""},
        {quote_c, NULL, "\"\""},
        {quote_c_comment, "*/ /*/ **//", "* / / * / ** //"},
        {quote_c_comment, "a\nb\t\xc3\xa9\xff\xc3", "a?b\t\xc3\xa9??"},
        {quote_python, "\"\"\"\\\n\r\xff\xc3\xa9", "\"\\\"\\\"\\\"\\\\\\n\\x0d\\udcff\xc3\xa9\""},
        {quote_python_doc, "\"\"\"\\x\n", "\\\"\\\"\\\"\\\\x?"},
        {quote_shell, "models/a-b.tn", "models/a-b.tn"},
        {quote_shell, "", "''"},
        {quote_shell, "$(x) it's", "'$(x) it'\\''s'"},
        {quote_shell, "a\n'\\b", "$'a\\012\\'\\\\b'"},
        {quote_line, "a\nb\x1b[2J", "a?b?[2J"},
        {quote_dot, "a\"\\N\n", "a\\\"\\\\N?"},
        {quote_xml, "<a b='\"'>&\x01", "&lt;a b=&#39;&quot;&#39;&gt;&amp;?"},
    };
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        ck_assert_msg(strcmp(t[i].quote(a, t[i].s), t[i].want) == 0, "%s, not %s",
                      t[i].quote(a, t[i].s), t[i].want);
    arena_free(a);
}
END_TEST

/* A message that is not stored takes its notes with it, also a warning. */
START_TEST(too_many_messages)
{
    Arena *a = arena_new();
    Diag *d = diag_new(a, DIAG_NEVER);
    char *text;
    size_t length;
    diag_error(d, (Span){0}, "the first");
    for (int i = 2; i < 20000; i++)
        diag_warn(d, (Span){0}, "the same");
    diag_warn(d, (Span){0}, "the last that is stored");
    diag_warn(d, (Span){0}, "a lost warning");
    diag_note(d, "of a lost warning");
    diag_error(d, (Span){0}, "a lost error");
    diag_note(d, "of a lost error");
    FILE *f = open_memstream(&text, &length);
    diag_print(d, f);
    fclose(f);
    ck_assert_str_eq(text, "tenon: error: the first\n"
                           "tenon: warning: the same\n"
                           "tenon: warning: the last that is stored\n"
                           "... and 1 more error\n");
    free(text);
    arena_free(a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("text");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, patterns);
    tcase_add_test(tests, shifted);
    tcase_add_test(tests, quoted);
    tcase_add_test(tests, too_many_messages);
    suite_add_tcase(s, tests);
    return suite_run(s);
}
