/* clock.h -- seconds. */
#ifndef CLOCK_H
#define CLOCK_H

double clock_now(void);                               /* since some moment that never changes */
double clock_start(void);  /* when this process began, on the same clock */

#endif
