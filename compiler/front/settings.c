/* settings.c -- --set key=value: each setting is a small source text, so that a message can
 * underline a mistake in it.
 *
 *     batch=64                  replaces the key
 *     optimizer.lr=0.1          replaces one argument of the key's value
 *     model.classes=100         sets a parameter of the model
 */
#include "front/train.h"
#include <ctype.h>
#include <string.h>

/* Whether the value is a directory without quotes: data=/scratch/mnist. */
static bool is_path(const KeyValue *s)
{
    return strcmp(s->key, "data") == 0 && s->value[0] != '"' && strpbrk(s->value, "/.") &&
           !strchr(s->value, '(');
}

static bool is_plain(const char *key) /* only characters of NAME and NAME.NAME */
{
    for (const char *p = key; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '.')
            return false;
    return *key != 0;
}

static bool read_one(Unit *u, const KeyValue *s, const char *option, int order, Entry *out)
{
    Source *text = arena_alloc(u->arena, sizeof *text);
    text->name = text->path = option;
    text->order = 1000000 + order; /* sorts messages after those of files */
    text->text = arena_printf(u->arena, "%s=%s", s->key, s->value);
    text->len = strlen(text->text);
    const int key = (int)strlen(s->key);
    const Span at = {text, 1, 1, 1, 1 + key};
    if (!is_plain(s->key)) {
        diag_error(u->diag, at, "'%s' is not a key", s->key);
        diag_help(u->diag, "write --set batch=64 or --set optimizer.lr=0.1");
        return false;
    }
    if (!is_path(s))
        return parse_setting(u->arena, u->diag, text, out);
    Expr *path = arena_alloc(u->arena, sizeof *path);
    *path = (Expr){.kind = EX_STRING, .depth = 1, .s = s->value};
    path->span = (Span){text, 1, key + 2, 1, (int)text->len + 1};
    *out = (Entry){.key = s->key, .key_span = at, .value = path, .override = true};
    return true;
}

static void file(Unit *u, Settings *out, Entry e)
{
    if (strcmp(e.key, "model") == 0 && e.sub) {
        const Override o = {e.sub, e.value, e.sub_span, false};
        ARENA_PUSH(u->arena, out->model, out->nmodel, o);
    } else {
        ARENA_PUSH(u->arena, out->train, out->ntrain, e);
    }
}

/* Options such as --batch are settings, too, and replace --set. */
static bool read_options(Unit *u, const FrontOptions *o, Settings *out)
{
    const struct {
        const char *option, *key, *value;
    } own[] = {
        {"--batch", "batch", o->batch ? arena_printf(u->arena, "%lld", (long long)o->batch) : NULL},
        {"--shards", "shards",
         o->shards ? arena_printf(u->arena, "%lld", (long long)o->shards) : NULL},
        {"--dtype", "dtype", o->dtype},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        Entry e;
        const KeyValue s = {own[i].key, own[i].value};
        if (!own[i].value)
            continue;
        if (read_one(u, &s, own[i].option, o->nset + (int)i, &e))
            file(u, out, e);
        else
            ok = false;
    }
    return ok;
}

bool settings_read(Unit *u, const FrontOptions *o, Settings *out)
{
    bool ok = true;
    *out = (Settings){0};
    for (int i = 0; i < o->nset; i++) {
        Entry e;
        if (read_one(u, &o->set[i], "--set", i, &e))
            file(u, out, e);
        else
            ok = false;
    }
    return read_options(u, o, out) && ok;
}

/* Applies key.sub = value: adds an argument to the call of the key.  It replaces an argument of the
 * same name in the file. */
static void set_argument(Unit *u, Entry *old, const Entry *e)
{
    const Arg arg = {e->sub, e->sub_span, e->value, true};
    Expr *call = arena_alloc(u->arena, sizeof *call);
    if (old->value->bad)
        return;
    *call = *old->value;
    if (call->kind != EX_CALL) {
        if (call->kind != EX_NAME && call->kind != EX_STRING) {
            diag_error(u->diag, e->sub_span, "'%s' of the file has no arguments to set", e->key);
            return;
        }
        *call = (Expr){.kind = EX_CALL, .depth = 2, .span = old->value->span, .a = old->value};
    }
    Args args = {0};
    for (int i = 0; i < call->args.n; i++)
        ARENA_PUSH(u->arena, args.v, args.n, call->args.v[i]);
    ARENA_PUSH(u->arena, args.v, args.n, arg);
    call->args = args;
    old->value = call;
}

/* Whether the value of the key is a list of forms. */
static bool is_list(const char *key)
{
    return strcmp(key, "clip") == 0 || strcmp(key, "augment") == 0;
}

/* clip.norm = 1 means norm(1).  It replaces norm in the list of the file; other forms stay. */
static Expr *list_with(Unit *u, Expr *old, const Entry *e)
{
    Expr *name = arena_alloc(u->arena, sizeof *name), *call = arena_alloc(u->arena, sizeof *call);
    Expr *list = arena_alloc(u->arena, sizeof *list);
    Args args = {0};
    ARENA_PUSH(u->arena, args.v, args.n, ((Arg){.value = e->value}));
    *name = (Expr){.kind = EX_NAME, .depth = 1, .span = e->sub_span, .s = e->sub};
    *call = (Expr){.kind = EX_CALL, .depth = 2, .span = e->value->span, .a = name};
    call->args = args;
    *list = (Expr){.kind = EX_LIST, .depth = 3, .span = e->value->span};
    const int n = !old ? 0 : old->kind == EX_LIST ? old->list.n : 1;
    for (int i = 0; i < n; i++) {
        Expr *one = old->kind == EX_LIST ? old->list.v[i] : old;
        Span at;
        const char *word = form_name(one, &at);
        if (!word || strcmp(word, e->sub) != 0)
            ARENA_PUSH(u->arena, list->list.v, list->list.n, one);
    }
    ARENA_PUSH(u->arena, list->list.v, list->list.n, call);
    return list;
}

static void apply_entry(Unit *u, Entries *entries, const Entry *e)
{
    int n, at = 0;
    const char *const *key = train_keys(&n);
    while (at < entries->n && strcmp(entries->v[at].key, e->key) != 0)
        at++;
    const bool found = at < entries->n;
    if (e->sub && is_list(e->key)) {
        Entry made = {.key = e->key, .key_span = e->key_span, .override = true};
        made.value = list_with(u, found ? entries->v[at].value : NULL, e);
        if (found)
            entries->v[at] = made;
        else
            ARENA_PUSH(u->arena, entries->v, entries->n, made);
    } else if (e->sub && found) {
        set_argument(u, &entries->v[at], e);
    } else if (e->sub) {
        diag_error(u->diag, e->key_span, "the train block has no '%s' whose '%s' could be set",
                   e->key, e->sub);
        diag_suggest(u->diag, e->key, key, n);
    } else if (found) {
        entries->v[at] = *e;
    } else {
        ARENA_PUSH(u->arena, entries->v, entries->n, *e);
    }
}

void settings_apply(Unit *u, const Settings *s, Decl *train)
{
    for (int i = 0; i < s->ntrain; i++)
        apply_entry(u, &train->entries, &s->train[i]);
}

void settings_check_model(Unit *u, const Settings *s, const Decl *model)
{
    const char **name = NULL;
    int n = 0;
    for (int i = 0; i < model->params.n; i++)
        if (model->params.v[i].type != TYPE_INPUT)
            ARENA_PUSH(u->arena, name, n, model->params.v[i].name);
    for (int i = 0; i < s->nmodel; i++) {
        if (s->model[i].used)
            continue;
        diag_error(u->diag, s->model[i].span, "model '%s' has no parameter '%s'", model->name,
                   s->model[i].name);
        suggest(u->diag, s->model[i].name, name, n, n == 1 ? "its parameter" : "its parameters");
    }
}
