// SPDX-License-Identifier: GPL-2.0-only
/* Medians over the rounds of the path benchmark, and how its rows compare. */
#include <stdlib.h>
#include <string.h>

#include "bench/median.h"
#include "bench/path.h"

void xspd_path_row_sum(struct xspd_path_row *row, struct xspd_path_sums *sums, uint32_t rounds)
{
	row->rounds = rounds;
	row->received = sums->received;
	row->delivered = sums->delivered;
	row->acted = sums->acted;
	row->mpps = xspd_median(sums->mpps, rounds);
	row->mpps_most = sums->mpps[rounds - 1];
	row->mpps_wall = xspd_median(sums->wall, rounds);
	row->ns = 1e3 / row->mpps;
}

static const struct xspd_path_row *find(const struct xspd_path_row *rows, size_t count,
					const char *setup, const char *spd)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].setup, setup) && (!spd || !strcmp(rows[i].spd, spd)))
			return &rows[i];
	return NULL;
}

/* What frames cost in XDP that are sent on, or dropped, without a question. */
void xspd_path_rows_compare(struct xspd_path_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct xspd_path_row *row = &rows[i];
		const struct xspd_path_row *floor =
			find(rows, count, row->drops ? "xdp-drop" : "xdp-redirect", NULL);
		const struct xspd_path_row *kernel = find(rows, count, "kernel", row->spd);

		row->floor_ns = floor ? floor->ns : 0;
		if (!kernel || kernel == row || row == floor)
			continue;
		row->ratio = kernel->ns / row->ns;
		if (floor && row->ns > floor->ns)
			row->ratio_net = (kernel->ns - floor->ns) / (row->ns - floor->ns);
	}
}
