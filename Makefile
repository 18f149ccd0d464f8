# The commands that people and CI use. Each installs what it needs from packages/*.txt.
#
#   make demo       the main job: a real video over a satellite-like path, with auto, RCS and a fixed rate
#   make test       everything that must pass before a change lands
#   make test-python  the Python package: built, its tests, its stubs against the module, its notebooks
#   make wheel      the Python package as one file for pip, in target/wheels
#   make bench      the simulator beside ns-2 and by terminals of a satellite, a sweep beside two processes, the pacer beside clock_nanosleep,
#                   the emulator beside a plain TUN copy loop, the sender beside a raw GSO loop and with a key, repair packets' share
#                   of a core, costs per step
#   make bench-python  a controller and a part of a path in Python beside Rust, a sweep by Dask beside two threads
#   make viewers-live  a real video by auto, a fixed rate, SRT and plain RTP, beside each other on four paths, in real time
#   make reproduce  every figure of the papers, each claim checked
#   make soak       the property tests with a hundred times the cases, hours of fuzzing, a simulated day of every scheme, every
#                   fault with every controller, forged feedback, each defence taken out, 200 kills, attacks from outside, the
#                   book page by page in a browser, dependencies by deny.toml where cargo-deny is installed
#   make fingerprint  whether every result is, to the bit, the one recorded in bench/fingerprint.txt
#   make book       the book as a site, in target/book
#   make install-fsocket  FlowSocket for programs in C: libraries, header, pkg-config file, man pages (PREFIX, LIBDIR, DESTDIR)

# FAIRPACE_FUZZ_MINUTES=N: minutes that each fuzzing target gets in `make soak`, 10 if not said: three to four hours in all on two cores.
# In `make test` each target has a fixed number of cases and a fixed seed, about a minute in all.

CARGO ?= cargo
FAIRPACE_FUZZ_MINUTES ?= 10
# The crates with fuzzing targets in `tests/targets.rs`; those of `net` and `emu` are beside what they test.
FUZZED = rtp control path scenario lab media report fsocket
FAIRPACE = $(or $(CARGO_TARGET_DIR),target)/release/fairpace
# Tests of real time mostly wait: so many of a program run at a time, more than there are cores, and `scripts/tests` runs several programs.
TEST_THREADS ?= 5
# What is tested together. Another choice of crates has dependencies with other features, which are all built anew.
TESTED = --workspace --exclude fairpace-fsocket --features gst --locked

.PHONY: all build demo test test-python wheel lint bench bench-python viewers-live reproduce fingerprint soak book install-fsocket clean

all: build

packages-demo:
	@scripts/install-packages packages/demo.txt
packages-test:
	@scripts/install-packages packages/demo.txt packages/test.txt
packages-live:
	@scripts/install-packages packages/demo.txt packages/live.txt
packages-python:
	@scripts/install-packages packages/demo.txt packages/python.txt
packages-bench:
	@scripts/install-packages packages/demo.txt packages/bench.txt
.PHONY: packages-demo packages-test packages-live packages-python packages-bench

build: packages-demo
	$(CARGO) build --release --locked -p fairpace --features gst

demo: build
	$(FAIRPACE) demo --out demo-results --force
# The same path for SRT, where it is installed.
	@if command -v srt-live-transmit > /dev/null; then \
		echo; echo "SRT at 600 kbit/s over the same path:"; \
		scripts/viewers-live demo --program $(FAIRPACE) --senders srt --seeds 1 --seconds 30 --rate 600 || true; \
	fi

test: packages-test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features gst --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --no-deps --features gst --locked
	RUST_TEST_THREADS=$(TEST_THREADS) CARGO="$(CARGO)" scripts/tests $(TESTED)
# Apart: programs in C link the library as it is without GStreamer.
	RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test -p fairpace-fsocket --locked
	scripts/viewers-live --self-test

# The Python environment of the tests; nothing outside of it changes.
PYTHON ?= python3
PYTHON_ENV = target/python
$(PYTHON_ENV)/.made: packages/python-requirements.txt | packages-python
	$(PYTHON) -m venv --clear $(PYTHON_ENV)
	$(PYTHON_ENV)/bin/pip install --quiet --requirement packages/python-requirements.txt
	touch $@

# Built as the tests of `make test` are, so that most of it is there already; users' wheels are built for speed (`make wheel`).
test-python: $(PYTHON_ENV)/.made
	rm -rf target/wheels/test
	cd python && $(CURDIR)/$(PYTHON_ENV)/bin/maturin build --quiet --locked --profile dev --out $(CURDIR)/target/wheels/test
	$(PYTHON_ENV)/bin/pip install --quiet --no-deps --force-reinstall target/wheels/test/*.whl
# The command, with which the tests stream and sweep: by one of its own tests, as `make test` builds it.
	$(CARGO) test --quiet --no-run $(TESTED) --test sweep
	FAIRPACE=$(or $(CARGO_TARGET_DIR),target)/debug/fairpace $(PYTHON_ENV)/bin/pytest --quiet -c python/pyproject.toml --pyargs fairpace python/tests
	$(PYTHON_ENV)/bin/python -m mypy.stubtest --mypy-config-file python/pyproject.toml fairpace._fairpace

wheel: $(PYTHON_ENV)/.made
	cd python && $(CURDIR)/$(PYTHON_ENV)/bin/maturin build --release --locked --out $(CURDIR)/target/wheels

bench: packages-bench build
	bench/run
	bench/sweep --program $(FAIRPACE)
	$(CARGO) bench --locked -p fairpace-control -p fairpace-path
	$(CARGO) bench --locked -p fairpace-analysis --bench qos
	$(CARGO) bench --locked -p fairpace-emu --bench tun
	$(CARGO) bench --locked -p fairpace-net --bench sender
	$(CARGO) bench --locked -p fairpace-net --bench streams
	$(CARGO) bench --locked -p fairpace-rtp --bench fec
	$(CARGO) run --release --locked -p fairpace-sim --example satellite
	$(FAIRPACE) doctor

# The package as users have it, in the environment of the tests: `make test-python` puts its own build back.
bench-python: wheel build
	$(PYTHON_ENV)/bin/pip install --quiet --no-deps --force-reinstall $$(ls -t target/wheels/fairpace-*.whl | head -n 1)
	$(PYTHON_ENV)/bin/python bench/python
	$(PYTHON_ENV)/bin/python bench/dask

viewers-live: packages-live build
	scripts/viewers-live demo --program $(FAIRPACE) --rate 600 --senders auto,fixed,srt,plain,none
	scripts/viewers-live geo-bursts --program $(FAIRPACE) --rate 1400 --senders auto,fixed,srt,plain,none
	scripts/viewers-live congested --program $(FAIRPACE) --rate 450 --senders auto,fixed,srt,plain,none
	scripts/viewers-live lte --program $(FAIRPACE) --rate 800 --senders auto,fixed,srt,plain,none

reproduce: build
	$(FAIRPACE) reproduce rcs --out results/rcs --force
	$(FAIRPACE) reproduce lossy --out results/lossy --force
	$(FAIRPACE) reproduce qsd --out results/qsd --force
	$(FAIRPACE) reproduce aimd --out results/aimd --force
	$(FAIRPACE) reproduce tpba --out results/tpba --force
	$(FAIRPACE) reproduce viewers --out results/viewers --force

fingerprint: build
	scripts/fingerprint --program $(FAIRPACE)

soak: packages-test build book
	PROPTEST_CASES=100000 $(CARGO) test --release $(TESTED)
# A simulated day of every scheme, three times, and a fourth that is another each time: with the seed that is printed it is the same again.
	for seed in 1 2 3 $$(od -An -N4 -tu4 /dev/urandom); do echo "a day with FAIRPACE_DAY_SEED=$$seed"; \
		FAIRPACE_DAY=24 FAIRPACE_DAY_SEED=$$seed $(CARGO) test --release --locked -p fairpace-rtp --test day || exit 1; done
# The hostile path and the fuzzing each find the bug that is planted for them.
	$(CARGO) test --release --locked -p fairpace-rtp --features canary --test hostile --test targets
# Fuzzing: each target for so long, on all cores. What is found stays in tests/corpus of its crate.
	FAIRPACE_FUZZ_MINUTES=$(FAIRPACE_FUZZ_MINUTES) $(CARGO) test --release --locked --no-fail-fast $(FUZZED:%=-p fairpace-%) --test targets -- --nocapture
	FAIRPACE_FUZZ_MINUTES=$(FAIRPACE_FUZZ_MINUTES) $(CARGO) test --release --locked --no-fail-fast -p fairpace-net -p fairpace-emu --lib targets -- --nocapture
	FAIRPACE_FUZZ_MINUTES=$(FAIRPACE_FUZZ_MINUTES) $(CARGO) test --release --locked --no-fail-fast -p fairpace --bin fairpace targets -- --nocapture
	FAIRPACE_FAULTS=full $(CARGO) test --release --features gst --locked -p fairpace --test faults
# 56,000 forged feedback packets a second, a line of JSON for each kind of attack.
	FAIRPACE_ATTACKS=full $(CARGO) test --release --features gst --locked -p fairpace --test forged_feedback -- --nocapture
	scripts/add-controller-check
# The Python package without sockets.
	$(CARGO) check --locked -p fairpace-python --no-default-features
	scripts/defences
# What is measured outlives 200 kills; attacks from outside come to nothing.
	scripts/kills
	scripts/kills --only sweep --kills 200
	scripts/attacks
	FAIRPACE_BOOK=$(CURDIR)/target/book $(CARGO) test --locked -p fairpace-checks --test book
	scripts/deny

# Built without its web server, which brings half of the crates.
MDBOOK = 0.5.4
target/tools/mdbook-$(MDBOOK)/bin/mdbook:
	CARGO_TARGET_DIR=target/tools/build $(CARGO) install mdbook --version $(MDBOOK) --locked --quiet \
		--no-default-features --features search --root $(dir $(@D))
	rm -rf target/tools/build

book: target/tools/mdbook-$(MDBOOK)/bin/mdbook
	scripts/book $<

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
FSOCKET = crates/fsocket
# Where the libraries are that are installed; if it is given, nothing is built.
FSOCKET_FROM ?=
FSOCKET_BUILT = $(or $(FSOCKET_FROM),$(or $(CARGO_TARGET_DIR),target)/release)
# The version of the crates; the first number is the library's: it changes when programs must be compiled anew.
VERSION = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml | head -n 1)
SONAME = libfairpace_fsocket.so.$(firstword $(subst ., ,$(VERSION)))
FSOCKET_CALLS = f_socket f_socket6 f_option f_dst f_dst6 f_send f_recv f_recv_adu f_close f_strerror

install-fsocket:
ifeq ($(FSOCKET_FROM),)
	$(CARGO) build --release --locked -p fairpace-fsocket
endif
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(MANDIR)/man3
	install -m 755 $(FSOCKET_BUILT)/libfairpace_fsocket.so $(DESTDIR)$(LIBDIR)/libfairpace_fsocket.so.$(VERSION)
	ln -sf libfairpace_fsocket.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libfairpace_fsocket.so
	install -m 644 $(FSOCKET_BUILT)/libfairpace_fsocket.a $(DESTDIR)$(LIBDIR)
	install -m 644 $(FSOCKET)/include/fairpace_fsocket.h $(DESTDIR)$(PREFIX)/include
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' $(FSOCKET)/fairpace_fsocket.pc.in \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/fairpace_fsocket.pc
	install -m 644 $(FSOCKET)/man/fairpace_fsocket.3 $(DESTDIR)$(MANDIR)/man3
	for call in $(FSOCKET_CALLS); do ln -sf fairpace_fsocket.3 $(DESTDIR)$(MANDIR)/man3/$$call.3 || exit 1; done

clean:
	$(CARGO) clean
