SWIFT ?= swift
# What is formatted and checked; the other C is generated.
SWIFT_SOURCES = Package.swift Sources Tests Plugins GeneratorChecks Examples \
	Benchmarks/Package.swift Benchmarks/Sources Benchmarks/Tests

.PHONY: all setup setup-tests build demo test unit-tests protocols check-protocols \
	check-generator check-vectors check-readme check-chat format lint sanitize fuzz soak simulate \
	mutants bench bench-quick bench-scale bench-codec bench-build bench-check clean

all: build

# Installs the libraries that are missing, or says how.
setup:
	@Scripts/setup.sh

# Installs what some tests use, where it may; they are skipped without.
setup-tests: setup
	@Scripts/setup.sh --for-tests

build: setup
	$(SWIFT) build --product longlink

# A debug build is there soonest.
demo: build
	@"$$($(SWIFT) build --show-bin-path)/longlink" demo

test: setup-tests lint check-protocols check-vectors unit-tests check-generator check-readme \
	check-chat

# The tests of real processes run by themselves: those of the library keep every core busy.
# Only here is a warning an error: a newer compiler's must not keep anybody from building.
unit-tests: export LONGLINK_WARNINGS_AS_ERRORS = 1
unit-tests: setup-tests
	$(SWIFT) build --build-tests
	$(SWIFT) test --skip-build --disable-xctest --skip LongLinkCommandTests
	$(SWIFT) test --skip-build --disable-xctest --filter LongLinkCommandTests

# Generates the C and the Swift of the project's own .proto files.
protocols: setup
	SWIFT="$(SWIFT)" Scripts/protocols.sh

check-protocols: setup
	SWIFT="$(SWIFT)" Scripts/protocols.sh --check

# Tests the generator, and that libprotobuf-c, SwiftProtobuf and Python agree.
check-generator: check-protocols
	SWIFT="$(SWIFT)" Scripts/generator.sh

check-vectors:
	@if command -v python3 >/dev/null; then \
	  python3 Protocols/Vectors/generate.py --check \
	    && python3 Protocols/Vectors/Dialects/generate.py --check; \
	else \
	  echo 'The golden frames are not compared with their generator: python3 is missing.'; \
	fi

# Compiles and runs the programs that the README shows.
check-readme: setup
	Scripts/readme.sh

# The example is a package of its own, as an application is. In the same scratch path, and with the
# same flags as the tests, nothing of the library is built again for it.
CHAT = --package-path Examples/Chat --scratch-path .build
check-chat: export LONGLINK_WARNINGS_AS_ERRORS = 1
check-chat: setup
	$(SWIFT) build $(CHAT) --build-tests
	$(SWIFT) test $(CHAT) --skip-build --disable-xctest

format:
	$(SWIFT) format format --in-place --parallel --recursive $(SWIFT_SOURCES)

lint:
	$(SWIFT) format lint --strict --parallel --recursive $(SWIFT_SOURCES)

# Each sanitizer has a build of its own.
sanitize: setup
	TSAN_OPTIONS="suppressions=$(CURDIR)/Scripts/thread-sanitizer.supp" \
		$(SWIFT) test --sanitize=thread --disable-xctest --scratch-path .build-tsan
	$(SWIFT) test --sanitize=address --disable-xctest --scratch-path .build-asan

# Each fuzzer for so many seconds, two side by side; FUZZ chooses among them.
FUZZ_SECONDS ?= 60
fuzz: setup
	SWIFT="$(SWIFT)" FUZZ_SECONDS="$(FUZZ_SECONDS)" Scripts/fuzz.sh $(FUZZ)

# Ten minutes of clients and servers under kills, freezes and partitions; SOAK adds options.
soak: setup
	$(SWIFT) build --configuration release --product longlink
	"$$($(SWIFT) build --configuration release --show-bin-path)/longlink" soak $(SOAK)

# Ten thousand worlds drawn from seeds, in each of which every promise has to hold.
SIMULATE ?= --seeds 0..9999
simulate: setup
	$(SWIFT) build --configuration release --product longlink
	"$$($(SWIFT) build --configuration release --show-bin-path)/longlink" \
		simulate run $(SIMULATE)

# Puts one deliberate bug after the other into a copy of the sources: each has to be caught.
mutants: setup
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
	$(SWIFT) run --package-path GeneratorChecks --configuration release CodecBenchmark

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
	rm -rf .build .build-tsan .build-asan .build-fuzz .build-readme .build-mutants .build-generator \
		GeneratorChecks/.build Benchmarks/.build
