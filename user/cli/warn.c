// SPDX-License-Identifier: GPL-2.0-only
/* What an operator would want to know of the two ways of a path, beyond each answer. */
#include <stdio.h>

#include "cli/path.h"
#include "util.h"

typedef bool (*warner)(const struct cli_path *path, char *buf, size_t size);

/* What happens where the packet leaves; DEFERRED unless it does. */
static enum cli_fate leaves(const struct cli_way *way)
{
	const struct cli_answer *end = cli_way_end(way);

	if (end->flow.dir != XSPD_OUT)
		return CLI_FATE_DEFERRED;
	return cli_fate_of(end);
}

/* What is asked of it where it arrives. */
static enum cli_fate arrives(const struct cli_way *way)
{
	if (way->step[0].flow.dir == XSPD_OUT)
		return CLI_FATE_DEFERRED;
	return cli_fate_of(&way->step[0]);
}

static bool dropped(const struct cli_way *way)
{
	return cli_fate_of(cli_way_end(way)) == CLI_FATE_DROPPED;
}

static bool passes(const struct cli_way *way)
{
	enum cli_fate fate = cli_fate_of(cli_way_end(way));

	return fate != CLI_FATE_DROPPED && fate != CLI_FATE_DEFERRED;
}

static bool lopsided(const struct cli_way *out, const struct cli_way *in, const char *going,
		     const char *coming, char *buf, size_t size)
{
	if (leaves(out) == CLI_FATE_PROTECTED && arrives(in) == CLI_FATE_PLAIN) {
		snprintf(buf, size,
			 "asymmetric: %s leaves protected, but %s is accepted in the clear", going,
			 coming);
		return true;
	}
	if (leaves(out) == CLI_FATE_PLAIN && arrives(in) == CLI_FATE_DEMANDS) {
		snprintf(buf, size,
			 "asymmetric: %s leaves in the clear, but %s must come protected, or it "
			 "is dropped (XfrmInTmplMismatch)",
			 going, coming);
		return true;
	}
	return false;
}

static bool warn_there(const struct cli_path *path, char *buf, size_t size)
{
	return path->both &&
	       lopsided(&path->there, &path->back, "the way there", "the way back", buf, size);
}

static bool warn_back(const struct cli_path *path, char *buf, size_t size)
{
	return path->both &&
	       lopsided(&path->back, &path->there, "the way back", "the way there", buf, size);
}

static bool warn_dropped(const struct cli_path *path, char *buf, size_t size)
{
	const struct cli_path *p = path;

	if (!p->both)
		return false;
	if (dropped(&p->there) && passes(&p->back))
		snprintf(buf, size, "asymmetric: the way there is dropped, the way back is not");
	else if (passes(&p->there) && dropped(&p->back))
		snprintf(buf, size, "asymmetric: the way back is dropped, the way there is not");
	else
		return false;
	return true;
}

/* The lookup after source NAT decides: what the one before it found is forgotten. */
static bool unprotected_by_nat(const struct cli_way *way, const char *which, char *buf, size_t size)
{
	if (!way->renamed || cli_way_end(way) != &way->step[2] ||
	    cli_fate_of(&way->step[1]) != CLI_FATE_PROTECTED ||
	    cli_fate_of(&way->step[2]) != CLI_FATE_PLAIN)
		return false;
	snprintf(buf, size,
		 "source NAT on %s takes the packet away from policy %u, which protects it: it "
		 "leaves in the clear",
		 which, way->step[1].answer.index);
	return true;
}

static bool warn_nat_there(const struct cli_path *path, char *buf, size_t size)
{
	return unprotected_by_nat(&path->there, "the way there", buf, size);
}

static bool warn_nat_back(const struct cli_path *path, char *buf, size_t size)
{
	return path->both && unprotected_by_nat(&path->back, "the way back", buf, size);
}

const char *cli_path_warning(const struct cli_path *path, size_t nr)
{
	static const warner warners[] = {warn_there, warn_back, warn_dropped, warn_nat_there,
					 warn_nat_back};
	static char text[256];

	for (size_t i = 0; i < XSPD_ARRAY_SIZE(warners); i++)
		if (warners[i](path, text, sizeof(text)) && !nr--)
			return text;
	return NULL;
}
