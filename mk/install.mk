# make install PREFIX=/usr DESTDIR=/tmp/stage

PREFIX       ?= /usr/local
BINDIR       ?= $(PREFIX)/bin
LIBDIR       ?= $(PREFIX)/lib
INCLUDEDIR   ?= $(PREFIX)/include
MANDIR       ?= $(PREFIX)/share/man
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
MODULEDIR    ?= $(LIBDIR)/redis/modules
DOCDIR       ?= $(PREFIX)/share/doc/tamis

man_pages := $(wildcard docs/man/*.1)
units     := $(wildcard packaging/tamis-update@.*)

# Each installed file as MODE:FROM:TO, so that uninstall removes what install wrote.
headers   := include/tamis.h $(wildcard include/tamis/*.h)
installed := $(foreach h,$(headers),644:$(h):$(h:include/%=$(INCLUDEDIR)/%)) \
             644:$(B)/libtamis.a:$(LIBDIR)/libtamis.a \
             755:$(B)/$(shared_real):$(LIBDIR)/$(shared_real) \
             644:$(B)/tamis.pc:$(PKGCONFIGDIR)/tamis.pc \
             $(if $(cli_src),755:$(cli):$(BINDIR)/tamis) \
             $(if $(module_src),755:$(module):$(MODULEDIR)/tamis.so) \
             $(foreach page,$(man_pages),644:$(page):$(MANDIR)/man1/$(notdir $(page))) \
             $(foreach unit,$(units),644:$(unit):$(DOCDIR)/examples/$(notdir $(unit)))
links := $(LIBDIR)/$(shared_soname) $(LIBDIR)/libtamis.so

install: all $(B)/tamis.pc ## put library, headers, program, module and manual under PREFIX
	@set -e; for entry in $(installed); do \
	    IFS=: read -r mode from to <<< "$$entry"; \
	    install -D -m "$$mode" "$$from" "$(DESTDIR)$$to"; \
	done; \
	for link in $(links); do ln -sf $(shared_real) "$(DESTDIR)$$link"; done
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@echo "installed tamis $(VERSION) in $(DESTDIR)$(PREFIX)"

uninstall: ## remove what install wrote
	@for entry in $(installed); do rm -f "$(DESTDIR)$${entry##*:}"; done
	@for link in $(links); do rm -f "$(DESTDIR)$$link"; done

# Written anew each time: its directories are arguments of this very call.
$(B)/tamis.pc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' \
	    'prefix=$(PREFIX)' \
	    'libdir=$(LIBDIR)' \
	    'includedir=$(INCLUDEDIR)' \
	    '' \
	    'Name: tamis' \
	    'Description: Bloom filters that grow, shrink, index records and replicate' \
	    'Version: $(VERSION)' \
	    'Requires.private: libsodium' \
	    'Libs: -L$${libdir} -ltamis' \
	    'Libs.private: -lm -lpthread' \
	    'Cflags: -I$${includedir}' > $@

.PHONY: install uninstall
