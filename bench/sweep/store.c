/* store.c -- the SQLite code of store.h. */
#include "sweep/store.h"
#include "sweep/store_error.h"
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

enum {
    APPLICATION = 0x54656e6f, /* "Teno": PRAGMA application_id */
    PATIENCE = 5000,          /* ms of waiting for another writer when a store is opened */
    LONG_PATIENCE = 600000    /* ms of waiting for another writer to store a measured run */
};

static const Span nowhere;

struct Store {
    sqlite3 *db;
    Arena *arena;
    Diag *diag;
    const char *path;
    bool failed;
};

/* ---- errors */

/* Whether `code` is not an error; reports it otherwise. */
static bool check(Store *s, int code, const char *doing)
{
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW)
        return true;
    if (!s->failed)
        store_say(s->arena, s->diag, s->path, code, sqlite3_errmsg(s->db), doing);
    s->failed = true;
    return false;
}

bool store_failed(const Store *s)
{
    return s->failed;
}

static bool run_sql(Store *s, const char *sql, const char *doing)
{
    return check(s, sqlite3_exec(s->db, sql, NULL, NULL, NULL), doing);
}

/* ---- the schema */

static void columns(Text *sql, const Field *field)
{
    static const char *const type[] = {"TEXT", "INTEGER", "REAL"};
    for (const Field *f = field; f->name; f++)
        text_printf(sql, ", %s %s", f->name, type[f->kind]);
}

static bool create(Store *s)
{
    Text sql = text_new(s->arena);
    text_add(&sql, "BEGIN IMMEDIATE; CREATE TABLE run (id INTEGER PRIMARY KEY");
    columns(&sql, run_field);
    text_add(&sql,
             ", UNIQUE (key, attempt)); CREATE TABLE epoch (run INTEGER NOT NULL REFERENCES run");
    columns(&sql, epoch_field);
    text_add(&sql,
             ", PRIMARY KEY (run, epoch)); CREATE TABLE layer (run INTEGER NOT NULL REFERENCES run,"
             " position INTEGER NOT NULL");
    columns(&sql, layer_field);
    text_add(&sql, ", PRIMARY KEY (run, position));"
                   " CREATE TABLE text (hash TEXT PRIMARY KEY, body TEXT NOT NULL);");
    text_printf(&sql, " PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", APPLICATION,
                STORE_VERSION);
    if (run_sql(s, sql.s, "make"))
        return true;
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

/* The single number that a statement returns, or -1 after an error. */
static int64_t ask(Store *s, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int64_t v = -1;
    int code = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(st)) == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    check(s, code, "read");
    sqlite3_finalize(st);
    return v;
}

static bool ours(Store *s, bool may_create)
{
    const int64_t tables = ask(s, "SELECT count(*) FROM sqlite_master");
    if (tables < 0)
        return false;
    if (tables == 0 && may_create)
        return create(s);
    const int64_t version = ask(s, "PRAGMA user_version");
    if (ask(s, "PRAGMA application_id") != APPLICATION) {
        diag_error(s->diag, nowhere, "%s is a database, but no store of results", s->path);
        diag_help(s->diag, "name another: --store FILE");
        return false;
    }
    if (version != STORE_VERSION) {
        diag_error(s->diag, nowhere, "the store %s has schema %lld; this tenon knows schema %d",
                   s->path, (long long)version, STORE_VERSION);
        diag_help(s->diag, version > STORE_VERSION ? "use the newer tenon that made it"
                                                   : "name another: --store FILE");
        return false;
    }
    return true;
}

static Store *open_with(Arena *a, const char *path, const char *name, int flags, Diag *d)
{
    Store *s = arena_alloc(a, sizeof *s);
    *s = (Store){.arena = a, .diag = d, .path = path};
    if (!check(s, sqlite3_open_v2(name, &s->db, flags, NULL), "open"))
        return store_close(s), NULL;
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_timeout(s->db, PATIENCE);
    return s;
}

Store *store_open(Arena *a, const char *path, Diag *d)
{
    if (store_is_directory(path, d))
        return NULL;
    Store *s = open_with(a, path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, d);
    if (!s)
        return NULL;
    if (sqlite3_db_readonly(s->db, "main") == 1)
        check(s, SQLITE_READONLY, "open");
    else if (ours(s, true) && run_sql(s, "PRAGMA journal_mode = WAL", "open") &&
             run_sql(s, "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", "open") &&
             run_sql(s, "BEGIN IMMEDIATE; ROLLBACK", "write")) { /* whether writing is possible */
        sqlite3_busy_timeout(s->db, LONG_PATIENCE);
        return s;
    }
    store_close(s);
    return NULL;
}

/* In a directory that cannot be written, a WAL store opens only as immutable. */
static const char *immutable(Arena *a, const char *path)
{
    Text uri = text_new(a);
    text_add(&uri, "file:");
    for (const char *c = path; *c; c++)
        text_printf(&uri, strchr("?#%", *c) ? "%%%02x" : "%c", *c);
    text_add(&uri, "?immutable=1");
    return uri.s;
}

Store *store_read(Arena *a, const char *path, Diag *d)
{
    if (access(path, F_OK) != 0) {
        diag_error(d, nowhere, "there is no store %s: %s", path, strerror(errno));
        diag_help(d, "tenon sweep makes one; name another: --store FILE");
        return NULL;
    }
    if (store_is_directory(path, d))
        return NULL;
    const bool fixed = access(store_directory(a, path), W_OK) != 0;
    /* A process that may write removes WAL's files beside the store; a process that may only read leaves them. */
    Store *s = open_with(a, path, fixed ? immutable(a, path) : path,
                         fixed ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE, d);
    if (!s || (run_sql(s, "PRAGMA query_only = ON", "open") && ours(s, false)))
        return s;
    store_close(s);
    return NULL;
}

void store_close(Store *s)
{
    sqlite3_close(s->db);
    s->db = NULL;
}

/* ---- rows */

static void bind(sqlite3_stmt *st, int at, const Field *f, const void *record)
{
    const char *p = (const char *)record + f->at;
    switch (f->kind) {
    case FIELD_TEXT:
        sqlite3_bind_text(st, at, *(const char *const *)p, -1, SQLITE_TRANSIENT);
        break;
    case FIELD_COUNT:
        sqlite3_bind_int64(st, at, *(const int64_t *)p);
        break;
    case FIELD_REAL:
        sqlite3_bind_double(st, at, *(const double *)p);
        break; /* NAN: NULL */
    }
}

static void fetch(Arena *a, sqlite3_stmt *st, int at, const Field *f, void *record)
{
    char *p = (char *)record + f->at;
    const bool null = sqlite3_column_type(st, at) == SQLITE_NULL;
    const char *text;
    switch (f->kind) {
    case FIELD_TEXT:
        text = (const char *)sqlite3_column_text(st, at);
        *(const char **)p = text ? arena_strdup(a, text) : NULL;
        break;
    case FIELD_COUNT:
        *(int64_t *)p = sqlite3_column_int64(st, at);
        break;
    case FIELD_REAL:
        *(double *)p = null ? NAN : sqlite3_column_double(st, at);
        break;
    }
}

/* INSERT INTO table (first columns, fields) VALUES (?, ...) */
static sqlite3_stmt *insert(Store *s, const char *table, const char *first, int nfirst,
                            const Field *field)
{
    Text sql = text_new(s->arena);
    sqlite3_stmt *st = NULL;
    int n = nfirst;
    text_printf(&sql, "INSERT INTO %s (%s", table, first);
    for (const Field *f = field; f->name; f++, n++)
        text_printf(&sql, "%s%s", n ? ", " : "", f->name);
    text_add(&sql, ") VALUES (?");
    for (int i = 1; i < n; i++)
        text_add(&sql, ", ?");
    text_add(&sql, ")");
    check(s, sqlite3_prepare_v2(s->db, sql.s, -1, &st, NULL), "write");
    return st;
}

static bool add_rows(Store *s, const char *table, const char *first, int nfirst, const Field *field,
                     int64_t run, const void *record, int n, size_t bytes)
{
    sqlite3_stmt *st = insert(s, table, first, nfirst, field);
    for (int i = 0; st && i < n && !s->failed; i++) {
        if (nfirst > 0)
            sqlite3_bind_int64(st, 1, run);
        if (nfirst > 1)
            sqlite3_bind_int64(st, 2, i);
        for (const Field *f = field; f->name; f++)
            bind(st, nfirst + 1 + (int)(f - field), f, (const char *)record + (size_t)i * bytes);
        check(s, sqlite3_step(st), "write");
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    return !s->failed;
}

bool store_add(Store *s, Run *r)
{
    bool ok = run_sql(s, "BEGIN IMMEDIATE", "write") &&
              add_rows(s, "run", "", 0, run_field, 0, r, 1, sizeof *r);
    r->id = sqlite3_last_insert_rowid(s->db);
    ok =
        ok &&
        add_rows(s, "epoch", "run", 1, epoch_field, r->id, r->epoch, r->nepoch, sizeof *r->epoch) &&
        add_rows(s, "layer", "run, position", 2, layer_field, r->id, r->layer, r->nlayer,
                 sizeof *r->layer) &&
        run_sql(s, "COMMIT", "write");
    if (!ok)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return ok;
}

const char *store_text(Store *s, const char *text)
{
    sqlite3_stmt *st = NULL;
    if (!text)
        return NULL;
    const char *hash =
        arena_printf(s->arena, "%016llx", (unsigned long long)text_hash(text, strlen(text), 0));
    if (check(s,
              sqlite3_prepare_v2(s->db, "INSERT OR IGNORE INTO text VALUES (?, ?)", -1, &st, NULL),
              "write")) {
        sqlite3_bind_text(st, 1, hash, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(st, 2, text, -1, SQLITE_TRANSIENT);
        check(s, sqlite3_step(st), "write");
    }
    sqlite3_finalize(st);
    return hash;
}

const char *store_text_of(Store *s, const char *hash)
{
    sqlite3_stmt *st = NULL;
    const char *text = NULL;
    if (!hash ||
        !check(s, sqlite3_prepare_v2(s->db, "SELECT body FROM text WHERE hash = ?", -1, &st, NULL),
               "read"))
        return NULL;
    sqlite3_bind_text(st, 1, hash, -1, SQLITE_TRANSIENT);
    if (sqlite3_step(st) == SQLITE_ROW)
        text = arena_strdup(s->arena, (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    return text;
}

static sqlite3_stmt *select_from(Store *s, const char *first, const char *table, const Field *field,
                                 const char *rest)
{
    Text sql = text_new(s->arena);
    sqlite3_stmt *st = NULL;
    text_printf(&sql, "SELECT %s", first);
    for (const Field *f = field; f->name; f++)
        text_printf(&sql, ", %s", f->name);
    text_printf(&sql, " FROM %s %s", table, rest);
    check(s, sqlite3_prepare_v2(s->db, sql.s, -1, &st, NULL), "read");
    return st;
}

/* The next row's fields into a record; false after the last one. */
static bool row(Store *s, sqlite3_stmt *st, const Field *field, void *record)
{
    if (!st)
        return false;
    const int code = sqlite3_step(st);
    if (code != SQLITE_ROW)
        return check(s, code, "read"), false;
    for (const Field *f = field; f->name; f++)
        fetch(s->arena, st, 1 + (int)(f - field), f, record);
    return true;
}

int store_runs(Store *s, const char *where, Run **run)
{
    const char *rest =
        arena_printf(s->arena, "%s %s ORDER BY id", where ? "WHERE" : "", where ? where : "");
    sqlite3_stmt *st = select_from(s, "id", "run", run_field, rest);
    Run r = {0};
    int n = 0;
    *run = NULL;
    while (row(s, st, run_field, &r)) {
        r.id = sqlite3_column_int64(st, 0);
        ARENA_PUSH(s->arena, *run, n, r);
    }
    sqlite3_finalize(st);
    return n;
}

bool store_details(Store *s, Run *r)
{
    const char *mine = arena_printf(s->arena, "WHERE run = %lld ORDER BY 1", (long long)r->id);
    sqlite3_stmt *st = select_from(s, "epoch AS at", "epoch", epoch_field, mine);
    Epoch e = {0};
    Layer l = {0};
    r->nepoch = r->nlayer = 0;
    while (row(s, st, epoch_field, &e))
        ARENA_PUSH(s->arena, r->epoch, r->nepoch, e);
    sqlite3_finalize(st);
    st = select_from(s, "position", "layer", layer_field, mine);
    while (row(s, st, layer_field, &l))
        ARENA_PUSH(s->arena, r->layer, r->nlayer, l);
    sqlite3_finalize(st);
    return !s->failed;
}
