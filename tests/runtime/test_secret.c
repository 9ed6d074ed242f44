/* test_secret.c -- where ranks find the secret of their job (comm/secret.c): in a file, in the environment, in a file that the
 * ranks of a user make, from mpirun.
 */
#define _GNU_SOURCE
#include "ranks.h"
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *write_secret(const char *text, mode_t mode)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/secret", scratch);
    unlink(path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(dprintf(fd, "%s", text), (int)strlen(text));
    fchmod(fd, mode);
    close(fd);
    return path;
}

START_TEST(a_file_holds_the_secret)
{
    setenv("TENON_SECRET_FILE", write_secret("0123456789abcdef\n", 0600), 1);
    ends(start(0, 2, 1), 1, "TENON_SECRET_FILE and TENON_SECRET are both set");
    unsetenv("TENON_SECRET");
    all_meet(2);
    Child zero = start(0, 2, 5);
    unsetenv("TENON_SECRET_FILE");
    setenv("TENON_SECRET", "0123456789abcdef", 1);    /* the same without a newline */
    ends(start(1, 2, 5), 0, NULL);
    ends(zero, 0, NULL);
}
END_TEST

START_TEST(a_secret_that_is_none_is_refused)
{
    unsetenv("TENON_SECRET");
    setenv("TENON_SECRET_FILE", write_secret("0123456789abcdef\n", 0640), 1);
    ends(start(0, 2, 1), 1, "can be read by others (mode 640): chmod 600");
    setenv("TENON_SECRET_FILE", write_secret("0123456789abcde\n", 0600), 1);
    ends(start(0, 2, 1), 1, "holds 15 characters: a secret must have at least 16");
    setenv("TENON_SECRET_FILE", scratch, 1);
    ends(start(0, 2, 1), 1, "is not a regular file");
    setenv("TENON_SECRET_FILE", "/nowhere/secret", 1);
    ends(start(0, 2, 1), 1, "TENON_SECRET_FILE=/nowhere/secret cannot be opened: No such file");
    unsetenv("TENON_SECRET_FILE");
    setenv("TENON_SECRET", "short", 1);
    ends(start(0, 2, 1), 1, "TENON_SECRET holds 5 characters");
    unsetenv("TENON_SECRET");
    setenv("HOME", "/dev/null", 1);
    ends(start(0, 2, 1), 1, "no file for it can be made; /dev/null/.config/tenon/secret: Not a directory; XDG_RUNTIME_DIR is not set; make one by");
}
END_TEST

/* Each read and write of a file transfers a part of its bytes, as on a network file system. */
static size_t some(int fd, size_t n)
{
    struct stat s;
    return n > 1 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) ? n / 2 : n;
}

ssize_t read(int fd, void *bytes, size_t n)
{
    return syscall(SYS_read, fd, bytes, some(fd, n));
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    return syscall(SYS_write, fd, bytes, some(fd, n));
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    return syscall(SYS_pread64, fd, bytes, some(fd, n), at);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return syscall(SYS_pwrite64, fd, bytes, some(fd, n), at);
}

/* Without a given secret, the ranks of a user make one; all of them at the same time. */
START_TEST(a_user_has_a_secret)
{
    char path[128];
    struct stat st;
    unsetenv("TENON_SECRET");
    setenv("HOME", scratch, 1);
    all_meet(RANKS);
    snprintf(path, sizeof path, "%s/.config/tenon/secret", scratch);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq((int)st.st_size, 65);
    all_meet(2);
    chmod(path, 0644);
    ends(start(0, 2, 1), 1, "can be read by others (mode 644)");
    snprintf(path, sizeof path, "%s/config", scratch);
    setenv("XDG_CONFIG_HOME", path, 1);               /* not there yet */
    all_meet(3);
}
END_TEST

/* mpirun draws one for each job. */
START_TEST(mpirun_has_a_secret)
{
    unsetenv("TENON_SECRET");
    setenv("HOME", "/dev/null", 1);
    setenv("OMPI_MCA_orte_precondition_transports", "92878d7a51d69cfe-b532a4560fc3c551", 1);
    ends(start(0, 2, 1), 1, "no file for it can be made");      /* of an mpirun around ranks that it has not started */
    by_mpirun = true;
    all_meet(2);
    const Child zero = start(0, 2, 1);
    setenv("OMPI_MCA_orte_precondition_transports", "92878d7a51d69cfe-b532a4560fc3c552", 1);
    ends(start(1, 2, 1), 1, "this rank uses the secret from OMPI_MCA_orte_precondition_transports");
    ends(zero, 76, "does not know the job's secret");
    setenv("OMPI_MCA_orte_precondition_transports", "0000000000000000-0000000000000000", 1);
    ends(start(0, 2, 1), 1, "no file for it can be made");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("secret");
    TCase *t = ranks_case("secrets");
    tcase_add_test(t, a_file_holds_the_secret);
    tcase_add_test(t, a_secret_that_is_none_is_refused);
    tcase_add_test(t, a_user_has_a_secret);
    tcase_add_test(t, mpirun_has_a_secret);
    suite_add_tcase(s, t);
    return suite_run(s);
}
