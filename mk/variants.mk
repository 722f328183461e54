# Every variant is the same tree built with other flags, in build/VARIANT. Choose one with
# "make VARIANT=asan tests". CC, CXX, CPPFLAGS, CFLAGS and LDFLAGS may be set as usual.
#
#   release   what is installed
#   scalar    release without the vector kernels; its programs run with TAMIS_ISA=scalar
#   asan      address and undefined behaviour sanitizers; any finding ends the program
#   tsan      thread sanitizer
#   strict    release where every warning is an error
#   clang     the same under the other compiler
#   fuzz      clang with libFuzzer, for tests/fuzz

VARIANT  ?= release
VARIANTS := release scalar asan tsan strict clang fuzz
ifeq ($(filter $(VARIANT),$(VARIANTS)),)
$(error unknown VARIANT "$(VARIANT)"; there are: $(VARIANTS))
endif

# Optimisation, which CFLAGS replaces.
OPT_release := -O2 -g
OPT_scalar  := -O2 -g
OPT_asan    := -O1 -g
OPT_tsan    := -O1 -g
OPT_strict  := -O2 -g
OPT_clang   := -O2 -g
OPT_fuzz    := -O1 -g

# What makes the variant, for compiling and linking.
SANITIZE     := -fno-omit-frame-pointer -fno-sanitize-recover=all
MODE_scalar  := -DTAMIS_SCALAR_ONLY
# A number that does not fit the integer it becomes is undefined behaviour too, but has its own name.
UNDEFINED    := undefined,float-cast-overflow
MODE_asan    := $(SANITIZE) -fsanitize=address,$(UNDEFINED)
MODE_tsan    := $(SANITIZE) -fsanitize=thread
MODE_fuzz    := $(SANITIZE) -fsanitize=fuzzer-no-link,address,$(UNDEFINED)

ifneq ($(filter $(VARIANT),strict clang),)
WERROR := 1
endif

# Set on the command line or in the environment, CC and CXX win.
ifeq ($(origin CC),default)
CC := $(if $(filter $(VARIANT),clang fuzz),clang,gcc)
endif
ifeq ($(origin CXX),default)
CXX := $(if $(filter $(VARIANT),clang fuzz),clang++,g++)
endif
CFLAGS ?= $(OPT_$(VARIANT))
