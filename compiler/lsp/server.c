/* server.c -- reads messages, and calls the function of each method.
 *
 * Notifications change the documents at once.  Messages of the compiler are computed when no
 * message of the client waits, so that fast typing causes one analysis and not one for each key.
 */
#include "lsp/server.h"
#include "tool/command.h"
#include <errno.h>
#include <signal.h>
#include <string.h>

enum {
    ERROR_PARSE = -32700,
    ERROR_REQUEST = -32600,
    ERROR_METHOD = -32601,
    ERROR_UNINITIALIZED = -32002
};
enum {
    PAUSE = 250,     /* milliseconds without a message before prices are computed */
    LOOK = 10 * 1000 /* milliseconds between two looks at the client's process */
};

/* ---- beginning and end */

static bool lists(const cJSON *array, const char *word)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, array) if (cJSON_IsString(one) &&
                                       strcmp(one->valuestring, word) == 0) return true;
    return false;
}

/* The methods' names in the answer to initialize; each is true, or an object. */
static cJSON *capabilities(const Server *s)
{
    static const char *const plain[] = {"hoverProvider",
                                        "inlayHintProvider",
                                        "definitionProvider",
                                        "referencesProvider",
                                        "documentHighlightProvider",
                                        "documentSymbolProvider",
                                        "documentFormattingProvider"};
    static const struct {
        const char *provider, *value;
    } object[] = {{"textDocumentSync", "{\"openClose\":true,\"change\":2,\"save\":true}"},
                  {"completionProvider", "{\"triggerCharacters\":[\".\",\"(\",\"=\",\"\\\"\"]}"},
                  {"signatureHelpProvider", "{\"triggerCharacters\":[\"(\",\",\"]}"},
                  {"renameProvider", "{\"prepareProvider\":true}"},
                  {"codeActionProvider", "{\"codeActionKinds\":[\"quickfix\"]}"}};
    cJSON *c = cJSON_CreateObject();
    cJSON_AddStringToObject(c, "positionEncoding", s->bytes ? "utf-8" : "utf-16");
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        cJSON_AddTrueToObject(c, plain[i]);
    for (size_t i = 0; i < sizeof object / sizeof *object; i++)
        cJSON_AddItemToObject(c, object[i].provider, cJSON_Parse(object[i].value));
    return c;
}

static cJSON *initialize(Server *s, const cJSON *params)
{
    const cJSON *can = json_at(params, "capabilities"), *text = json_at(can, "textDocument");
    const cJSON *formats = json_at(json_at(text, "hover"), "contentFormat");
    int client = 0;
    if (s->initialized)
        return server_reject(s, ERROR_REQUEST, "the server is initialized already");
    s->initialized = true;
    s->bytes = lists(json_at(json_at(can, "general"), "positionEncodings"), "utf-8");
    s->plain = formats && !lists(formats, "markdown");
    if (json_int_at(params, "processId", &client))
        s->client = client;
    cJSON *result = cJSON_CreateObject(), *info = cJSON_CreateObject();
    cJSON_AddItemToObject(result, "capabilities", capabilities(s));
    cJSON_AddStringToObject(info, "name", "tenon");
    cJSON_AddStringToObject(info, "version", TENON_VERSION);
    cJSON_AddItemToObject(result, "serverInfo", info);
    return result;
}

static cJSON *stop(Server *s, const cJSON *params)
{
    (void)params;
    s->shut = true;
    prices_stop(s, NULL);
    return NULL;
}

static void leave(Server *s, const cJSON *params)
{
    (void)params;
    s->done = true;
    s->code = s->shut ? 0 : 1;
}

static void nothing(Server *s, const cJSON *params)
{
    (void)s;
    (void)params;
}

/* ---- messages */

typedef struct Request {
    const char *method;
    cJSON *(*answer)(Server *s, const cJSON *params);
} Request;
static const Request request_table[] = {{"initialize", initialize},
                                        {"shutdown", stop},
                                        {"textDocument/hover", answer_hover},
                                        {"textDocument/inlayHint", answer_hints},
                                        {"textDocument/completion", answer_completion},
                                        {"textDocument/signatureHelp", answer_signature},
                                        {"textDocument/definition", answer_definition},
                                        {"textDocument/references", answer_references},
                                        {"textDocument/documentHighlight", answer_highlight},
                                        {"textDocument/documentSymbol", answer_symbols},
                                        {"textDocument/prepareRename", answer_prepare},
                                        {"textDocument/rename", answer_rename},
                                        {"textDocument/codeAction", answer_actions},
                                        {"textDocument/formatting", answer_formatting},
                                        {0}};

typedef struct Notice {
    const char *method;
    void (*take)(Server *s, const cJSON *params);
} Notice;
static const Notice notice_table[] = {{"initialized", nothing},
                                      {"exit", leave},
                                      {"textDocument/didOpen", document_open},
                                      {"textDocument/didChange", document_change},
                                      {"textDocument/didSave", document_save},
                                      {"textDocument/didClose", document_close},
                                      {"workspace/didChangeWatchedFiles", files_change},
                                      {0}};

static cJSON *answer(Server *s, const char *method, const cJSON *params)
{
    const Request *r = request_table;
    while (r->method && strcmp(r->method, method) != 0)
        r++;
    if (s->shut)
        return server_reject(s, ERROR_REQUEST, "the server is shut down");
    if (!s->initialized && r->answer != initialize)
        return server_reject(s, ERROR_UNINITIALIZED, "the first request is initialize, not '%s'",
                             method);
    if (!r->method)
        return server_reject(s, ERROR_METHOD, "there is no method '%s'", method);
    return r->answer(s, params);
}

static void take_notice(Server *s, const char *method, const cJSON *params)
{
    const Notice *n = notice_table;
    while (n->method && strcmp(n->method, method) != 0)
        n++;
    if (n->method && (n->take == leave || (s->initialized && !s->shut)))
        n->take(s, params);
}

static void reject_message(Server *s, const cJSON *id, int code, const char *why)
{
    server_reject(s, code, "%s", why);
    server_reply(s, id, NULL);
}

static void handle(Server *s, char *text, size_t len)
{
    const cJSON *m = json_parse(s->arena, text, len);
    const cJSON *id = json_at(m, "id"), *params = json_at(m, "params");
    const char *method = json_text_at(m, "method");
    s->rejected = 0;
    if (!m) {
        reject_message(s, NULL, ERROR_PARSE, "the message is not JSON");
    } else if (!cJSON_IsObject(m) || (id && !cJSON_IsNumber(id) && !cJSON_IsString(id))) {
        reject_message(s, NULL, ERROR_REQUEST, "the message is not a request of JSON-RPC");
    } else if (!method) {
        if (!id || (!json_at(m, "result") && !json_at(m, "error"))) /* else: an answer to us */
            reject_message(s, id, ERROR_REQUEST, "the message has no method");
    } else if (id) {
        cJSON *result = answer(s, method, params);
        server_reply(s, id, result);
    } else {
        take_notice(s, method, params);
    }
}

static void read_message(Server *s)
{
    char *text;
    size_t len;
    switch (wire_read(s->wire, s->arena, &text, &len)) {
    case WIRE_MESSAGE:
        handle(s, text, len);
        break;
    case WIRE_HUGE:
        reject_message(s, NULL, ERROR_REQUEST, "the message is larger than 64 MB");
        break;
    case WIRE_BAD:
        reject_message(s, NULL, ERROR_PARSE, "the header has no Content-Length");
        s->done = true;
        s->code = 1;
        break;
    case WIRE_END:
        s->done = true;
        s->code = 1;
        break;
    }
}

/* ---- the loop */

static bool client_is_gone(const Server *s)
{
    return s->client && kill(s->client, 0) != 0 && errno == ESRCH;
}

/* Milliseconds until something is to be done without a message. */
static int pause_of(const Server *s)
{
    const int64_t left = s->changed + PAUSE - wire_clock();
    return !prices_wanted(s) ? LOOK : left > 0 ? (int)left : 0;
}

/* Works while no message waits.  Returns when a message waits, or the client has gone. */
static void work(Server *s)
{
    while (!s->done && !wire_wait(s->wire, -1, 0)) {
        json_use(s->arena);
        if (document_refresh(s))
            continue;
        if (wire_wait(s->wire, s->pricing ? s->pricing_fd : -1, pause_of(s)))
            return;
        if (s->pricing && wire_ready(s->pricing_fd))
            prices_read(s);
        else if (prices_wanted(s) && !pause_of(s))
            prices_start(s);
        else if (client_is_gone(s))
            s->done = true, s->code = 1;
    }
}

int server_run(int in, int out)
{
    Arena *life = arena_new();
    Wire *wire = arena_alloc(life, sizeof *wire);
    Server s = {.wire = wire, .life = life};
    wire->in = in, wire->out = out;
    signal(SIGPIPE, SIG_IGN);
    while (!s.done) {
        s.arena = arena_new();
        s.other = NULL;
        json_use(s.arena);
        work(&s);
        if (!s.done)
            read_message(&s);
        arena_free(s.arena);
    }
    prices_stop(&s, NULL);
    arena_free(life); /* the analyses end with the process */
    return s.lost ? 1 : s.code;
}
