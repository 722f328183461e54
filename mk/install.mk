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
units     := $(wildcard packaging/*.service packaging/*.socket packaging/*.timer)

# Each installed file as MODE:FROM:TO, so that uninstall removes what install wrote.
headers   := include/tamis.h $(wildcard include/tamis/*.h)
installed := $(foreach h,$(headers),644:$(h):$(h:include/%=$(INCLUDEDIR)/%)) \
             644:$(B)/libtamis.a:$(LIBDIR)/libtamis.a \
             755:$(B)/$(shared_real):$(LIBDIR)/$(shared_real) \
             644:$(carrier_static):$(LIBDIR)/libtamis-carrier.a \
             755:$(carrier_shared):$(LIBDIR)/$(carrier_real) \
             644:$(B)/tamis.pc:$(PKGCONFIGDIR)/tamis.pc \
             644:$(B)/tamis-carrier.pc:$(PKGCONFIGDIR)/tamis-carrier.pc \
             $(if $(cli_src),755:$(cli):$(BINDIR)/tamis) \
             $(if $(module_src),755:$(module):$(MODULEDIR)/tamis.so) \
             $(foreach page,$(man_pages),644:$(page):$(MANDIR)/man1/$(notdir $(page))) \
             $(foreach unit,$(units),644:$(unit):$(DOCDIR)/examples/$(notdir $(unit)))
links := $(LIBDIR)/$(shared_soname):$(shared_real) $(LIBDIR)/libtamis.so:$(shared_real) \
         $(LIBDIR)/$(carrier_soname):$(carrier_real) $(LIBDIR)/libtamis-carrier.so:$(carrier_real)

install: all $(B)/tamis.pc $(B)/tamis-carrier.pc ## put library, headers, program, module and manual under PREFIX
	@set -e; for entry in $(installed); do \
	    IFS=: read -r mode from to <<< "$$entry"; \
	    install -D -m "$$mode" "$$from" "$(DESTDIR)$$to"; \
	done; \
	for link in $(links); do ln -sf "$${link##*:}" "$(DESTDIR)$${link%:*}"; done
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@echo "installed tamis $(VERSION) in $(DESTDIR)$(PREFIX)"

uninstall: ## remove what install wrote
	@for entry in $(installed); do rm -f "$(DESTDIR)$${entry##*:}"; done
	@for link in $(links); do rm -f "$(DESTDIR)$${link%:*}"; done

# In the folders of Debian, staged, and divided into packages.
deb_libdir := /usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null)
deb: ## Debian packages, in build/deb
	@rm -rf $(B)/stage build/deb
	@$(MAKE) --no-print-directory -s install DESTDIR=$(CURDIR)/$(B)/stage PREFIX=/usr LIBDIR=$(deb_libdir) >/dev/null
	@packaging/deb.sh $(B)/stage $(deb_libdir) $(VERSION) build/deb
	@rm -rf $(B)/stage

# Written anew each time: its directories are arguments of this very call.
$(B)/tamis.pc: pc_lines = \
    'Description: Bloom filters that grow, shrink, index records and replicate' \
    'Requires.private: libsodium' \
    'Libs: -L$${libdir} -ltamis' \
    'Libs.private: -lm -lpthread'
$(B)/tamis-carrier.pc: pc_lines = \
    'Description: Follows filters over Redis Streams, shared folders and web servers' \
    'Requires: tamis = $(VERSION)' \
    'Libs: -L$${libdir} -ltamis-carrier' \
    'Libs.private: $(CARRIER_LIBS) -lpthread'
$(B)/tamis.pc $(B)/tamis-carrier.pc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$(INCLUDEDIR)' '' \
	    'Name: $(basename $(@F))' 'Version: $(VERSION)' $(pc_lines) 'Cflags: -I$${includedir}' > $@

.PHONY: install uninstall deb
