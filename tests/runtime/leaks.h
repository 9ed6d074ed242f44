/* leaks.h -- included by a test of the runtime: what a program keeps to its end is no leak. */
#ifndef TESTS_LEAKS_H
#define TESTS_LEAKS_H

/* Of LeakSanitizer.  Kept: strings of rt_format, the table of processors. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:vasprintf\nleak:cores_read\n";
}

#endif
