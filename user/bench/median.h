/* SPDX-License-Identifier: GPL-2.0-only */
/* Order among what was measured. */
#ifndef XSPD_BENCH_MEDIAN_H
#define XSPD_BENCH_MEDIAN_H

#include <stdlib.h>

static inline int xspd_compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Least first. */
static inline void xspd_sort(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), xspd_compare_double);
}

/* Sorts @values, of which there is one at least. */
static inline double xspd_median(double *values, size_t count)
{
	xspd_sort(values, count);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#endif
