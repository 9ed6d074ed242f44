/* leaks.h -- included by a test of the runtime: what a program keeps to its end is no leak. */
#ifndef TESTS_LEAKS_H
#define TESTS_LEAKS_H

/* Of LeakSanitizer.  Kept: strings of rt_format and of memory streams, the table of processors, data sets, the columns of a table and
 * their categories. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:vasprintf\nleak:cores_read\nleak:_IO_mem_finish\nleak:data_open\nleak:columns_read\nleak:table_add\n";
}

#endif
