# SPDX-License-Identifier: Apache-2.0
SWIFT ?= swift
# What is formatted and checked; the other C is generated.
SWIFT_SOURCES = Package.swift Sources Tests Plugins Command Examples \
	Benchmarks/Package.swift Benchmarks/Sources Benchmarks/Tests
# The command is a package of its own. In the same scratch path as the library, and with the same
# flags, nothing of the library is built again for it. SwiftPM must not take the plan of one package,
# which it keeps there, for that of the other.
SHARED = --scratch-path .build --disable-build-manifest-caching
COMMAND = --package-path Command $(SHARED)
RELEASED = .build/release

.PHONY: all setup setup-tests build command install demo test unit-tests protocols check-protocols \
	check-generator check-vectors check-mutants check-readme check-chat docs format lint portable sanitize fuzz soak simulate \
	attacks mutants bench bench-quick bench-scale bench-codec bench-build bench-check clean

all: build

# Installs what is missing, or says how.
setup:
	@Scripts/setup.sh

# The same for the tests. What is skipped nevertheless, for want of root, of IPv6 or the like, is
# kept for the end; in CI, where the variable CI is set, it fails.
export LONGLINK_SKIPPED = $(CURDIR)/.build/skipped
setup-tests:
	@Scripts/setup.sh --tests
	@mkdir -p .build && rm -f "$(LONGLINK_SKIPPED)"

build: setup
	$(SWIFT) build $(COMMAND) --product longlink

# Builds the command for release, and leaves it at .build/longlink.
command: setup
	$(SWIFT) build $(COMMAND) --configuration release --product longlink
	install $(RELEASED)/longlink .build/longlink

# The same, and installs it into PREFIX/bin.
PREFIX ?= /usr/local
install: command
	install -d "$(PREFIX)/bin"
	install .build/longlink "$(PREFIX)/bin"

# A debug build is there soonest.
demo: build
	@.build/debug/longlink demo

test: setup-tests lint check-protocols check-vectors check-mutants unit-tests check-generator \
	check-readme check-chat
	@if [ -s "$(LONGLINK_SKIPPED)" ]; then \
	  echo 'Skipped:'; sed 's/^/  /' "$(LONGLINK_SKIPPED)"; \
	else \
	  echo 'All tests have run, and none was skipped.'; \
	fi

# The tests of the command's processes run by themselves: the library's keep every core busy.
# Only here is a warning an error: a newer compiler's must not keep anybody from building.
unit-tests: export LONGLINK_WARNINGS_AS_ERRORS = 1
unit-tests: setup-tests
	$(SWIFT) build $(SHARED) --build-tests
	$(SWIFT) test $(SHARED) --skip-build --disable-xctest
	$(SWIFT) build $(COMMAND) --build-tests
	$(SWIFT) test $(COMMAND) --skip-build --disable-xctest

# Generates the C and the Swift of the project's own .proto files.
protocols: setup
	SWIFT="$(SWIFT)" Scripts/protocols.sh

check-protocols: setup-tests
	SWIFT="$(SWIFT)" Scripts/protocols.sh --check

# Tests the generator, and that libprotobuf-c, SwiftProtobuf and Python agree.
check-generator: check-protocols
	SWIFT="$(SWIFT)" Scripts/generator.sh

check-vectors: setup-tests
	Scripts/python.sh Protocols/Vectors/generate.py --check
	Scripts/python.sh Protocols/Vectors/Dialects/generate.py --check

# Whether each mutant still applies; `make mutants` runs them.
check-mutants: setup-tests
	Scripts/mutants.sh --check

# Compiles and runs the programs that the README shows.
check-readme: export LONGLINK_WARNINGS_AS_ERRORS = 1
check-readme: setup-tests
	Scripts/readme.sh

# The example is a package of its own, as an application is, and is built as the command is.
CHAT = --package-path Examples/Chat $(SHARED)
check-chat: export LONGLINK_WARNINGS_AS_ERRORS = 1
check-chat: setup-tests
	$(SWIFT) build $(CHAT) --build-tests
	$(SWIFT) test $(CHAT) --skip-build --disable-xctest

# The documentation of each library, in .build/docs; a warning or a link that leads nowhere fails.
docs: setup-tests
	SWIFT="$(SWIFT)" Scripts/docs.sh

format:
	$(SWIFT) format format --in-place --parallel --recursive $(SWIFT_SOURCES)

lint:
	$(SWIFT) format lint --strict --parallel --recursive $(SWIFT_SOURCES)

# Tests without what is done for speed below Swift's documented rules.
portable: setup-tests
	SWIFT="$(SWIFT)" Scripts/portable.sh

# The tests of threads and of memory, in some minutes each; SUITES=all takes all, and hours.
sanitize: setup-tests
	SWIFT="$(SWIFT)" Scripts/sanitize.sh thread
	SWIFT="$(SWIFT)" Scripts/sanitize.sh address

# Each fuzzer for so many seconds, two side by side; FUZZ chooses among them.
FUZZ_SECONDS ?= 60
fuzz: setup
	SWIFT="$(SWIFT)" FUZZ_SECONDS="$(FUZZ_SECONDS)" Scripts/fuzz.sh $(FUZZ)

# Ten minutes of clients and servers under kills, freezes and partitions; SOAK adds options.
soak: setup
	$(SWIFT) build $(COMMAND) --configuration release --product longlink-soak
	$(RELEASED)/longlink-soak $(SOAK)

# Ten thousand worlds drawn from seeds, in each of which every promise has to hold.
SIMULATE ?= --seeds 0..9999
simulate: command
	.build/longlink simulate run $(SIMULATE)

# Hostile clients against a server process, and a hostile server against a client: what can they make
# it hold, compute and log? No honest request beside them may take two seconds. (`make test` runs the
# same against a debug build, without that bound.)
attacks: setup-tests command
	$(SWIFT) build $(COMMAND) --build-tests
	LONGLINK_BINARY=$(CURDIR)/.build/longlink LONGLINK_ATTACK_SECONDS=2 \
		$(SWIFT) test $(COMMAND) --skip-build --disable-xctest --filter 'AttackTests|AttackedClientTests'

# Puts one deliberate bug after the other into a copy of the sources: each has to be caught.
mutants: setup-tests
	SWIFT="$(SWIFT)" Scripts/mutants.sh

# LongLink beside a floor in C and other libraries; BENCH adds options, and GRPC=1 grpc-swift, which
# takes minutes more to build. Benchmarks/README.md tells how to read what is printed.
bench: bench-build
	Benchmarks/.build/release/bench $(if $(GRPC),--grpc GRPCPeer) $(BENCH)

bench-quick: bench-build
	Benchmarks/.build/release/bench --quick $(BENCH)

# Ten thousand idle connections, and what a request costs beside many others.
bench-scale: bench-build
	Benchmarks/.build/release/bench scale $(BENCH)

# Encoding and decoding of the same message: values over libprotobuf-c beside SwiftProtobuf's.
bench-codec: setup
	$(SWIFT) run --package-path Tests/Generator --scratch-path .build-generator-tests \
		--configuration release CodecBenchmark

# With Swift's libraries linked in, as services are delivered: all subjects alike.
bench-build: setup
	$(SWIFT) build --package-path Benchmarks --configuration release --static-swift-stdlib \
		$(if $(GRPC),--traits GRPC)

# What the benchmark's figures rest on, and what a request may cost in allocations and calls of the
# system. No time is measured.
bench-check: setup
	$(SWIFT) build --package-path Benchmarks --configuration release --build-tests
	$(SWIFT) test --package-path Benchmarks --configuration release --skip-build --disable-xctest

clean:
	rm -rf .build .build-* */.build Examples/*/.build
