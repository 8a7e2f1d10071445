# SPDX-License-Identifier: GPL-2.0-only
# make            build $(O)/xspd            make check         unit and prog tests
# make test       every test                 make check-kernel  against the running kernel's SPD
# make demo       the main job, end to end   make bench         the numbers of the README
# make check-vm   in VMs, on older kernels       make deb           the Debian package, in $(O)
# Knobs: V=1 (show commands)  O=dir (build there)  SAN=1 (ASan and UBSan)  GUESTS=1 (test: and check-vm)
#        DESTDIR= PREFIX= UNITDIR= (install)

O ?= build
PREFIX ?= /usr/local
DESTDIR ?=
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),/lib/systemd/system,$(PREFIX)/lib/systemd/system)
CC ?= cc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
VERSION := 0.1.0

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

PKGS := libbpf libmnl json-c zlib ncursesw
CFLAGS ?= -O2 -g
XCFLAGS := -std=gnu11 -Wall -Wextra -Wno-missing-field-initializers $(if $(CI),-Werror) \
	-Iinclude -Iuser -I$(O) -DXSPD_VERSION='"$(VERSION)"' -D_GNU_SOURCE -MMD -MP -pthread
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ifneq ($(SAN),)
XCFLAGS += $(SANFLAGS)
endif
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
	-D__TARGET_ARCH_x86 -Iinclude -Ivmlinux -Ibpf -MMD -MP
LDFLAGS ?=
LIBS = $(shell pkg-config --libs $(PKGS)) -lm -pthread

SRCS := $(wildcard user/*.c user/*/*.c user/*/*/*.c)
OBJS := $(SRCS:%.c=$(O)/obj/%.o)
LIB_OBJS := $(filter-out $(addprefix $(O)/obj/user/,main.o cli/% web/% daemon/run.o),$(OBJS))
# no I/O in them: built again with the sanitizers for the unit tests
PURE := $(wildcard user/spd/*.c user/nl/*.c user/tune/*.c user/lint/*.c) user/reason.c user/owner.c \
	$(wildcard user/plane/pure/*.c) \
	user/snapshot/format.c user/snapshot/state.c $(wildcard user/words/*.c user/diff/*.c)
PURE_OBJS := $(PURE:%.c=$(O)/san/%.o)

UNIT := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/*.c))
PROG := $(patsubst tests/prog/%.c,$(O)/tests/prog/%,$(wildcard tests/prog/*.c))
KERNEL := $(patsubst tests/kernel/%.c,$(O)/tests/kernel/%,$(wildcard tests/kernel/*.c))
VM := $(patsubst tests/vm/%.c,$(O)/tests/vm/%,$(wildcard tests/vm/*.c))
KERNEL_SH := $(wildcard tests/kernel/*.sh)
DIST_SH := $(wildcard tests/dist/*.sh)
FUZZ := $(patsubst tests/fuzz/%.c,$(O)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
TEST_LIB := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/lib/*.c))
# tests/kernel/lib, tests/lib: helpers shared by the tests that need the kernel
FUZZ_SECONDS ?= 20
# Debian kernels to boot, and what to run in each (tests/vm/README.md); swan needs steering, Linux 6.2
VM_KERNELS ?= 6.1 6.12
VM_JOBS ?= kernel swan esp xfrm load

.PHONY: all deps check check-unit check-prog check-fuzz check-kernel check-dist check-vm test bench demo \
	install deb clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(O)/xspd

deps:
	$(Q)dist/deps test

# --- build -------------------------------------------------------------------
# DEPS= is for who builds a package: nothing is installed then
DEPS ?= dist/deps
$(O)/.deps: dist/deps
	$(Q)mkdir -p $(O)
	$(Q)$(DEPS)
	$(Q)touch $@

TEST_SRCS := $(wildcard tests/*/*.c)
$(TEST_SRCS:%.c=$(O)/obj/%.o) $(TEST_SRCS:%.c=$(O)/san/%.o): | $(O)/.deps-test
$(O)/.deps-test: dist/deps | $(O)/.deps
	$(Q)$(DEPS) test
	$(Q)touch $@

$(O)/%.bpf.o: bpf/%.bpf.c | $(O)/.deps
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(O)/%.skel.h: $(O)/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(*F)_bpf > $@

# it has no use for some of what the headers offer
$(O)/xspd_steer.bpf.o: BPF_CFLAGS += -Wno-unused-function

$(O)/obj/%.o: %.c | $(O)/.deps $(O)/xspd.skel.h $(O)/verify.skel.h \
		$(O)/xspd_steer.skel.h $(O)/xspd_if_id.skel.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(XCFLAGS) -Itests -c $< -o $@

$(O)/xspd: $(OBJS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(XCFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# --- tests -------------------------------------------------------------------
$(O)/san/%.o: %.c | $(O)/.deps
	$(call say,SAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O1 -g $(XCFLAGS) $(SANFLAGS) -Ibpf -Ivmlinux -c $< -o $@

$(O)/tests/unit/%: $(O)/san/tests/unit/%.o $(PURE_OBJS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ -lmnl -lz -lm -lcriterion

$(O)/tests/prog/%: $(O)/obj/tests/prog/%.o $(LIB_OBJS) $(TEST_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(if $(SAN),$(SANFLAGS)) -o $@ $^ $(LIBS) -lcriterion

$(O)/tests/kernel/%: $(O)/obj/tests/kernel/%.o $(LIB_OBJS) $(TEST_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(if $(SAN),$(SANFLAGS)) -o $@ $^ $(LIBS) -lcriterion

$(O)/tests/vm/%: $(O)/obj/tests/vm/%.o $(LIB_OBJS) $(TEST_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(if $(SAN),$(SANFLAGS)) -o $@ $^ $(LIBS) -lcriterion

$(O)/tests/fuzz/%: tests/fuzz/%.c $(PURE) | $(O)/.deps-test
	$(call say,FUZZ,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -O1 -g $(filter-out -MMD -MP,$(XCFLAGS)) -Ibpf -Ivmlinux -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all -o $@ $< $(PURE) -lmnl -lz -lm

run = O=$(O) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run-checked

check: all $(UNIT) $(PROG)
	$(Q)$(run) $(UNIT) $(PROG)

check-unit: $(UNIT)
	$(Q)$(run) $(UNIT)

check-prog: all $(PROG)
	$(Q)$(run) $(PROG)

check-fuzz: $(FUZZ)
	$(Q)$(run) $(FUZZ)

check-kernel: all $(KERNEL)
	$(Q)$(run) $(KERNEL) $(KERNEL_SH)

check-dist: all | $(O)/.deps-test
	$(Q)$(run) $(DIST_SH)

test: all $(UNIT) $(PROG) $(FUZZ) $(KERNEL) $(if $(GUESTS),$(VM)) | $(O)/.deps-test
	$(Q)$(run) $(UNIT) $(PROG) $(FUZZ) $(DIST_SH) $(KERNEL) $(KERNEL_SH) $(if $(GUESTS),$(VM_ALL))

VM_ALL = $(filter-out %/swan@6.1,$(foreach j,$(VM_JOBS),$(VM_KERNELS:%=tests/vm/jobs/$(j)@%)))
check-vm: all $(PROG) $(KERNEL) $(VM) $(filter deb,$(VM_JOBS))
	$(Q)$(run) $(VM_ALL)

bench: all
	$(Q)O=$(O) tests/bench/run

demo: all
	$(Q)O=$(O) dist/demo

# --- install -----------------------------------------------------------------
install: all
	install -D -m 755 $(O)/xspd $(DESTDIR)$(PREFIX)/sbin/xspd
	for page in $(wildcard docs/*.8); do \
		install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man8/$${page##*/} || exit; done
	install -D -m 644 dist/xspd.bash-completion \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/xspd
	install -D -m 644 dist/grafana-xspd.json $(DESTDIR)$(PREFIX)/share/xspd/grafana-xspd.json
	install -d $(DESTDIR)$(UNITDIR)
	sed 's,/usr/sbin/,$(PREFIX)/sbin/,' dist/xspd.service >$(DESTDIR)$(UNITDIR)/xspd.service
	sed -e 's,/usr/sbin/,$(PREFIX)/sbin/,' -e 's,^ExecStart=.*,& --instance %i,' \
		-e 's,^Description=.*,& of namespace %I,' \
		-e 's,^\[Service\],&\nNetworkNamespacePath=/run/netns/%I,' \
		dist/xspd.service >$(DESTDIR)$(UNITDIR)/xspd@.service

# a package is built of what it needs, not of what happens to lie about
DEB_FILES := Makefile README.md LICENSE bpf include user vmlinux docs dist
deb: | $(O)/.deps-test
	$(Q)rm -rf $(O)/deb && mkdir -p $(O)/deb/xspd-$(VERSION)
	$(Q)cp -r $(DEB_FILES) $(O)/deb/xspd-$(VERSION)
	$(Q)mv $(O)/deb/xspd-$(VERSION)/dist/debian $(O)/deb/xspd-$(VERSION)/debian
	$(Q)cd $(O)/deb/xspd-$(VERSION) && env -u MAKEFLAGS -u O dpkg-buildpackage -b -us -uc >../build.log 2>&1 || \
		{ tail -20 ../build.log >&2; exit 1; }
	$(Q)ls $(O)/deb/*.deb

clean:
	rm -rf $(O)

-include $(shell find $(O) -name '*.d' 2>/dev/null)
