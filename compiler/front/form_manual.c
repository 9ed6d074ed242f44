/* form_manual.c -- keys of a train block and their forms as text, for manuals and completion. */
#include "base/text.h"
#include "front/train.h"
#include <math.h>
#include <string.h>

const char *form_number_text(Arena *a, double v)
{
    return v == 1.0 / 255 ? "1/255" : arena_printf(a, "%.10g", v);
}

const char *form_words(Arena *a, const char *const *word, const char *mark)
{
    const char *text = "";
    for (int i = 0; word[i]; i++)
        text = arena_printf(a, "%s%s%s%s%s", text,
                            i == 0        ? ""
                            : word[i + 1] ? ", "
                                          : " or ",
                            mark, word[i], mark);
    return text;
}

const char *form_values(Arena *a, const Field *f, const char *mark)
{
    static const char *const name[] = {[WANT_REAL] = "a number",
                                       [WANT_INT] = "a whole number",
                                       [WANT_REALS] = "numbers",
                                       [WANT_RISING] = "rising numbers",
                                       [WANT_BOUNDS] =
                                           "a list of two numbers, the smaller one first",
                                       [WANT_TEXT] = "a string",
                                       [WANT_TEXTS] = "a string, or a list of strings",
                                       [WANT_METRIC] = "an expression"};
    const bool list = f->want == WANT_REALS || f->want == WANT_RISING;
    if (f->want == WANT_WORD || f->want == WANT_RESULT)
        return form_words(a, f->words, mark);
    if (f->want == WANT_FLAG)
        return arena_printf(a, "%strue%s or %sfalse%s", mark, mark, mark, mark);
    const bool text = f->want == WANT_TEXT || f->want == WANT_TEXTS || f->want == WANT_METRIC;
    const char *range = text ? NULL : form_range(a, f);
    const char *what =
        list ? arena_printf(a, "a list of 1 to %d %s", REALS_MAX, name[f->want]) : name[f->want];
    return range ? arena_printf(a, "%s, %s%s", what, list || f->want == WANT_BOUNDS ? "each " : "",
                                range)
                 : what;
}

const char *form_fallback(Arena *a, const Field *f)
{
    if (isnan(f->fallback) || f->want == WANT_TEXT || f->want == WANT_TEXTS ||
        f->want == WANT_RESULT || f->want == WANT_BOUNDS ||
        ((f->want == WANT_INT || f->want == WANT_REAL) && f->fallback < f->low))
        return NULL;
    return f->want == WANT_WORD   ? arena_printf(a, "\"%s\"", f->words[(int)f->fallback])
           : f->want == WANT_FLAG ? (f->fallback != 0 ? "true" : "false")
                                  : form_number_text(a, f->fallback);
}

bool form_required(const Field *f)
{
    return isnan(f->fallback);
}

const char *form_signature(Arena *a, const Form *form, int width)
{
    Text t = text_new(a);
    text_printf(&t, "%s(", form->name);
    const size_t open = t.len;
    size_t line = 0;
    for (const Field *f = form->field; f < form->field + FORM_FIELDS && f->name; f++) {
        const char *v = form_fallback(a, f);
        const char *word = v                  ? arena_printf(a, "%s = %s", f->name, v)
                           : form_required(f) ? f->name
                                              : arena_printf(a, "[%s]", f->name);
        text_add_argument(&t, open, &line, word, width);
    }
    text_add(&t, ")");
    return form->field[0].name ? t.s : form->name;
}
