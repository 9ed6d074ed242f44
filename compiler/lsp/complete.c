/* complete.c -- completion. */
#include "base/text.h"
#include "front/lower.h"
#include "lsp/context.h"
#include "lsp/server.h"
#include "lsp/words.h"
#include "tool/manual.h"
#include <dirent.h>
#include <string.h>

/* The numbers of the protocol for kinds of completions. */
enum {
    ITEM_FUNCTION = 3,
    ITEM_FIELD = 5,
    ITEM_VARIABLE = 6,
    ITEM_CLASS = 7,
    ITEM_PROPERTY = 10,
    ITEM_VALUE = 12,
    ITEM_KEYWORD = 14,
    ITEM_FILE = 17
};

typedef struct Choices {
    Server *s;
    const Analysis *a;
    const Context *c;
    const Document *d;
    cJSON *list;
    const cJSON *range; /* of the word that a completion replaces */
} Choices;

/* Adds a completion. insert: the inserted text; NULL: the label. */
static void add_item(Choices *m, const char *label, int kind, const char *detail, const char *about,
                     const char *insert)
{
    cJSON *o = cJSON_CreateObject(), *edit = cJSON_CreateObject();
    json_add_text(m->s->arena, o, "label", label);
    cJSON_AddNumberToObject(o, "kind", kind);
    if (detail)
        json_add_text(m->s->arena, o, "detail", detail);
    if (about)
        json_add_text(m->s->arena, o, "documentation", about);
    cJSON_AddItemToObject(edit, "range", cJSON_Duplicate(m->range, true));
    json_add_text(m->s->arena, edit, "newText", insert ? insert : label);
    cJSON_AddItemToObject(o, "textEdit", edit);
    cJSON_AddItemToArray(m->list, o);
}

static void add_words(Choices *m, const char *const *word, int kind)
{
    for (; *word; word++)
        add_item(m, *word, kind, NULL, NULL, NULL);
}

/* ---- values of the language */

static void add_ops(Choices *m)
{
    for (int i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (!(op->flags & OP_HIDDEN))
            add_item(m, op->name, ITEM_FUNCTION, manual_signature(m->s->arena, op, 1000), op->brief,
                     NULL);
    }
}

static void add_declared(Choices *m, bool models)
{
    Map seen = map_new(m->s->arena);
    for (int k = 0; k < 2; k++) {
        int n = 0;
        const Unit *u = k == 0 ? m->d->now->unit : m->d->good ? m->d->good->unit : NULL;
        const char **name = u ? map_keys(&u->functions, &n) : NULL;
        for (int i = 0; i < n; i++) {
            const Decl *d = map_get(&u->functions, name[i]);
            if ((d->kind == DECL_MODEL) != models || map_get(&seen, d->name))
                continue;
            map_set(&seen, d->name, (void *)d);
            add_item(m, d->name, models ? ITEM_CLASS : ITEM_FUNCTION,
                     words_declaration(m->s->arena, d), words_comment(m->s->arena, d), NULL);
        }
    }
}

static void add_names(Choices *m)
{
    int n;
    const char **name = map_keys(&m->c->names, &n);
    for (int i = 0; i < n; i++)
        add_item(m, name[i], ITEM_VARIABLE, NULL, NULL, NULL);
}

static void add_value(Choices *m)
{
    static const char *const words[] = {"if", "not", "true", "false", NULL};
    const char *const *number = function_names();
    add_names(m);
    add_declared(m, false);
    add_ops(m);
    for (; *number; number++)
        if (!op_find(*number))
            add_item(m, *number, ITEM_FUNCTION, "a function of numbers", NULL, NULL);
    add_words(m, words, ITEM_KEYWORD);
}

static void add_query(Choices *m)
{
    int n;
    const char *const *word = lower_queries(&n);
    for (int i = 0; i < n; i++)
        add_item(m, word[i], ITEM_FIELD, NULL, NULL, NULL);
}

/* ---- arguments */

static bool given(const Frame *f, const char *name)
{
    for (int i = 0; i < f->ngiven; i++)
        if (strcmp(f->given[i], name) == 0)
            return true;
    return false;
}

static void add_argument(Choices *m, const Frame *f, const char *name, const char *detail,
                         const char *about)
{
    if (!given(f, name))
        add_item(m, name, ITEM_PROPERTY, detail, about, arena_printf(m->s->arena, "%s = ", name));
}

/* Adds the strings that an argument can have, such as "same". */
static void add_strings(Choices *m, const OpArg *g)
{
    static const char *const pads[] = {"\"same\"", "\"valid\"", NULL};
    if (g->type == ARG_PAD || g->type == ARG_PAD_STEPS)
        add_words(m, pads, ITEM_VALUE);
    else if (g->type == ARG_STRING && g->fallback && strcmp(g->fallback, "none") != 0)
        add_item(m, arena_printf(m->s->arena, "\"%s\"", g->fallback), ITEM_VALUE, NULL, g->about,
                 NULL);
}

static const OpArg *find_argument(const Op *op, const char *name)
{
    for (const OpArg *g = op->arg; g < op->arg + OP_ARGS && g->name; g++)
        if (strcmp(g->name, name) == 0)
            return g;
    return NULL;
}

/* Adds the arguments that are not given yet. Tensors are given by position. */
static void add_arguments(Choices *m, const Frame *f, const Callee *c)
{
    for (const OpArg *g = c->op ? c->op->arg : NULL; g && g < c->op->arg + OP_ARGS && g->name; g++)
        if (g->type != ARG_TENSOR && g->type != ARG_TENSORS)
            add_argument(m, f, g->name, words_argument(m->s->arena, g), g->about);
    for (int i = 0; c->decl && i < c->decl->params.n; i++) {
        const ParamDecl *p = &c->decl->params.v[i];
        if (p->type != TYPE_TENSOR)
            add_argument(m, f, p->name, words_param(m->s->arena, p), NULL);
    }
}

static void add_call(Choices *m, const Frame *f)
{
    static const char *const flags[] = {"true", "false", NULL};
    Callee c;
    const bool known = document_callee(m->d, f->callee, &c);
    const OpArg *g = known && c.op && f->key ? find_argument(c.op, f->key) : NULL;
    if (known && !f->key)
        add_arguments(m, f, &c);
    if (g && g->type == ARG_BOOL)
        add_words(m, flags, ITEM_VALUE);
    if (g)
        add_strings(m, g);
    if (!m->c->string)
        add_value(m);
}

/* ---- train blocks */

static void add_keys(Choices *m)
{
    int width = 0;
    for (const TrainKey *k = train_key_table; k->name; k++)
        width = (int)strlen(k->name) > width ? (int)strlen(k->name) : width;
    for (const TrainKey *k = train_key_table; k->name; k++)
        add_item(m, k->name, ITEM_PROPERTY, k->example ? "required" : k->fallback,
                 words_plain(m->s->arena, k->about),
                 arena_printf(m->s->arena, "%-*s = ", width, k->name));
}

/* Adds the inputs of the models of a unit, each name once. */
static void add_inputs(Choices *m, const Unit *u, Map *seen)
{
    for (int i = 0; i < u->decls.n; i++) {
        const ParamDecls *p = &u->decls.v[i]->params;
        for (int k = 0; k < p->n; k++)
            if (p->v[k].type == TYPE_INPUT && !map_get(seen, p->v[k].name)) {
                map_set(seen, p->v[k].name, m);
                add_item(m, p->v[k].name, ITEM_VALUE, "the input itself", NULL, NULL);
            }
    }
}

/* Adds the values of the key target: NAME: f32[1], or the input of a model. */
static void add_targets(Choices *m)
{
    static const char *const types[] = {"f32", "class", NULL};
    Map seen = map_new(m->s->arena);
    if (token_is(m->c->before, ':')) {
        add_words(m, types, ITEM_KEYWORD);
        return;
    }
    add_inputs(m, m->d->now->unit, &seen);
    if (m->d->good)
        add_inputs(m, m->d->good->unit, &seen);
    add_item(m, "number: f32[1]", ITEM_VALUE, "a number for each sample, with its name", NULL,
             NULL);
    add_item(m, "(kind: class, number: f32[1])", ITEM_VALUE, "several targets", NULL, NULL);
}

static void add_key_values(Choices *m, const TrainKey *k)
{
    if (strcmp(k->name, "target") == 0)
        add_targets(m);
    for (const Form *f = k->forms; f && f->name; f++)
        if (strcmp(f->name, "NAME") != 0)
            add_item(m, f->name, ITEM_VALUE, form_signature(m->s->arena, f, 1000), f->about, NULL);
    for (int i = 0; k->field.words && k->field.words[i]; i++)
        add_item(m, k->field.words[i], ITEM_VALUE, NULL, NULL, NULL);
    for (int i = 0; k->losses && k->losses[i]; i++)
        add_item(m, k->losses[i], ITEM_VALUE, "loss", op_find(k->losses[i])->brief, NULL);
    if (k->losses) {
        add_item(m, "terms", ITEM_VALUE, "loss", "the sum of named losses, each reported", NULL);
        add_declared(m, false);
    }
    if (strcmp(k->name, "data") == 0)
        add_item(m, "mnist", ITEM_VALUE, "a data set", NULL, NULL);
}

static void add_form_call(Choices *m, const TrainKey *k, const Frame *f)
{
    static const char *const flags[] = {"true", "false", NULL};
    const Form *form = form_called(k->forms, f->callee);
    Callee c;
    if (!form && k->losses && !f->key && f->callee && document_callee(m->d, f->callee, &c))
        add_arguments(m, f, &c);
    for (const Field *x = form ? form->field : NULL; x && x < form->field + FORM_FIELDS && x->name;
         x++) {
        if (!f->key && x->want != WANT_METRIC)
            add_argument(m, f, x->name, words_field(m->s->arena, x), x->about);
        if (!f->key || strcmp(f->key, x->name) != 0)
            continue;
        for (int i = 0; x->words && x->words[i]; i++)
            add_item(m, arena_printf(m->s->arena, "\"%s\"", x->words[i]), ITEM_VALUE, NULL, NULL,
                     NULL);
        if (x->want == WANT_FLAG)
            add_words(m, flags, ITEM_VALUE);
    }
}

static void add_train(Choices *m)
{
    const Frame *body = &m->c->frame[0], *inner = &m->c->frame[m->c->depth - 1];
    const TrainKey *k = body->key ? train_key_find(body->key) : NULL;
    if (!body->key && !m->c->string)
        add_keys(m);
    else if (k && inner->mark == '(')
        add_form_call(m, k, inner);
    else if (k && !m->c->string &&
             !context_call(m->c)) /* a call within the value has no such words */
        add_key_values(m, k);
}

/* ---- files */

/* Model files beside the document. */
static void add_files(Choices *m)
{
    const char *slash = strrchr(m->a->source->path, '/');
    DIR *dir = slash ? opendir(arena_strndup(m->s->arena, m->a->source->path,
                                             (size_t)(slash + 1 - m->a->source->path)))
                     : NULL;
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (text_glob("*.tn", e->d_name) && strcmp(e->d_name, slash + 1) != 0)
            add_item(m, arena_printf(m->s->arena, "\"%s\"", e->d_name), ITEM_FILE, NULL, NULL,
                     NULL);
    if (dir)
        closedir(dir);
}

/* ---- the request */

static bool begins_statement(const Context *c)
{
    return !c->before || c->before->kind == TOKEN_NEWLINE || token_is(c->before, '{') ||
           token_is(c->before, ';') || token_is(c->before, '}');
}

static void add_all(Choices *m)
{
    static const char *const tops[] = {"model", "block", "op", "train", "import", NULL};
    static const char *const statements[] = {"return", "for", "scan", "yield", "if", "else", NULL};
    static const char *const types[] = {"int",  "float", "bool", "string",
                                        "list", "f32",   "i32",  NULL};
    const Context *c = m->c;
    const Frame *f = c->depth ? &c->frame[c->depth - 1] : NULL;
    const bool after = c->before && c->before->kind == TOKEN_RESERVED;
    if (c->comment)
        return;
    if (c->string && token_reserved(c->before, "import")) {
        add_files(m);
    } else if (c->string && !(f && f->mark == '(' && f->key)) {
        return;
    } else if (after && strcmp(c->before->text, "train") == 0) {
        add_declared(m, true);
    } else if (after && c->depth == 0 && c->decl) {
        return; /* the name of a new declaration */
    } else if (!f) {
        if (begins_statement(c) || !c->decl)
            add_words(m, tops, ITEM_KEYWORD);
        else
            add_value(m); /* the formula of an op */
    } else if (c->frame[0].mark == '{' && c->frame[0].word &&
               strcmp(c->frame[0].word, "train") == 0) {
        add_train(m);
    } else if (c->depth == 1 && f->mark == '(') { /* the head of a declaration */
        if (token_is(c->before, ':'))
            add_words(m, types, ITEM_KEYWORD);
    } else if (token_is(c->before, '.')) {
        add_query(m);
    } else if (f->mark == '{') {
        if (begins_statement(c))
            add_words(m, statements, ITEM_KEYWORD);
        add_value(m);
    } else if (f->mark == '(' && f->callee) {
        add_call(m, f);
    } else {
        add_value(m);
    }
}

static bool closed(const Analysis *a, const Token *string)
{
    const size_t end = lines_at(&a->lines, string->at.end_line, string->at.end_col);
    return string->at.end_col - string->at.col > 1 && a->lines.text[end - 1] == '"';
}

cJSON *answer_completion(Server *s, const cJSON *params)
{
    Analysis *a;
    int line, col;
    const Document *d = document_place(s, params, &a, &line, &col);
    if (!d)
        return NULL;
    const Context c = context_at(s->arena, a, line, col);
    Span at = c.word ? c.word->at : (Span){a->source, line, col, line, col};
    if (c.string)
        at.col = c.string->at.col;
    if (c.string && closed(a, c.string))
        at.end_col = c.string->at.end_col;
    Choices m = {s, a, &c, d, cJSON_CreateArray(), range_json(&a->lines, at)};
    add_all(&m);
    cJSON *result = cJSON_CreateObject();
    cJSON_AddFalseToObject(result, "isIncomplete");
    cJSON_AddItemToObject(result, "items", m.list);
    return result;
}
