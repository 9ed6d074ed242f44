/* reply.c -- messages to the client: answers, errors, notifications. */
#include "lsp/server.h"
#include <stdarg.h>

static void send(Server *s, cJSON *message)
{
    cJSON_AddStringToObject(message, "jsonrpc", "2.0");
    const char *text = cJSON_PrintUnformatted(message);
    if (!s->lost && !wire_write(s->wire, text))
        s->lost = s->done = true;
}

void server_notify(Server *s, const char *method, cJSON *params)
{
    cJSON *m = cJSON_CreateObject();
    cJSON_AddStringToObject(m, "method", method);
    cJSON_AddItemToObject(m, "params", params);
    send(s, m);
}

cJSON *server_reject(Server *s, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    s->why = arena_vprintf(s->arena, fmt, ap);
    s->rejected = code;
    va_end(ap);
    return NULL;
}

void server_reply(Server *s, const cJSON *id, cJSON *result)
{
    cJSON *m = cJSON_CreateObject();
    cJSON_AddItemToObject(m, "id", id ? cJSON_Duplicate(id, true) : cJSON_CreateNull());
    if (s->rejected) {
        cJSON *e = cJSON_CreateObject();
        cJSON_AddNumberToObject(e, "code", s->rejected);
        json_add_text(s->arena, e, "message", s->why);
        cJSON_AddItemToObject(m, "error", e);
    } else {
        cJSON_AddItemToObject(m, "result", result ? result : cJSON_CreateNull());
    }
    send(s, m);
}
