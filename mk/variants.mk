# Every variant is the same tree built with other flags, in build/VARIANT. Choose one with
# "make VARIANT=asan tests". CC, CXX, CPPFLAGS, CFLAGS and LDFLAGS may be set as usual.
#
#   release   what is installed
#   scalar    release without the vector kernels; its programs run with TAMIS_ISA=scalar
#   asan      address and undefined behaviour sanitizers; any finding ends the program
#   tsan      thread sanitizer
#   strict    release with every warning an error; shares its folder, so nothing is compiled twice
#   clang     the other compiler, warnings as errors; "make check" only parses with it (make syntax)
#   fuzz      clang with libFuzzer, for tests/fuzz

VARIANT  ?= release
VARIANTS := release scalar asan tsan strict clang fuzz
ifeq ($(filter $(VARIANT),$(VARIANTS)),)
$(error unknown VARIANT "$(VARIANT)"; there are: $(VARIANTS))
endif

ifeq ($(VARIANT),strict)
override VARIANT := release
WERROR := 1
endif

# Optimisation; CFLAGS replaces it. The sanitizers need line numbers only.
OPT_release := -O2 -g
OPT_scalar  := -O2 -g
OPT_asan    := -O1 -g1
OPT_tsan    := -O1 -g1
OPT_clang   := -O2 -g
OPT_fuzz    := -O1 -g1

# What makes the variant, for compiling and linking.
SANITIZE     := -fno-omit-frame-pointer -fno-sanitize-recover=all
MODE_scalar  := -DTAMIS_SCALAR_ONLY
# Out-of-range conversions from floating point are undefined behaviour too, but have a name of their own.
UNDEFINED    := undefined,float-cast-overflow
MODE_asan    := $(SANITIZE) -fsanitize=address,$(UNDEFINED)
MODE_tsan    := $(SANITIZE) -fsanitize=thread
MODE_fuzz    := $(SANITIZE) -fsanitize=fuzzer-no-link,address,$(UNDEFINED)

# A folder that was once built with -Werror stays so: otherwise everything would be compiled again.
WERROR ?= $(if $(or $(filter clang,$(VARIANT)),$(findstring -Werror,$(file <build/$(VARIANT)/flags))),1)

# Set on the command line or in the environment, CC and CXX win.
ifeq ($(origin CC),default)
CC := $(if $(filter $(VARIANT),clang fuzz),clang,gcc)
endif
ifeq ($(origin CXX),default)
CXX := $(if $(filter $(VARIANT),clang fuzz),clang++,g++)
endif
CFLAGS ?= $(OPT_$(VARIANT))
