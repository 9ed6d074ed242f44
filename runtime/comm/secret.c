/* secret.c -- see secret.h. */
#define _GNU_SOURCE
#include "comm/secret.h"
#include "base/error.h"
#include "base/variables.h"
#include "base/whole.h"
#include "files/names.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANDOM = 32 }; /* bytes of a new secret, which is written as hexadecimal digits */

static const char HOW[] =
    "make one by `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`, the same on all hosts, "
    "and set TENON_SECRET_FILE=FILE in the environment of all ranks";

static const char *secret_variable(const char *variable)
{
    const char *text = getenv(variable);
    return text && *text ? text : NULL;
}

/* Uses the bytes as the secret, without white space at the end. */
static void take_secret(Secret *s, const char *bytes, size_t n, const char *source)
{
    while (n > 0 && isspace((unsigned char)bytes[n - 1]))
        n--;
    if (n < SECRET_LEAST)
        rt_die("%s holds %zu characters: a secret must have at least %d; %s", source, n,
               SECRET_LEAST, HOW);
    hmac_new(&s->key, bytes, n);
    snprintf(s->source, sizeof s->source, "%s", source);
}

/* Reads the file of a secret; false with errno: it cannot be opened.  Dies if other users can read
 * it. */
static bool read_secret(Secret *s, const char *path, int flags)
{
    char bytes[SECRET_MOST + 1];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        rt_die("%s, the secret of the job, is not a regular file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        rt_die("%s, the secret of the job, belongs to user %u, and this process runs as %u", path,
               (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & 077)
        rt_die("%s, the secret of the job, can be read by others (mode %03o): chmod 600 %s, or "
               "make another one",
               path, (unsigned)st.st_mode & 0777, path);
    const int64_t n = whole_read(fd, bytes, sizeof bytes, 0);
    close(fd);
    if (n < 0)
        rt_die("%s, the secret of the job, cannot be read: %s", path, strerror(errno));
    if (n > SECRET_MOST)
        rt_die("%s, the secret of the job, is longer than %d bytes", path, SECRET_MOST);
    take_secret(s, bytes, (size_t)n, path);
    return true;
}

/* Writes a random secret to a temporary file and links it to its name, so that nobody reads an
 * incomplete file.  Succeeds, too, if another process has made the file meanwhile.  Returns false
 * and sets errno if the file cannot be written. */
static bool make_file(const char *path)
{
    uint8_t random[RANDOM];
    char text[2 * RANDOM + 2], own[600];
    for (size_t have = 0; have < sizeof random;) {
        const ssize_t n = getrandom(random + have, sizeof random - have, 0);
        if (n < 0 && errno != EINTR)
            return false;
        have += n > 0 ? (size_t)n : 0;
    }
    for (int i = 0; i < RANDOM; i++)
        sprintf(text + 2 * i, "%02x", random[i]);
    text[2 * RANDOM] = '\n';
    snprintf(own, sizeof own, "%s.XXXXXX", path);
    const int fd = mkostemp(own, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return false;
    const bool written =
        whole_write(fd, text, 2 * RANDOM + 1, 0) && fsync(fd) == 0 && fchmod(fd, 0600) == 0;
    bool made = written && link(own, path) == 0;
    made |= written && errno == EEXIST;
    const int error = errno;
    close(fd);
    unlink(own);
    errno = error;
    return made;
}

/* Reads the user's secret, $variable/below/tenon/secret, and makes it if it is missing.  Returns
 * false if neither is possible, and appends the reason to `text`. */
static bool of_user(Secret *s, const char *variable, const char *below, char *text, size_t room)
{
    char path[512];
    const char *root = secret_variable(variable);
    const size_t n = strlen(text);
    if (!root) {
        snprintf(text + n, room - n, "; %s is not set", variable);
        return false;
    }
    if (snprintf(path, sizeof path, "%s%s/" FILE_SECRET, root, below) >= (int)sizeof path) {
        snprintf(text + n, room - n, "; %s is too long", variable);
        return false;
    }
    if (read_secret(s, path, O_NOFOLLOW))
        return true;
    if (errno == ENOENT) {
        char *slash = path + strlen(root);
        if (!*below) /* makes the directory that the variable names, but never a home directory */
            mkdir(root, 0700);
        while ((slash = strchr(slash + 1, '/'))) { /* ROOT/.config, ROOT/.config/tenon */
            *slash = '\0';
            mkdir(path, 0700);
            *slash = '/';
        }
        if (make_file(path) && read_secret(s, path, O_NOFOLLOW))
            return true;
    }
    snprintf(text + n, room - n, "; %s: %s", path, strerror(errno));
    return false;
}

/* Uses the key of mpirun, "0123456789abcdef-0123456789abcdef"; false: there is none. */
static bool of_mpirun(Secret *s, const Launch *l)
{
    static const char *const variable = VARIABLE(OMPI_MCA_orte_precondition_transports);
    const char *text = secret_variable(variable);
    if (strcmp(l->word, VARIABLE(OMPI_COMM_WORLD_SIZE)) != 0 || !text || strlen(text) != 33 ||
        strspn(text, "0123456789abcdef-") != 33 || strspn(text, "0-") == 33)
        return false;
    take_secret(s, text, strlen(text), variable);
    return true;
}

void secret_find(const Launch *l, Secret *s)
{
    const char *file = secret_variable(VARIABLE(TENON_SECRET_FILE)),
               *word = secret_variable(VARIABLE(TENON_SECRET));
    char why[2048] = "";
    if (file && word)
        rt_die("TENON_SECRET_FILE and TENON_SECRET are both set: unset one of them");
    if (file && !read_secret(s, file, 0))
        rt_die("TENON_SECRET_FILE=%s cannot be opened: %s; %s", file, strerror(errno), HOW);
    if (word)
        take_secret(s, word, strlen(word), VARIABLE(TENON_SECRET));
    if (file || word || of_mpirun(s, l))
        return;
    const bool config = secret_variable(VARIABLE(XDG_CONFIG_HOME)) != NULL;
    if (!of_user(s, config ? VARIABLE(XDG_CONFIG_HOME) : VARIABLE(HOME), config ? "" : "/.config",
                 why, sizeof why) &&
        !of_user(s, VARIABLE(XDG_RUNTIME_DIR), "", why, sizeof why))
        rt_die("the ranks need a secret by which they recognise each other, and no file for it can "
               "be made%s; %s",
               why, HOW);
}
