/* log.h -- output of a run: JSON lines for programs (--log), plain lines and a progress bar for
 * people. */
#ifndef LOG_H
#define LOG_H
#include "files/records.h"
#include <stdbool.h>
#include <stdint.h>

/* Records. The functions do nothing if the path is NULL. A record that cannot be written is lost;
 * the first loss is reported. */
typedef struct Log {
    int fd;
    const char *path;
    /* A pipe gets a whole line or nothing, if the line has at most PIPE_BUF = 4096 bytes.  Only an
     * epoch with many metrics of three splits is longer. */
    char line[6144];
    int n;
    bool lost; /* at least one record was lost */
} Log;
void log_open(Log *l, const char *path, bool append);
void log_keep_messages(const Log *l); /* records each message of this process (error.h) */
/* Begins a record.  event: a RECORD(event) of records.h; each key below: a FIELD(event, key). */
void log_begin(Log *l, const char *event);
void log_text(Log *l, const char *key, const char *value);
void log_count(Log *l, const char *key, int64_t value);
void log_unsigned(Log *l, const char *key, uint64_t value);
void log_real(Log *l, const char *key, double value); /* NaN and infinity become null */
void log_end(Log *l); /* writes the line in one write; if the write fails, the record is lost */

/* The bar: shown on a terminal only, drawn a few times a second. */
typedef struct Bar {
    bool shown;
    double drawn;
} Bar;
void bar_open(Bar *b);
void bar_draw(Bar *b, int64_t epoch, int64_t epochs, double share, double samples_per_s,
              double loss, double accuracy, double eta); /* accuracy < 0: not shown */
/* Another text in place of the bar.  All texts are cut off at the width of the terminal. */
void bar_text(Bar *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void bar_clear(Bar *b);

#endif
