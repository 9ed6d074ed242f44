/* clock.h -- elapsed time, in seconds. */
#ifndef CLOCK_H
#define CLOCK_H

double clock_now(void);   /* since a fixed moment in the past */
double clock_start(void); /* the start of this process, on the same clock */

#endif
