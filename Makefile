# SPDX-License-Identifier: Apache-2.0
SWIFT ?= swift
# The Swift files to format and check.
SWIFT_SOURCES = Package.swift Sources Tests Plugins Command Examples \
	Benchmarks/Package.swift Benchmarks/Sources Benchmarks/Tests Benchmarks/HTTP Benchmarks/SQLite
# The command is a separate package. It uses the scratch path and the flags of the library, so that the
# library is not built twice. SwiftPM must not cache the build manifest there, because it would take that
# of one package for that of the other.
SCRATCH = .build
SHARED = --scratch-path $(SCRATCH) --disable-build-manifest-caching
COMMAND = --package-path Command $(SHARED)
# What is released has HTTP, which takes as long to build as all the rest, SQLite and the port for operators;
# what is built for a first look has not.
TRAITS = --traits SQLite,HTTP,Operations
RELEASED = $(SCRATCH)/release
# SwiftPM lists traits in an order that differs from run to run, and a build with another order compiles
# everything anew. Without random hashes it is that of TRAITS, which is also that of the command's build. Builds
# alone have this: tests keep their random hashes.
BUILD = SWIFT_DETERMINISTIC_HASHING=1 $(SWIFT) build

.PHONY: all setup setup-tests setup-check build command install demo test check check-style check-http check-sqlite \
	check-operations check-openssl check-command check-processes check-generator check-readme check-chat check-feed check-payments check-hub \
	check-mutants check-image protocols docs format portable sanitize sanitize-thread sanitize-address fuzz soak simulate \
	attacks mutants bench bench-quick bench-scale bench-idle bench-codec bench-readers bench-uploads bench-once bench-http bench-tls bench-build bench-check clean

all: build

# Installs missing programs and libraries, or prints the command that does.
setup:
	@Scripts/setup.sh

# The same for the tests.
setup-tests:
	@Scripts/setup.sh --tests

# The same for all checks.
setup-check:
	@Scripts/setup.sh --check

# Tests that are skipped nevertheless, without root or IPv6 for instance, are listed at the end; in CI, where
# the variable CI is set, they fail.
export LONGLINK_SKIPPED ?= $(CURDIR)/.build/skipped

build: setup
	$(BUILD) $(COMMAND) --product longlink

# Builds the command for release, and copies it to .build/longlink.
command: setup
	$(BUILD) $(COMMAND) $(TRAITS) --configuration release --product longlink
	@mkdir -p .build
	install $(RELEASED)/longlink .build/longlink

# The same, and installs it into PREFIX/bin.
PREFIX ?= /usr/local
install: command
	install -d "$(PREFIX)/bin"
	install .build/longlink "$(PREFIX)/bin"

# A debug build takes the least time.
demo: build
	@.build/debug/longlink demo

# Warnings are errors only in checks: the warnings of a newer compiler must not break users' builds.
test check-http check-sqlite check-operations check-openssl check-command check-processes check-readme check-chat \
	check-feed check-payments check-hub docs: \
	export LONGLINK_WARNINGS_AS_ERRORS = 1
TEST = $(SWIFT) test $(SHARED) --skip-build --disable-xctest

# All tests of the library, except those of HTTP and of SQLite.
test: setup-tests
	@mkdir -p .build && rm -f "$(LONGLINK_SKIPPED)"
	$(BUILD) $(SHARED) --build-tests
	$(TEST)
	@Scripts/skip.sh --report

# Everything else that can be checked within minutes, step by step: Scripts/check.sh lists the steps.
check:
	@Scripts/check.sh

# The form of the sources, the vectors, and that each mutant still applies; `make mutants` runs them.
check-style: setup-tests check-mutants
	$(SWIFT) format lint --strict --parallel --recursive $(SWIFT_SOURCES)
	Scripts/python.sh Protocols/Vectors/generate.py --check
	Scripts/python.sh Protocols/Vectors/Dialects/generate.py --check
	Scripts/python.sh Protocols/Vectors/Uploads/generate.py --check

check-mutants: setup-tests
	Scripts/mutants.sh --check

# With these traits everything is compiled anew, so only the tests that these three steps run.
check-http check-sqlite check-openssl: \
	export LONGLINK_TESTS = LongLinkHTTPTests LongLinkOnceSQLiteTests LongLinkTLSTests
check-http: setup-tests
	$(BUILD) $(SHARED) $(TRAITS) --build-tests
	$(TEST) $(TRAITS) --filter '^LongLinkHTTPTests[.]'

# The tests of the store of records in an SQLite file, and of the example that has its tables there.
check-sqlite: setup-tests
	$(BUILD) $(SHARED) $(TRAITS) --build-tests
	$(TEST) $(TRAITS) --filter '^LongLinkOnceSQLiteTests[.]'

# The tests of what operates services, and of the example. `make check` gives them a SCRATCH of their own.
OPERATIONS = --traits Operations
SERVICE = --package-path Examples/Service $(SHARED)
check-operations: export LONGLINK_TESTS = LongLinkOperationsTests LongLinkObservabilityTests LongLinkOpsTests \
	LongLinkRecordingTests
check-operations: setup-check
	$(BUILD) $(SHARED) $(OPERATIONS) --build-tests
	$(TEST) $(OPERATIONS) --filter '^LongLink(Operations|Observability|Ops)Tests[.]'
	# Apart, since they keep the processors busy, and those above have time-outs in real time.
	$(TEST) $(OPERATIONS) --filter '^LongLinkRecordingTests[.]'
	$(BUILD) $(SERVICE) --build-tests
	$(SWIFT) test $(SERVICE) --skip-build --disable-xctest

# Builds the image of Examples/Deployment without a container engine, and tries it; needs root, debootstrap and some
# minutes.
check-image:
	Scripts/image.py

# The tests of TLS with a newer OpenSSL than the system's, which is fetched. FILTER selects tests.
check-openssl: setup-tests
	SWIFT="$(SWIFT)" Scripts/openssl.sh $(FILTER)

# The tests of the command. Those that judge how processes behave in real time run one by one in a step of
# their own.
PROCESSES = '^LongLinkCommandTests[.](AttackTests|AttackedClientTests|CredentialProcessTests|FreezeTests|HandshakeAttackTests|PacketLossTests|RelayTests|SoakTests|StreamAttackTests|UploadAttackTests|UploadKillTests)/'
check-command: setup-check
	$(BUILD) $(COMMAND) $(TRAITS) --build-tests
	$(SWIFT) test $(COMMAND) $(TRAITS) --skip-build --disable-xctest --skip $(PROCESSES)

check-processes: setup-tests
	$(BUILD) $(COMMAND) $(TRAITS) --build-tests
	$(SWIFT) test $(COMMAND) $(TRAITS) --skip-build --disable-xctest --no-parallel --filter $(PROCESSES)

# Generates C and Swift from the project's own .proto files.
protocols: setup
	SWIFT="$(SWIFT)" Scripts/protocols.sh

# Tests the generator, that what it generated here is committed, and that libprotobuf-c, SwiftProtobuf and
# Python agree.
check-generator: setup-tests
	SWIFT="$(SWIFT)" Scripts/protocols.sh --check
	SWIFT="$(SWIFT)" Scripts/generator.sh

# Compiles and runs the program in the README, and compares its hub with the one that `check-hub` runs.
check-readme: setup-tests
	Scripts/readme.sh

# The example is a separate package, like an application, and is built like the command.
CHAT = --package-path Examples/Chat $(SHARED)
check-chat: setup-tests
	$(BUILD) $(CHAT) --build-tests
	$(SWIFT) test $(CHAT) --skip-build --disable-xctest

# The same; it uses HTTP, as the unit tests do, so that the library is not built again.
FEED = --package-path Examples/Feed $(SHARED)
check-feed: setup-tests
	$(BUILD) $(FEED) --build-tests
	$(SWIFT) test $(FEED) --skip-build --disable-xctest

# Builds the example of payments, and kills its server.
check-payments: setup-tests
	SWIFT="$(SWIFT)" Scripts/payments.sh

# Builds the smallest examples, runs their clients with their servers, and the tests of Hub.
check-hub: setup-tests
	SWIFT="$(SWIFT)" Scripts/hub.sh

# The documentation of each library, in .build/docs. A warning or a broken link fails.
docs: setup-tests
	SWIFT="$(SWIFT)" Scripts/docs.sh

format:
	$(SWIFT) format format --in-place --parallel --recursive $(SWIFT_SOURCES)

# Tests without the optimizations that use more than Swift's documented features.
portable: setup-tests
	SWIFT="$(SWIFT)" Scripts/portable.sh

# The tests of threads and of memory, a few minutes each; SUITES=all runs all tests, for hours. SUITES
# names test targets, and FILTER selects tests of them: SUITES=LongLinkTLSTests FILTER=UnopenedTests
# make sanitize-thread. Each runs its tests one by one, so that both together take no longer than the
# slower one.
sanitize: setup-tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target sanitize-thread sanitize-address

sanitize-thread sanitize-address:
	SWIFT="$(SWIFT)" Scripts/sanitize.sh $(@:sanitize-%=%)

# Runs each fuzzer for FUZZ_SECONDS, two at a time; FUZZ names the fuzzers to run.
FUZZ_SECONDS ?= 60
fuzz: setup
	SWIFT="$(SWIFT)" FUZZ_SECONDS="$(FUZZ_SECONDS)" Scripts/fuzz.sh $(FUZZ)

# Clients and servers under kills, freezes and partitions for ten minutes, with payments that run once over
# SQLite files; SOAK adds options.
soak: setup
	$(BUILD) $(COMMAND) $(TRAITS) --configuration release --product longlink-soak
	$(RELEASED)/longlink-soak $(SOAK)

# Twelve thousand scenarios generated from seeds; every promise must hold in each.
SIMULATE ?= --seeds 0..9999
SIMULATE_ONCE ?= --seeds 0..1999 --profile once
simulate: command
	.build/longlink simulate run $(SIMULATE)
	.build/longlink simulate run $(SIMULATE_ONCE)

# Hostile clients against a server process, and a hostile server against a client: how much memory, time
# and log can they cost it? No request of an honest client may take two seconds meanwhile. (`make test`
# runs the same against a debug build, without that bound.)
attacks: setup-tests command
	$(BUILD) $(COMMAND) $(TRAITS) --build-tests
	LONGLINK_BINARY=$(CURDIR)/.build/longlink LONGLINK_ATTACK_SECONDS=2 \
		$(SWIFT) test $(COMMAND) $(TRAITS) --skip-build --disable-xctest --filter 'AttackTests|AttackedClientTests'

# Puts one deliberate bug after another into a copy of the sources: each must be caught.
mutants: setup-tests
	SWIFT="$(SWIFT)" Scripts/mutants.sh

# Compares LongLink with a minimal program in C and with other libraries. BENCH adds options. GRPC=1 adds
# grpc-swift, which takes some minutes more to build. Benchmarks/README.md explains the output.
bench: bench-build
	Benchmarks/.build/release/bench $(if $(GRPC),--grpc GRPCPeer) $(BENCH)

bench-quick: bench-build
	Benchmarks/.build/release/bench --quick $(BENCH)

# Ten thousand idle connections, and the cost of a request among many connections.
bench-scale: bench-build
	Benchmarks/.build/release/bench scale $(BENCH)

# The memory of idle connections beside nats-server, mosquitto and redis-server. IDLE adds options.
bench-idle: setup
	$(BUILD) --package-path Benchmarks --configuration release --static-swift-stdlib \
		--product LongLinkPeer
	Benchmarks/Scripts/idle.py $(IDLE)

# Encoding and decoding of the same message: types over libprotobuf-c compared with SwiftProtobuf's.
bench-codec: protocols
	$(SWIFT) run --package-path Tests/Generator --scratch-path .build-generator-tests \
		--configuration release CodecBenchmark

# Reading of documents, compared with bare expat and with memchr. BENCH adds options.
bench-readers: setup
	$(BUILD) --package-path Benchmarks --configuration release --static-swift-stdlib \
		--product ReadersBench
	Benchmarks/.build/release/ReadersBench $(BENCH)

# Uploads beside a C program that does the same, and the memory of both sides. MIB is the file's size.
bench-uploads: command
	Benchmarks/Scripts/uploads.sh rate
	Benchmarks/Scripts/uploads.sh memory

# Records of requests that run once in an SQLite file, beside a C program that writes the same rows.
# ROUNDS: how many.
bench-once: setup
	SWIFT="$(SWIFT)" Benchmarks/Scripts/once.sh $(ROUNDS)

# HTTPService beside async-http-client alone, against one nginx. BENCH adds options.
bench-http: setup-tests
	SWIFT="$(SWIFT)" Benchmarks/Scripts/http.sh $(BENCH)

# TLS beside plain connections, and full handshakes beside OpenSSL's own server. ROUNDS: how many.
bench-tls: setup
	$(BUILD) --package-path Benchmarks --configuration release --static-swift-stdlib \
		--product LongLinkPeer
	Benchmarks/Scripts/tls.sh $(ROUNDS)

# Links Swift's libraries statically, as services are deployed; the same for all subjects.
bench-build: setup
	$(BUILD) --package-path Benchmarks --configuration release --static-swift-stdlib \
		$(if $(GRPC),--traits GRPC)

# Tests the benchmark itself, and the number of allocations and system calls that a request may cost.
# Measures no times.
bench-check: setup
	$(BUILD) --package-path Benchmarks $(SHARED) --configuration release --build-tests
	$(SWIFT) test --package-path Benchmarks $(SHARED) --configuration release --skip-build --disable-xctest

clean:
	rm -rf .build .build-* */.build Examples/*/.build
