// SPDX-License-Identifier: GPL-2.0-only
/* xspd tune: what a lookup costs the kernel, why, and which thresholds make it cheaper. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/costs.h"
#include "cli/tune.h"
#include "util.h"

#define MAX_STALL 50

/* "L/R" */
static bool read_pair(const char *text, uint32_t most, uint8_t *ret_l, uint8_t *ret_r)
{
	char left[16];
	const char *slash = strchr(text, '/');
	uint32_t l, r;

	if (!slash || (size_t)(slash - text) >= sizeof(left))
		return false;
	memcpy(left, text, (size_t)(slash - text));
	left[slash - text] = '\0';
	if (!cli_number(left, most, &l) || !cli_number(slash + 1, most, &r))
		return false;
	*ret_l = (uint8_t)l;
	*ret_r = (uint8_t)r;
	return true;
}

static int read_given(const struct cli_tune *tune, struct xspd_tune_bits *ret)
{
	if (tune->hthresh4 && !read_pair(tune->hthresh4, 32, &ret->lbits4, &ret->rbits4))
		return cli_usage("tune: --hthresh4 %s: give LBITS/RBITS, each from 0 to 32",
				 tune->hthresh4);
	if (tune->hthresh6 && !read_pair(tune->hthresh6, 128, &ret->lbits6, &ret->rbits6))
		return cli_usage("tune: --hthresh6 %s: give LBITS/RBITS, each from 0 to 128",
				 tune->hthresh6);
	return XSPD_DONE;
}

static int calibrate(struct cli_tune *tune)
{
	const char *what = "";
	int err;

	tune->costs = xspd_tune_costs_builtin;
	tune->costs.sub_policy = tune->source.sub_policy;
	if ((!tune->calibrate && !tune->apply) || tune->ties || !tune->source.count)
		return XSPD_DONE;
	err = xspd_bench_costs(&tune->costs, &what);
	if (err)
		return cli_fail("tune: calibrate: %s: %s%s", what, strerror(-err),
				err == -EPERM ? "; run as root" : "");
	tune->measured = true;
	return XSPD_DONE;
}

static int predict(struct cli_tune *tune)
{
	const struct xspd_spdinfo *info = &tune->source.info;
	struct xspd_tune_bits now = {info->lbits4, info->rbits4, info->lbits6, info->rbits6};
	struct xspd_tune_bits best = now;

	if (xspd_tune_new(&tune->model, tune->source.pol, tune->source.count, &now, &tune->costs))
		return cli_fail("tune: %s", strerror(ENOMEM));
	if (tune->hthresh4 || tune->hthresh6)
		read_given(tune, &best);
	else
		xspd_tune_search(tune->model, &now, &best);
	tune->now.bits = now;
	xspd_tune_compare(tune->model, &tune->now, &best, &tune->best);
	return XSPD_DONE;
}

static int run(struct cli_tune *tune)
{
	int rc = tune->apply ? cli_tune_count_ties(tune) : XSPD_DONE;

	if (!rc)
		rc = calibrate(tune);
	if (!rc)
		rc = predict(tune);
	if (rc)
		return rc;
	if (tune->apply)
		rc = cli_tune_apply(tune);
	if (tune->common.json)
		cli_tune_print_json(tune);
	else
		cli_tune_print(tune);
	return rc;
}

static int check(const struct cli_tune *tune)
{
	struct xspd_tune_bits bits = {};

	if (tune->file && tune->apply)
		return cli_usage("tune: --apply is for the kernel's own policies, not for a "
				 "--file");
	if (!tune->apply && (tune->keep || tune->accept_ties))
		return cli_usage("tune: --keep and --accept-ties are for --apply");
	return read_given(tune, &bits);
}

int tune_main(int argc, char **argv)
{
	struct cli_tune tune = {.common = {.reads = true},
				.max_stall = MAX_STALL,
				.ns_before = NAN,
				.ns_after = NAN,
				.stall = NAN};
	const struct cli_option options[] = {
		{"file", CLI_STRING, &tune.file},
		{"hthresh4", CLI_STRING, &tune.hthresh4},
		{"hthresh6", CLI_STRING, &tune.hthresh6},
		{"calibrate", CLI_FLAG, &tune.calibrate},
		{"apply", CLI_FLAG, &tune.apply},
		{"keep", CLI_FLAG, &tune.keep},
		{"accept-ties", CLI_FLAG, &tune.accept_ties},
		{"max-stall", CLI_NUMBER, &tune.max_stall, 1, 600000},
		{},
	};
	int rc = cli_parse(&tune.common, options, &argc, &argv);

	if (rc || tune.common.help)
		return rc;
	if (argc)
		return cli_usage("tune: takes no words, not '%s'", argv[0]);
	rc = check(&tune);
	if (!rc)
		rc = cli_enter_netns(tune.common.netns);
	if (!rc)
		rc = cli_source_open(&tune.source, "tune", tune.file, tune.common.instance, false);
	if (rc)
		return rc;
	rc = run(&tune);
	xspd_tune_free(tune.model);
	cli_source_close(&tune.source);
	return rc;
}
