/* leaks.h -- included by a test of the runtime: what a program keeps to its end is no leak.
 *
 *   LEAKS_KEPT   what else the test keeps, as lines of suppressions; none if it is not defined
 */
#ifndef TESTS_LEAKS_H
#define TESTS_LEAKS_H

#ifndef LEAKS_KEPT
#define LEAKS_KEPT ""
#endif

/* Of LeakSanitizer.  Kept: strings of rt_format, the table of processors. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:vasprintf\nleak:cores_read\n" LEAKS_KEPT;
}

#endif
