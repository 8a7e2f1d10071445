// SPDX-License-Identifier: GPL-2.0-only
/* All set-ups of the tunnel benchmark, measured in turn. */
#include <errno.h>
#include <string.h>

#include "bench/tunnel.h"
#include "util.h"

/* One set-up of one size, and what was measured of it so far. */
struct cell {
	struct xspd_tunnel tunnel;
	double rr[XSPD_TUNNEL_ROUNDS_MOST], tcp[XSPD_TUNNEL_ROUNDS_MOST];
	double udp[XSPD_TUNNEL_ROUNDS_MOST];
	double steer_ns;
};

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static struct xspd_tunnel_cell summary(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return (struct xspd_tunnel_cell){
		.median = (values[count / 2] + values[(count - 1) / 2]) / 2,
		.least = values[0],
		.most = values[count - 1],
	};
}

static int measure(const struct xspd_tunnel_request *request, struct cell *cell, uint32_t round,
		   const char **ret_what)
{
	int err;

	*ret_what = "requests and responses";
	err = xspd_tunnel_rr(&cell->tunnel, request->ms, &cell->rr[round]);
	if (err || !request->streams)
		return err;
	*ret_what = "iperf3, TCP";
	err = xspd_tunnel_stream(&cell->tunnel, false, &cell->tcp[round]);
	if (err)
		return err;
	*ret_what = "iperf3, UDP";
	return xspd_tunnel_stream(&cell->tunnel, true, &cell->udp[round]);
}

static void note_round(const struct xspd_tunnel_request *request, const struct cell *cell,
		       uint32_t round)
{
	char text[128];

	snprintf(text, sizeof(text), "%s, %u, round %u: %.0f RR/s, TCP %.1f Mbit/s, UDP %.0f/s",
		 xspd_tunnel_name(cell->tunnel.way), cell->tunnel.tunnels, round + 1,
		 cell->rr[round], cell->tcp[round] / 1e6, cell->udp[round]);
	request->note(request->ctx, text);
}

static void report(const struct xspd_tunnel_request *request, struct cell *cell)
{
	struct xspd_tunnel_row row = {
		.way = xspd_tunnel_name(cell->tunnel.way),
		.tunnels = cell->tunnel.tunnels,
		.rounds = request->rounds,
		.setup_s = cell->tunnel.setup_s,
		.rr = summary(cell->rr, request->rounds),
		.steer_ns = cell->steer_ns,
	};

	if (cell->tunnel.way == XSPD_TUNNEL_PLAIN)
		row.tunnels = 0;
	if (request->streams) {
		row.tcp = summary(cell->tcp, request->rounds);
		row.udp = summary(cell->udp, request->rounds);
	}
	request->row(request->ctx, &row);
}

static void note(const struct xspd_tunnel_request *request, const struct cell *cell)
{
	char text[96];

	snprintf(text, sizeof(text), "%s, %u: set up in %.1f s", xspd_tunnel_name(cell->tunnel.way),
		 cell->tunnel.tunnels, cell->tunnel.setup_s);
	request->note(request->ctx, text);
}

static int cells_new(const struct xspd_tunnel_request *request, struct cell *cells,
		     uint32_t *ret_count, const char **ret_what)
{
	uint32_t count = 0;
	int err = 0;

	for (int way = 0; way < XSPD_TUNNEL_WAYS && !err; way++) {
		uint32_t sizes = way == XSPD_TUNNEL_PLAIN ? 1 : request->size_count;

		if (!(request->ways & 1u << way))
			continue;
		for (uint32_t i = 0; i < sizes && !err; i++) {
			err = xspd_tunnel_new(&cells[count].tunnel, way, request->sizes[i],
					      request->streams, ret_what);
			if (!err)
				note(request, &cells[count++]);
		}
	}
	*ret_count = count;
	return err;
}

int xspd_bench_tunnel(const struct xspd_tunnel_request *request, const char **ret_what)
{
	struct cell *cells = calloc(XSPD_TUNNEL_WAYS * XSPD_TUNNEL_SIZES, sizeof(*cells));
	uint32_t count = 0;
	int err;

	if (!cells)
		return -ENOMEM;
	err = cells_new(request, cells, &count, ret_what);
	/* in turn, so that whatever else the machine does meets all of them */
	for (uint32_t round = 0; round < request->rounds && !err; round++)
		for (uint32_t i = 0; i < count && !err; i++) {
			err = measure(request, &cells[i], round, ret_what);
			if (!err)
				note_round(request, &cells[i], round);
		}
	for (uint32_t i = 0; i < count && !err; i++) {
		*ret_what = "the program's time";
		if (cells[i].tunnel.way == XSPD_TUNNEL_STEER)
			err = xspd_tunnel_steer_ns(&cells[i].tunnel, request->ms,
						   &cells[i].steer_ns);
	}
	for (uint32_t i = 0; i < count && !err; i++)
		report(request, &cells[i]);
	for (uint32_t i = 0; i < count; i++)
		xspd_tunnel_free(&cells[i].tunnel);
	free(cells);
	return err;
}
