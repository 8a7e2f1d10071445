// SPDX-License-Identifier: GPL-2.0-only
/* xspd top on a terminal. */
#include <curses.h>
#include <inttypes.h>
#include <locale.h>
#include <string.h>

#include "cli/history.h"
#include "cli/selector.h"
#include "cli/top.h"
#include "reason.h"
#include "util.h"

#define REASON_ROWS 7	/* with their heading */
#define LOOK_MS	    100 /* at the clock, while no key comes */
#define SAMPLE_ROWS 6

struct screen {
	struct top *top;
	struct cli_history history;
	size_t selected, first; /* rows of the policies */
	char filter[64];
	bool typing, paused, end;
	char said[96];
};

static void number_text(double n, char *buf, size_t size)
{
	static const char units[] = " kMGT";
	size_t u = 0;

	for (; n >= 9999.5 && u < sizeof(units) - 2; u++)
		n /= 1000;
	if (u)
		snprintf(buf, size, "%.4g%c", n, units[u]);
	else
		snprintf(buf, size, n < 100 && n != (double)(int)n ? "%.1f" : "%.0f", n);
}

/* A line of the screen, cut to its width. */
static void line(int y, int attr, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void line(int y, int attr, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	attron(attr);
	mvhline(y, 0, ' ', COLS);
	mvaddnstr(y, 0, text, COLS);
	attroff(attr);
}

static void draw_head(const struct screen *s)
{
	const struct top *top = s->top;
	uint64_t all = top->now.hits + top->now.misses;
	char state[128], packets[16];

	top_state_text(top, state, sizeof(state));
	number_text(top->packets, packets, sizeof(packets));
	line(0, A_BOLD, "xspd top: %s, %s%s", top->common.instance, state,
	     s->paused ? " (paused)" : "");
	line(1, 0, "%u policies, %s packets/s, cache %.0f %%, by %s%s%s%s", top->now.conf.policies,
	     packets, all ? 100.0 * (double)top->now.hits / (double)all : 0,
	     top_sort_names[top->sort], top->family ? top->family == 6 ? ", IPv6" : ", IPv4" : "",
	     *s->filter ? ", with " : "", s->filter);
}

static void draw_policy(const struct screen *s, int y, size_t i)
{
	const struct top_policy *p = &s->top->policy[i];
	char text[260], packets[16], bits[16], total[16];

	number_text(p->packets, packets, sizeof(packets));
	number_text(8 * p->bytes, bits, sizeof(bits));
	number_text((double)p->now->count.packets, total, sizeof(total));
	top_policy_text(p, text, sizeof(text));
	line(y, i == s->selected ? A_REVERSE : 0, "%8s %8s %8s %7u %s", packets, bits, total,
	     p->now->info.index, text);
}

static int list_rows(void)
{
	int rows = LINES - 4 - REASON_ROWS;

	return rows < 1 ? 1 : rows;
}

static void draw_list(struct screen *s)
{
	size_t rows = (size_t)list_rows();

	if (s->selected >= s->top->policies)
		s->selected = s->top->policies ? s->top->policies - 1 : 0;
	if (s->selected < s->first)
		s->first = s->selected;
	if (s->selected >= s->first + rows)
		s->first = s->selected - rows + 1;
	line(2, A_UNDERLINE, "%8s %8s %8s %7s policy", "packet/s", "bit/s", "packets", "index");
	for (size_t i = 0; i < rows; i++) {
		if (s->first + i < s->top->policies)
			draw_policy(s, 3 + (int)i, s->first + i);
		else
			line(3 + (int)i, 0, " ");
	}
}

static void draw_reasons(const struct screen *s)
{
	int y = LINES - 1 - REASON_ROWS;

	if (y < 4)
		return;
	line(y, A_UNDERLINE, "%8s %8s hook    asked reason", "packet/s", "packets");
	for (int i = 0; i < REASON_ROWS - 1; i++) {
		const struct top_reason *r = &s->top->reason[i];
		char packets[16], total[16];

		if ((size_t)i >= s->top->reasons) {
			line(y + 1 + i, 0, " ");
			continue;
		}
		number_text(r->packets, packets, sizeof(packets));
		number_text((double)r->total, total, sizeof(total));
		line(y + 1 + i, 0, "%8s %8s %s", packets, total, r->text);
	}
}

/* The last samples that met @index, latest first. */
static void draw_samples(const struct screen *s, int y, uint32_t index)
{
	uint64_t last = s->history.sample ? cli_history_samples(&s->history) : 0;
	int shown = 0;

	line(y, A_UNDERLINE, "packets told of");
	for (uint64_t seq = last; seq && seq + XSPD_SAMPLES > last && shown < SAMPLE_ROWS; seq--) {
		char flow[192], rest[192];
		struct xspd_sample sample;

		if (!cli_history_sample(&s->history, seq, &sample) || sample.index != index)
			continue;
		if (y + 1 + shown >= LINES - 1)
			return;
		cli_sample_flow(&sample, flow, sizeof(flow));
		cli_sample_rest(&sample, rest, sizeof(rest));
		line(y + 1 + shown++, 0, "%-11s %s %s", xspd_sample_name(sample.kind), flow, rest);
	}
}

static void draw_past(const struct top *top, int y)
{
	static const char steps[] = " .:-=+*#";
	double most = 1;

	for (unsigned int i = 0; i < top->pasts; i++)
		most = top->past[i] > most ? top->past[i] : most;
	mvaddch(y, 0, '|');
	for (unsigned int i = 0; i < top->pasts && (int)i + 2 < COLS; i++)
		addch((chtype)steps[(size_t)(top->past[i] / most * (sizeof(steps) - 2) + 0.5)]);
	addch('|');
}

static void draw_followed(const struct screen *s)
{
	const struct top *top = s->top;
	const struct top_policy *p = NULL;
	char text[256], packets[16], bits[16];

	for (size_t i = 0; i < top->policies; i++)
		if (top->policy[i].now->info.index == top->follow)
			p = &top->policy[i];
	if (!p) {
		line(3, A_BOLD, "index %u is not there (any more)", top->follow);
		draw_samples(s, 5, top->follow);
		return;
	}
	cli_selector_text(&p->now->info, text, sizeof(text));
	line(3, A_BOLD, "%s", text);
	cli_traits_text(&p->now->info, text, sizeof(text));
	line(4, 0, "%s", text);
	cli_tmpl_text(&p->now->info, text, sizeof(text));
	line(5, 0, "%s", text);
	number_text(p->packets, packets, sizeof(packets));
	number_text(8 * p->bytes, bits, sizeof(bits));
	line(6, 0,
	     "%s packets/s, %s bit/s; %" PRIu64 " packets, %" PRIu64 " bytes, %" PRIu64 " acted on",
	     packets, bits, (uint64_t)p->now->count.packets, (uint64_t)p->now->count.bytes,
	     (uint64_t)p->now->count.acted);
	draw_past(top, 8);
	draw_samples(s, 10, top->follow);
}

static void draw(struct screen *s)
{
	erase();
	draw_head(s);
	if (s->top->follow) {
		draw_followed(s);
	} else {
		draw_list(s);
		draw_reasons(s);
	}
	if (s->typing)
		line(LINES - 1, A_BOLD, "filter: %s_", s->filter);
	else if (*s->said)
		line(LINES - 1, A_BOLD, "%s", s->said);
	else if (s->top->follow)
		line(LINES - 1, A_DIM, "Esc back  p pause  q quit");
	else
		line(LINES - 1, A_DIM,
		     "s sort  / filter  4 6 0 family  Up Down Enter follow  p pause  q quit");
	refresh();
}

static void type(struct screen *s, int key)
{
	size_t len = strlen(s->filter);

	if (key == '\n' || key == KEY_ENTER)
		s->typing = false;
	else if (key == 27)
		*s->filter = '\0', s->typing = false;
	else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && len)
		s->filter[len - 1] = '\0';
	else if (key >= ' ' && key < 127 && len + 1 < sizeof(s->filter))
		s->filter[len] = (char)key, s->filter[len + 1] = '\0';
	s->top->filter = s->filter;
}

static void follow(struct screen *s, uint32_t index)
{
	s->top->follow = index;
	s->top->pasts = 0;
}

static void press(struct screen *s, int key)
{
	struct top *top = s->top;

	switch (key) {
	case 'q':
		s->end = true;
		break;
	case 's':
		top->sort = (top->sort + 1) % TOP_SORTS;
		break;
	case '/':
		s->typing = !top->follow;
		break;
	case '4':
	case '6':
	case '0':
		top->family = (unsigned int)key - '0';
		break;
	case 'p':
		s->paused = !s->paused;
		break;
	case KEY_UP:
	case 'k':
		s->selected -= s->selected > 0;
		break;
	case KEY_DOWN:
	case 'j':
		s->selected++;
		break;
	case KEY_PPAGE:
		s->selected -=
			s->selected < (size_t)list_rows() ? s->selected : (size_t)list_rows();
		break;
	case KEY_NPAGE:
		s->selected += (size_t)list_rows();
		break;
	case '\n':
	case KEY_ENTER:
		if (s->selected < top->policies)
			follow(s, top->policy[s->selected].now->info.index);
		break;
	case 27:
		follow(s, 0);
		break;
	}
}

/* Keys until the next look is due. */
static void wait_keys(struct screen *s, uint64_t until)
{
	while (!s->end && xspd_now(CLOCK_MONOTONIC) < until) {
		int key = getch();

		s->end = s->end || top_stopped();
		if (key == ERR)
			continue;
		if (s->typing)
			type(s, key);
		else
			press(s, key);
		top_arrange(s->top);
		draw(s);
	}
}

static int turns(struct screen *s)
{
	struct top *top = s->top;

	for (uint32_t n = 0; !s->end && (!top->count || n < top->count); n++) {
		int err;

		draw(s);
		wait_keys(s, xspd_now(CLOCK_MONOTONIC) + top->interval * 1000000000ull);
		if (s->paused || s->end)
			continue;
		err = top_look(top);
		/* a daemon that is being replaced comes back */
		*s->said = '\0';
		if (err)
			snprintf(s->said, sizeof(s->said), "instance %s: %s", top->common.instance,
				 strerror(-err));
	}
	return XSPD_DONE;
}

int top_screen(struct top *top)
{
	struct screen s = {.top = top};
	SCREEN *terminal;
	int rc;

	if (cli_history_open(&s.history, top->common.instance))
		return XSPD_FAILED;
	if (top->filter)
		snprintf(s.filter, sizeof(s.filter), "%s", top->filter);
	setlocale(LC_CTYPE, "");
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal) {
		cli_history_close(&s.history);
		return cli_fail("top: terminal '%s' is not known; set TERM, or give --plain",
				getenv("TERM") ?: "");
	}
	set_escdelay(25);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	timeout(LOOK_MS);
	rc = turns(&s);
	endwin();
	delscreen(terminal);
	cli_history_close(&s.history);
	return rc;
}
