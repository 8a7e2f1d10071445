/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One set of maps and programs, and what user space knows of it: free slots,
 * blocks of the tuple lists, partitions.  Internal to plane/.
 */
#ifndef XSPD_PLANE_SET_H
#define XSPD_PLANE_SET_H

#include "plane/grace.h"
#include "plane/pure/class.h"
#include "plane/pure/plan.h"
#include "plane/pure/prefix.h"
#include "spd/spd.h"

#define XSPD_STORE(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)
#define XSPD_LOAD(p)	 __atomic_load_n(&(p), __ATOMIC_RELAXED) /* our own earlier store */

#define XSPD_BLOCK_CLASSES 9 /* blocks of 1, 2, 4 ... 256 list records */

struct xspd_sizes {
	uint32_t slots, buckets, lists, parts;
	uint32_t cache;	  /* flow cache entries a CPU */
	uint32_t samples; /* a second and CPU */
	bool bench;
	bool ask;
	bool steer;
};

/* A mask class in use in a partition. */
struct xspd_part_tuple {
	struct xspd_class cls;
	struct xspd_tuple rec;
};

struct xspd_partition {
	struct xspd_ifid_key key;
	uint32_t nr;
	uint32_t policies;
	uint32_t ties;
	uint32_t block; /* of the published list, 0 = none */
	uint8_t block_class;
	bool prune;  /* the tries hold its prefixes */
	bool hidden; /* being flushed: nothing is published any more */
	uint16_t count, room;
	uint32_t expected;	       /* tuples up to which no new build is worth it */
	uint32_t built;		       /* policies when the set was built */
	struct xspd_part_tuple *tuple; /* in no order; published sorted */
	uint64_t ids[XSPD_TUPLES / 64];
	struct xspd_prefixes *dst, *src;
	struct xspd_plan_class *plan; /* sorted by exact class; NULL: each class by itself */
	uint32_t planned;
	UT_hash_handle hh;
};

enum xspd_retired_kind { XSPD_RETIRED_SLOT, XSPD_RETIRED_BLOCK, XSPD_RETIRED_PART };

/* What readers may still look at; rests until its grace period is over. */
struct xspd_retired {
	uint64_t ticket;
	uint32_t nr;
	uint8_t kind;
	uint8_t block_class;
	uint16_t pad;
	uint32_t heir; /* SLOT: slot that goes on counting, 0 = none */
	uint32_t pad2;
	uint64_t packets, bytes, acted; /* SLOT with an heir: what the heir has taken over */
};

/* A growing stack or queue of numbers. */
struct xspd_stack {
	uint32_t *nr;
	uint32_t count, room;
};

struct xspd_set {
	struct xspd_bpf *skel;
	struct bpf_program *prog_in, *prog_xdp; /* of skel, those for this kernel */
	struct xspd_sizes sizes;
	uint32_t number; /* set-<number> in the pin directory */
	struct xspd_conf *conf;
	struct xspd_policy *policy;
	struct xspd_info *info;
	struct xspd_bucket *bucket;
	struct xspd_tuple *list;
	struct xspd_part *part;
	bool live; /* in service: what is freed must rest first */
	uint32_t cpus;
	struct xspd_count *scratch; /* one a CPU */

	uint32_t fresh_slot, fresh_list, fresh_part; /* never used from here on */
	uint32_t filled;			     /* fresh_slot when it was put into service */
	struct xspd_stack free_slots, free_blocks[XSPD_BLOCK_CLASSES], free_parts;
	struct xspd_retired *retired; /* ring */
	uint32_t retired_head, retired_count, retired_room;

	struct xspd_partition *fixed[XSPD_PARTS_FIXED];
	struct xspd_partition *by_ifid;	   /* uthash */
	bool steer;			   /* XSPD_STEER is kept: in fixed[], and in */
	struct xspd_steer *steers;	   /* uthash */
	struct xspd_steer_bpf *steer_skel; /* NULL: not loaded */
	uint32_t policies, tuples, parts, tries;
	uint32_t seed;
	uint32_t prune_at, coarsen_at;
};

/*
 * Load maps and programs of these sizes.  @lasting: fds of the maps that outlive the sets, in the
 * order of xspd_lasting_maps, -1: make them.  @entries: load the entry programs too.
 */
int xspd_set_new(struct xspd_set **ret, const struct xspd_sizes *sizes, const int *lasting,
		 bool entries);
int xspd_set_map_fd(const struct xspd_set *set, const char *name); /* -1: no such map */
void xspd_set_free(struct xspd_set *set);

/* Numbers, from what was freed or never used; 0 when there is none left. */
uint32_t xspd_set_slot(struct xspd_set *set);
uint32_t xspd_set_block(struct xspd_set *set, unsigned int block_class);
uint32_t xspd_set_part(struct xspd_set *set);
/* Give back: at once, or after a grace period when the set is live. */
int xspd_set_retire(struct xspd_set *set, struct xspd_grace *grace, struct xspd_retired what);
/* Reclaim what has rested. @wait: wait for the youngest of it. */
void xspd_set_reclaim(struct xspd_set *set, struct xspd_grace *grace, bool wait);

/* Memory of what is read to match: policy, bucket, list, part, ifid, tries. */
uint64_t xspd_set_match_bytes(const struct xspd_set *set);

/* Counters of a slot: sum over CPUs plus base. */
int xspd_set_count(struct xspd_set *set, uint32_t slot, struct xspd_count *ret);
/* Start the counters of a slot that is not visible yet at @from (NULL: 0). */
int xspd_set_count_start(struct xspd_set *set, uint32_t slot, const struct xspd_count *from);

/* part.c */
struct xspd_partition *xspd_partition_get(struct xspd_set *set, const struct xspd_pol *pol,
					  bool make, int *ret_err);
int xspd_partition_drop(struct xspd_set *set, struct xspd_grace *grace,
			struct xspd_partition *part);
/* Store the tuple list anew, sorted by best; no tuple: the partition is empty. */
int xspd_partition_publish(struct xspd_set *set, struct xspd_grace *grace,
			   struct xspd_partition *part);
struct xspd_part_tuple *xspd_partition_tuple(struct xspd_partition *part, uint16_t id);
/* The tuple to store @pol under, made if need be (then *ret_new). NULL with *ret_err. */
struct xspd_part_tuple *xspd_partition_pick(struct xspd_set *set, struct xspd_partition *part,
					    const struct xspd_pol *pol, bool *ret_new,
					    int *ret_err);
void xspd_partition_tuple_drop(struct xspd_set *set, struct xspd_partition *part,
			       struct xspd_part_tuple *tuple);
int xspd_partition_widen(struct xspd_set *set, struct xspd_partition *part,
			 const struct xspd_pol *pol, const struct xspd_part_tuple *tuple);

/* coarse.c: choose the classes of partitions with many, before the first policy goes in. */
int xspd_set_plan(struct xspd_set *set, struct xspd_spd *spd);

/* publish.c: -ENOSPC when a larger set is needed; nothing has changed then. */
int xspd_set_add(struct xspd_set *set, struct xspd_grace *grace, struct xspd_pol *pol,
		 const struct xspd_count *inherited);
int xspd_set_replace(struct xspd_set *set, struct xspd_grace *grace, struct xspd_pol *pol,
		     const struct xspd_pol *old);
int xspd_set_remove(struct xspd_set *set, struct xspd_grace *grace, const struct xspd_pol *old);
int xspd_set_flush(struct xspd_set *set, struct xspd_grace *grace, struct xspd_spd *spd,
		   uint8_t type);
/* @pol is about to be added: most often it goes where @like went, so fetch that bucket. */
void xspd_set_prefetch(const struct xspd_set *set, const struct xspd_pol *pol,
		       const struct xspd_pol *like);
/* Policies chained under the key of @pol in @tuple. */
unsigned int xspd_set_chain(const struct xspd_set *set, const struct xspd_pol *pol,
			    const struct xspd_tuple *tuple);

#endif
