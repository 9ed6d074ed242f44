/* server.h -- the state of the language server, and the functions that answer requests.
 *
 * A request that concerns a text is answered from the analysis of the text as it is now.  If a part
 * of the text has an error, values that are missing come from the last analysis without errors, in
 * the lines that are the same (document_good_line).
 */
#ifndef LSP_SERVER_H
#define LSP_SERVER_H
#include "lsp/analysis.h"
#include "lsp/wire.h"
#include <sys/types.h>

typedef struct Prices Prices; /* prices.h */

typedef struct Document {
    Arena *arena; /* of the address */
    const char *uri;
    const char *path; /* canonical */
    bool open;
    int version;
    Arena *text_arena;
    const char *text;
    size_t len;
    Analysis *now;            /* of this text; NULL: not made yet */
    Analysis *good;           /* the last one without errors; may be `now`, or NULL */
    int same_head, same_tail; /* lines at the beginning and the end of the text that are equal in
                               * `good` */
    bool unpublished;
    Prices *prices; /* of `good`; NULL: not known */
    bool priced;    /* the prices of `good` were asked for */
} Document;

typedef struct Server {
    Wire *wire;
    Arena *arena; /* of the message that is handled */
    Arena *life;  /* of the server */
    bool initialized, shut, done, lost;
    int code;          /* of the process */
    bool bytes, plain; /* the client counts bytes; it shows no Markdown */
    pid_t client;      /* 0: unknown */
    Document **document;
    int ndocument;
    /* the process that computes prices: its document and output; pid 0: none */
    pid_t pricing;
    int pricing_fd;
    Document *pricing_for;
    Arena *pricing_arena;
    char *priced;
    size_t npriced, room;
    const Source *other; /* a file whose lines are known while a message is handled, or NULL */
    Lines other_lines;
    int64_t changed; /* the time of the last change, in milliseconds */
    int rejected;    /* code of an error that the handler found; 0: none */
    const char *why;
} Server;

/* ---- server.c */

int server_run(int in, int out);

/* ---- reply.c */

/* Sends the result of a request, or the error of server_reject.  id NULL: the request's id is not
 * known. */
void server_reply(Server *s, const cJSON *id, cJSON *result);
/* Rejects the current request, with an error code of the protocol.  Returns NULL. */
cJSON *server_reject(Server *s, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void server_notify(Server *s, const char *method, cJSON *params);
enum { REJECT_PARAMS = -32602, REJECT_FAILED = -32803 };

/* ---- document.c */

/* The document of the request's parameter textDocument; rejects the request if there is none. */
Document *document_of(Server *s, const cJSON *params);
/* The analysis of the text; made now if necessary. */
Analysis *document_analysis(Server *s, Document *d);
/* The document and the place of a request; rejects the request if there is none. */
Document *document_place(Server *s, const cJSON *params, Analysis **a, int *line, int *col);
/* Finds the offsets of the range of a request; rejects the request if there is none. */
bool document_range(Server *s, const Analysis *a, const cJSON *params, size_t *from, size_t *to);
/* The line of the last good analysis that is the same as this line; 0: none. */
int document_good_line(const Document *d, int line);
/* Finds what a name calls, in the text or in the last good one. */
bool document_callee(const Document *d, const char *name, Callee *c);
void document_open(Server *s, const cJSON *params);
void document_change(Server *s, const cJSON *params);
void document_close(Server *s, const cJSON *params);
void document_save(Server *s, const cJSON *params);
void files_change(Server *s, const cJSON *params);
/* Analyses one document that needs it, and publishes its messages.  false: there is none. */
bool document_refresh(Server *s);

/* ---- prices.c */

bool prices_wanted(const Server *s); /* a document has no prices, and nothing computes them */
void prices_start(Server *s);        /* starts a process for one document */
void prices_read(Server *s);         /* reads its output */
void prices_stop(Server *s, const Document *d); /* d NULL: of any document */

/* ---- answers: a result, or NULL after server_reject; cJSON null for no result */

void publish(Server *s, Document *d); /* diagnose.c */
cJSON *answer_actions(Server *s, const cJSON *params);
cJSON *answer_hover(Server *s, const cJSON *params);      /* hover.c */
cJSON *answer_hints(Server *s, const cJSON *params);      /* hints.c */
cJSON *answer_completion(Server *s, const cJSON *params); /* complete.c */
cJSON *answer_signature(Server *s, const cJSON *params);  /* signature.c */
cJSON *answer_definition(Server *s, const cJSON *params); /* navigate.c */
cJSON *answer_references(Server *s, const cJSON *params);
cJSON *answer_highlight(Server *s, const cJSON *params);
cJSON *answer_prepare(Server *s, const cJSON *params);
cJSON *answer_rename(Server *s, const cJSON *params);
cJSON *answer_symbols(Server *s, const cJSON *params);
cJSON *answer_formatting(Server *s, const cJSON *params); /* format.c */

#endif
