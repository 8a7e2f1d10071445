// SPDX-License-Identifier: GPL-2.0-only
/* What walking a list of policies costs the memory of this machine, without a kernel. */
#include <sys/mman.h>

#include "bench/costs.h"
#include "util.h"

#define OBJECT 1024 /* the kernel's allocation of a policy */
#define ROUNDS 3
#define STEPS  100000u /* a round, at least once through the list */

/* The lines of a policy that a lookup reads before it goes on: link, selector, type. */
struct object {
	struct object *next;
	char pad0[120];
	uint64_t selector;
	char pad1[264];
	uint64_t type;
};

static struct object *objects_new(uint32_t count, size_t *ret_size)
{
	size_t size = (size_t)count * OBJECT;
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	/* the kernel's own memory is mapped by large pages, too */
	madvise(at, size, MADV_HUGEPAGE);
	for (uint32_t i = 0; i < count; i++)
		((struct object *)(at + (size_t)i * OBJECT))->next =
			(struct object *)(at + (size_t)((i + 1) % count) * OBJECT);
	*ret_size = size;
	return (struct object *)at;
}

static double round_ns(const struct object *object, uint32_t steps)
{
	uint64_t start = xspd_mono(), found = 0;

	for (uint32_t i = 0; i < steps; i++) {
		found += object->selector == i || object->type == i;
		object = object->next;
	}
	/* what nobody uses would be left out */
	__asm__ volatile("" : : "r"(found), "r"(object));
	return (double)(xspd_mono() - start) / steps;
}

double xspd_bench_chase(uint32_t count)
{
	uint32_t steps = (STEPS / count + 1) * count;
	double best = 0, ns;
	size_t size;
	struct object *objects = objects_new(count, &size);

	if (!objects)
		return 0;
	round_ns(objects, count); /* into the caches, as far as they go */
	for (int i = 0; i < ROUNDS; i++) {
		ns = round_ns(objects, steps);
		best = !i || ns < best ? ns : best;
	}
	munmap(objects, size);
	return best;
}
