# tamis: the front door. "make help" lists what it does.
#
# Sources are found by their folder: a new .c file needs no line here. Everything is built in
# build/VARIANT (mk/variants.mk); "make V=1" shows the commands.

SHELL := /bin/bash
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

include mk/variants.mk
B := build/$(VARIANT)

# The version is stated only in the public header: #define TAMIS_VERSION "0.1.0"
VERSION := $(firstword $(shell sed -nE 's/^\#define TAMIS_VERSION[A-Z_]* +"([0-9.]+)".*/\1/p' \
                   include/tamis.h 2>/dev/null))
ifeq ($(VERSION),)
VERSION := 0.0.0
$(if $(wildcard include/tamis.h),$(warning include/tamis.h does not define TAMIS_VERSION))
endif

shared_real   := libtamis.so.$(VERSION)
shared_soname := libtamis.so.$(firstword $(subst ., ,$(VERSION)))
carrier_real   := libtamis-carrier.so.$(VERSION)
carrier_soname := libtamis-carrier.so.$(firstword $(subst ., ,$(VERSION)))

# ---- sources ------------------------------------------------------------------------------------

carrier_src  := $(wildcard src/carrier/*.c)
lib_src      := $(filter-out $(carrier_src),$(wildcard src/*/*.c))
cli_src      := $(wildcard cli/main.c)
parts_src    := $(wildcard cli/*/*.c) $(carrier_src)
ifeq ($(VARIANT),fuzz) # the parts that read untrusted bytes
parts_src    := $(wildcard cli/ui/*.c cli/read/*.c)
endif
module_src   := $(if $(wildcard redis/module.c),$(wildcard redis/*.c))
test_src     := $(wildcard tests/*/test_*.c)
support_src  := $(wildcard tests/support/*.c) lab/common_plan.c
fuzz_support := $(filter-out tests/support/damage.c tests/support/golden.c tests/support/pieces.c tests/support/subjects.c,$(support_src)) # their checks need the harness
fuzz_src     := $(wildcard tests/fuzz/fuzz_*.c)
bench_src    := $(wildcard bench/bench_*.c)
bench_common := $(filter-out $(bench_src),$(wildcard bench/*.c))
bench_cxx    := $(wildcard bench/*.cc)
lab_common   := $(wildcard lab/common*.c)
lab_src      := $(filter-out $(lab_common),$(wildcard lab/*.c))
example_src  := $(wildcard examples/*.c)
all_src      := $(sort $(wildcard src/*/*.c cli/*.c cli/*/*.c redis/*.c tests/*/test_*.c bench/*.c lab/*.c) \
                $(support_src) $(fuzz_src) $(example_src) $(bench_cxx))

# ---- what is made -------------------------------------------------------------------------------

static   := $(B)/libtamis.a
inside   := $(B)/libinside.a
shared   := $(B)/$(shared_real)
carrier_static := $(B)/libtamis-carrier.a
carrier_shared := $(B)/$(carrier_real)
parts    := $(B)/libparts.a
cli      := $(B)/tamis
module   := $(B)/tamis.so
tests    := $(test_src:%.c=$(B)/%)
fuzzers  := $(fuzz_src:%.c=$(B)/%)
benches  := $(bench_src:%.c=$(B)/%)
labs     := $(lab_src:%.c=$(B)/%)
examples := $(example_src:%.c=$(B)/%)
examples_cxx := $(example_src:examples/%.c=$(B)/examples-c++/%)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

# ---- flags --------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wpointer-arith -Wvla
WARNINGS_C := $(WARNINGS) -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(WERROR),1)
WARNINGS += -Werror
WARNINGS_C += -Werror
endif

# The same objects go into the static library, the shared one and the module, so all are position
# independent; only what the public headers mark is visible outside.
CODEGEN := -fPIC -fvisibility=hidden -fno-semantic-interposition

# Optional parts of the command line, taken as the machine has them.
found = $(shell pkg-config --exists $(1) 2>/dev/null && echo yes)
define optional # package, NAME, library
ifeq ($$(call found,$(1)),yes)
CLI_FLAGS += -DTAMIS_HAVE_$(2)
CLI_LIBS  += -l$(3)
endif
endef
$(eval $(call optional,libisal,ISAL,isal))
$(eval $(call optional,libzstd,ZSTD,zstd))
$(eval $(call optional,liblzma,LZMA,lzma))
$(eval $(call optional,liblz4,LZ4,lz4))
$(eval $(call optional,libpcre2-8,PCRE2,pcre2-8))
# Three are loaded when they are first used (src/os/late.h): only their headers are needed here.
CLI_FLAGS += $(if $(call found,libmicrohttpd),-DTAMIS_HAVE_MICROHTTPD) $(if $(call found,libcurl),-DTAMIS_HAVE_CURL) \
             $(if $(call found,libssl),-DTAMIS_HAVE_OPENSSL)
$(eval $(call optional,hiredis,HIREDIS,hiredis))
ifneq ($(call found,hiredis),yes)
parts_src := $(filter-out src/carrier/carrier_redis.c src/carrier/redis_%,$(parts_src))
endif
ifneq ($(call found,libcurl),yes)
parts_src := $(filter-out src/carrier/carrier_http.c,$(parts_src))
endif
# Debian's libbz2 has no file for pkg-config.
ifneq ($(shell echo '_include <bzlib.h>' | tr _ '\043' | $(CC) $(CPPFLAGS) -fsyntax-only -xc - 2>/dev/null && echo yes),)
CLI_FLAGS += -DTAMIS_HAVE_BZ2
CLI_LIBS  += -lbz2
endif

LIBS := -lsodium -lm -lpthread
ifeq ($(and $(call found,libsodium),$(call found,libxxhash)),)
ifneq ($(filter-out help clean deps demo check check-long,$(or $(MAKECMDGOALS),all)),)
$(warning libsodium or libxxhash is missing: "make deps" installs what tamis needs)
endif
endif

# By the folder of a source. Examples are built as a user would build them: public headers only, ISO C.
FLAGS_src      := -std=gnu11 -Iinclude -Isrc
FLAGS_cli      := -std=gnu11 -Iinclude -Isrc -Icli $(CLI_FLAGS)
FLAGS_redis    := -std=gnu11 -Iinclude -Isrc -Iredis
FLAGS_tests    := -std=gnu11 -Iinclude -Isrc -Itests -Itests/support -Icli -Iredis -Ilab
FLAGS_bench    := -std=gnu11 -Iinclude -Isrc -Icli -Ibench
FLAGS_lab      := -std=gnu11 -Iinclude -Isrc -Ilab
FLAGS_examples := -std=c11 -pedantic -Iinclude
folder_flags    = $(FLAGS_$(firstword $(subst /, ,$<))) $(if $(filter src/carrier/%,$<),$(CLI_FLAGS))

# Further libraries of a program: LIBS_ and its path without .c.
LIBS_examples/follow = $(CARRIER_LIBS)
LIBS_tests := -Wl,--as-needed -lz
LIBS_bench := -Wl,--as-needed -lbloom -lrocksdb -lstdc++ -lz

COMPILE = $(CC) $(folder_flags) $(WARNINGS_C) $(CODEGEN) $(CPPFLAGS) $(CFLAGS) $(MODE_$(VARIANT))
COMPILE_CXX = $(CXX) -std=c++17 $(WARNINGS) -Iinclude $(CPPFLAGS) $(CFLAGS) $(MODE_$(VARIANT))
LINK    = $(CC) $(CFLAGS) $(MODE_$(VARIANT)) $(LDFLAGS)

# "make V=1" shows commands, "make -s" shows nothing.
Q := $(if $(V),,@)
quiet := $(V)$(findstring s,$(firstword -$(MAKEFLAGS)))
say = @$(if $(quiet),:,printf '%-5s %s\n' $(1) $@)

# ---- targets ------------------------------------------------------------------------------------

products := $(if $(lib_src),library) $(if $(cli_src),$(cli)) $(if $(module_src),$(module))

all: $(products) ## library, command line, Redis module (default)
library: $(static) $(shared) $(carrier_static) $(carrier_shared) ## static and shared libraries
tests: $(tests) ## the unit test programs
tests-threads: $(foreach t,$(tests),$(if $(findstring /test_threads,$(t)),$(t)))
examples: $(examples) $(examples_cxx) ## the examples, as C and as C++
fuzzers: $(fuzzers)
labs: $(labs)
everything: all tests examples $(benches) $(labs) $(call obj,$(fuzz_src)) ## all there is
syntax: $(all_src:%=$(B)/syntax/%) $(example_src:%=$(B)/syntax-c++/%) ## every source, for the compiler's warnings only

demo: ## see it work, in a minute
	@tools/deps.sh build
	@$(MAKE) --no-print-directory -s -j$$(nproc) $(cli)
	@TAMIS=$(CURDIR)/$(cli) examples/demo.sh

demo-redis: ## the module at work in a private server
	@tools/deps.sh build check
	@$(MAKE) --no-print-directory -s all
	@TAMIS_BUILD=$(CURDIR)/$(B) examples/redis.sh

# The runner builds the variants it needs; see tests/run --help.
check: ## every test; ends with "N passed, N failed"
	@tools/deps.sh build check bench || { echo "0 passed, 1 failed"; exit 1; }
	@tools/deps.sh browser || echo "make: without chromium the lab's page is not tested"
	@tests/run $(ONLY) $(MAKEOVERRIDES)

check-long: ## the same with longer runs and a new random seed
	@tools/deps.sh build check bench || { echo "0 passed, 1 failed"; exit 1; }
	@tools/deps.sh browser || echo "make: without chromium the lab's page is not tested"
	@tests/run --long $(ONLY) $(MAKEOVERRIDES)

check-servers: all ## the module's tests on other servers: SERVERS="PATH...", VALKEY_SRC=TREE to build one
	@tools/deps.sh build check
	@$(if $(VALKEY_SRC),$(MAKE) -s -C $(VALKEY_SRC)/src MALLOC=libc valkey-server >/dev/null)
	@TAMIS_BUILD=$(CURDIR)/$(B) tests/redis/servers.py $(SERVERS) \
	    $(addsuffix /src/valkey-server,$(VALKEY_SRC))

lint: ## format, cppcheck, and the rules of tools/lint.py
	@tools/deps.sh build check
	@/usr/bin/python3 tools/lint.py

format: ## apply .clang-format
	@clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h')

bench: ## measure, with peers from Debian in the same run
	@tools/deps.sh build bench
	@$(MAKE) --no-print-directory run-bench
run-bench: all $(benches)
	@if [ -x bench/run ]; then exec bench/run; fi; \
	for p in $(benches); do echo "== $$p"; $$p || exit 1; done

bench-find: ## questions of logs: tamis beside ripgrep, SQLite and DuckDB
	@tools/deps.sh build bench
	@$(MAKE) --no-print-directory all $(B)/bench/bench_logs $(B)/bench/bench_records
	@exec bench/questions.py

lab: ## repeat the experiments of the papers; LAB=full in their own sizes
	@tools/deps.sh build lab
	@$(MAKE) --no-print-directory run-lab
run-lab: all labs
	@LAB=$(LAB) lab/run $(LABFLAGS) $(ONLY)
lab-page: all labs ## remake docs/lab/index.html from a full run of what is committed
	@LAB=full lab/run --committed $(LABFLAGS) -o docs/lab/index.html

FUZZ_TIME ?= 60
fuzz: ## fuzz every target FUZZ_TIME seconds (60)
	@tools/deps.sh build check
	@$(MAKE) --no-print-directory VARIANT=fuzz run-fuzz
run-fuzz: fuzzers
	@for p in $(fuzzers); do n=$${p##*/}; echo "== $$n"; \
	    mkdir -p $(B)/corpus/$$n $(B)/found; seeds=tests/fuzz/corpus/$$n; \
	    $$p -max_total_time=$(FUZZ_TIME) -artifact_prefix=$(B)/found/$$n- -print_final_stats=1 \
	        $(B)/corpus/$$n $$([ -d $$seeds ] && echo $$seeds) || exit 1; done

deps: ## install the missing Debian packages
	@tools/deps.sh all

clean: ## remove build/
	rm -rf build

help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1 \2/p' $(MAKEFILE_LIST) | \
	    awk '{ t = $$2; $$1 = $$2 = ""; printf "  make %-12s %s\n", t, substr($$0, 3) }'
	@echo "Variants: make VARIANT=$(subst $() ,|,$(VARIANTS)) TARGET"

.PHONY: all library tests tests-threads examples fuzzers labs everything syntax demo demo-redis check check-long \
        check-servers lint \
        format bench bench-find run-bench lab run-lab lab-page fuzz run-fuzz deps clean help FORCE

# ---- rules --------------------------------------------------------------------------------------

# Two files that change only if their text does: other flags compile everything again, another set of
# sources links everything again.
flags_text   := $(CC) $(CXX) $(foreach f,src cli redis tests bench lab examples,$(FLAGS_$f)) \
                $(WARNINGS_C) $(CODEGEN) $(CPPFLAGS) $(CFLAGS) $(MODE_$(VARIANT)) $(LDFLAGS)
sources_text := $(VERSION) $(lib_src) $(parts_src) $(module_src) $(support_src) $(bench_common) $(bench_cxx) \
                $(lab_common)

ifneq ($(strip $(flags_text)),$(strip $(file <$(B)/flags)))
$(B)/flags: FORCE
endif
ifneq ($(strip $(sources_text)),$(strip $(file <$(B)/sources)))
$(B)/sources: FORCE
endif
$(B)/flags:
	$(shell mkdir -p $(@D))$(file >$@,$(flags_text))
$(B)/sources:
	$(shell mkdir -p $(@D))$(file >$@,$(sources_text))

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

# The library with its internals visible, for the programs built here.
$(inside): $(call obj,$(lib_src)) $(B)/sources
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# For users: one object whose hidden names are local, so that none clashes with a name of the program.
$(static): $(call obj,$(lib_src)) $(B)/sources
	$(call say,AR)
	$(Q)rm -f $@ && ld -r -o $(B)/obj/libtamis.o $(filter %.o,$^) && \
	    objcopy --localize-hidden $(B)/obj/libtamis.o && $(AR) rcs $@ $(B)/obj/libtamis.o

# clang leaves the symbols of its sanitizers for the program to define.
defs := $(if $(filter fuzz,$(VARIANT)),,-Wl,-z,defs)
$(shared): $(call obj,$(lib_src)) $(B)/sources
	$(call say,LINK)
	$(Q)$(LINK) -shared -Wl,-soname,$(shared_soname) $(defs) -o $@ $(filter %.o,$^) $(LIBS)
	@ln -sf $(shared_real) $(B)/$(shared_soname); ln -sf $(shared_real) $(B)/libtamis.so

# The carriers, for users. They contain their own copy of the internals in base and os; everything else they
# call is public in libtamis.
carrier_objects := $(call obj,$(filter src/carrier/%,$(parts_src)))
carrier_inside  := $(call obj,$(wildcard src/base/*.c src/os/*.c))
CARRIER_LIBS := $(filter -lhiredis -lzstd,$(CLI_LIBS))
$(carrier_static): $(carrier_objects) $(carrier_inside) $(B)/sources
	$(call say,AR)
	$(Q)rm -f $@ && ld -r -o $(B)/obj/libtamis-carrier.o $(filter %.o,$^) && \
	    objcopy --wildcard --keep-global-symbol 'tamis_following_*' $(B)/obj/libtamis-carrier.o && \
	    $(AR) rcs $@ $(B)/obj/libtamis-carrier.o

$(B)/libcarrierinside.a: $(carrier_inside) $(B)/sources
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(carrier_shared): $(carrier_objects) $(shared) $(B)/libcarrierinside.a $(B)/sources
	$(call say,LINK)
	$(Q)$(LINK) -shared -Wl,-soname,$(carrier_soname) $(defs) -Wl,--exclude-libs,ALL -o $@ \
	    $(filter %.o,$^) -L$(B) -ltamis $(B)/libcarrierinside.a $(CARRIER_LIBS) $(LIBS)
	@ln -sf $(carrier_real) $(B)/$(carrier_soname); ln -sf $(carrier_real) $(B)/libtamis-carrier.so

# The command line without main(), linked into it and into the tests.
$(parts): $(call obj,$(parts_src)) $(B)/sources
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(cli): $(call obj,$(cli_src)) $(parts) $(inside) $(B)/sources
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(parts) $(inside) $(CLI_LIBS) $(LIBS)

# The library in the module is private to it: two modules in one server must not share symbols.
$(module): $(call obj,$(module_src)) $(inside) $(B)/sources
	$(call say,LINK)
	$(Q)$(LINK) -shared -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@ $(filter %.o %.a,$^) $(LIBS)

$(B)/tests/unit/test_defrag: $(call obj,$(module_src))
$(tests): $(B)/%: $(B)/obj/%.o $(call obj,$(support_src)) $(parts) $(inside) $(B)/sources
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(parts) $(inside) $(LIBS_tests) $(CLI_LIBS) $(LIBS)

$(fuzzers): $(B)/%: $(B)/obj/%.o $(call obj,$(fuzz_support)) $(parts) $(inside) $(B)/sources
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(parts) $(inside) $(LIBS_tests) $(CLI_LIBS) $(LIBS)

$(B)/obj/%.o: %.cc $(B)/flags
	@mkdir -p $(@D)
	$(call say,C++)
	$(Q)$(COMPILE_CXX) -Isrc -Ibench -MMD -MP -c -o $@ $<

$(B)/syntax/%.c: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CHECK)
	$(Q)$(COMPILE) -fsyntax-only -MMD -MP -MF $@.d -MT $@ $< && touch $@

$(B)/syntax/%.cc: %.cc $(B)/flags
	@mkdir -p $(@D)
	$(call say,CHECK)
	$(Q)$(COMPILE_CXX) -Isrc -Ibench -fsyntax-only -MMD -MP -MF $@.d -MT $@ $< && touch $@

$(B)/syntax-c++/%: % $(B)/flags
	@mkdir -p $(@D)
	$(call say,CHECK)
	$(Q)$(COMPILE_CXX) -fsyntax-only -MMD -MP -MF $@.d -MT $@ -x c++ $< && touch $@

# The libraries that are compared with come from Debian; only programs that use one link it.
$(B)/libbench.a: $(call obj,$(bench_common)) $(bench_cxx:%.cc=$(B)/obj/%.o) $(B)/sources
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(benches): $(B)/%: $(B)/obj/%.o $(B)/libbench.a $(parts) $(inside) $(B)/sources
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(B)/libbench.a $(parts) $(inside) $(LIBS_bench) $(CLI_LIBS) $(LIBS)

$(labs): $(call obj,$(lab_common))
$(labs): $(inside)
$(B)/examples/follow: $(carrier_static)
$(examples): $(static)
$(labs) $(examples): $(B)/%: $(B)/obj/%.o $(B)/sources
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS_$*) $(LIBS)

# The headers must work in C++ too, so each example is also built as C++.
$(B)/examples-c++/%: examples/%.c $(carrier_static) $(static) $(B)/flags
	@mkdir -p $(@D)
	$(call say,C++)
	$(Q)$(COMPILE_CXX) -MMD -MP -MF $@.d -MT $@ -o $@ -x c++ $< -x none $(carrier_static) $(static) \
	    $(LDFLAGS) $(CARRIER_LIBS) $(LIBS)

.SECONDARY:
include mk/install.mk
-include $(shell find $(B) -name '*.d' 2>/dev/null)
