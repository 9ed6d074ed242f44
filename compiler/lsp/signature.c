/* signature.c -- signature help: the arguments of the call that is being typed. */
#include "base/text.h"
#include "lsp/context.h"
#include "lsp/server.h"
#include "lsp/words.h"
#include <string.h>

typedef struct Signature {
    Text label;
    const char *about;
    const char **part; /* texts of the parameters */
    const char **name;
    const char **told; /* texts about the parameters, or NULL */
    int n;
} Signature;

static void add_part(Arena *a, Signature *g, const char *name, const char *part, const char *told)
{
    int n = g->n;
    text_printf(&g->label, "%s%s", n ? ", " : "", part);
    ARENA_PUSH(a, g->name, n, name);
    n = g->n;
    ARENA_PUSH(a, g->told, n, told);
    ARENA_PUSH(a, g->part, g->n, part);
}

static bool find_signature(Arena *a, const Document *d, const Context *at, const Frame *f,
                           Signature *g)
{
    Callee c = {0};
    const Frame *body = &at->frame[0];
    const bool train = body->word && strcmp(body->word, "train") == 0;
    const TrainKey *key = train && body->key ? train_key_find(body->key) : NULL;
    const Form *form = key ? form_called(key->forms, f->callee) : NULL;
    if (!form && !document_callee(d, f->callee, &c))
        return false;
    if (!form && !c.decl && !c.op)
        return false;
    g->label = text_new(a);
    text_printf(&g->label, "%s(", f->callee);
    g->about = form ? form->about : c.op ? c.op->brief : words_comment(a, c.decl);
    for (const Field *x = form ? form->field : NULL; x && x < form->field + FORM_FIELDS && x->name;
         x++)
        add_part(a, g, x->name, words_field(a, x), x->about);
    for (const OpArg *x = c.op ? c.op->arg : NULL; x && x < c.op->arg + OP_ARGS && x->name; x++)
        add_part(a, g, x->name, words_argument(a, x), x->about);
    for (int i = 0; c.decl && i < c.decl->params.n; i++)
        add_part(a, g, c.decl->params.v[i].name, words_param(a, &c.decl->params.v[i]), NULL);
    text_add(&g->label, ")");
    return true;
}

/* The index of the parameter at the place: by its name, else by its position. */
static int active(const Signature *g, const Frame *f)
{
    for (int i = 0; f->key && i < g->n; i++)
        if (strcmp(g->name[i], f->key) == 0)
            return i;
    return f->argument + f->piped;
}

static cJSON *signature_json(Arena *a, const Signature *g, const Frame *f)
{
    cJSON *result = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(result, "signatures"),
          *one = cJSON_CreateObject(), *parts;
    cJSON_AddItemToArray(list, one);
    json_add_text(a, one, "label", g->label.s);
    if (g->about && *g->about)
        json_add_text(a, one, "documentation", g->about);
    parts = cJSON_AddArrayToObject(one, "parameters");
    for (int i = 0; i < g->n; i++) {
        cJSON *p = cJSON_CreateObject();
        json_add_text(a, p, "label", g->part[i]);
        if (g->told[i])
            json_add_text(a, p, "documentation", g->told[i]);
        cJSON_AddItemToArray(parts, p);
    }
    cJSON_AddNumberToObject(result, "activeSignature", 0);
    cJSON_AddNumberToObject(result, "activeParameter", active(g, f));
    return result;
}

cJSON *answer_signature(Server *s, const cJSON *params)
{
    Analysis *a;
    int line, col;
    Signature g = {0};
    const Document *d = document_place(s, params, &a, &line, &col);
    if (!d)
        return NULL;
    const Context c = context_at(s->arena, a, line, col);
    const Frame *f = c.comment ? NULL : context_call(&c);
    if (!f || (f == &c.frame[0] && c.decl) || !find_signature(s->arena, d, &c, f, &g))
        return NULL;
    return signature_json(s->arena, &g, f);
}
