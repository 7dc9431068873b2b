# hookledger: `make` lists what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Everything that make fetches lives here; git ignores it.
CACHE := .cache

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
SBOM := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# RACE=1 or RACE=0; on by default where a C compiler is, which it needs.
RACE ?= $(if $(shell command -v gcc || command -v clang || command -v cc),1,0)
# Two packages at a time: each may run a Postgres and several brokers.
TEST_PARALLEL ?= 2
# For the slowest package, with the race detector on 2 cores.
TEST_TIMEOUT ?= 20m
# What to test, and further flags: make test PKG=./consumer/... ARGS='-run Rebalance -v'
PKG ?= ./...
ARGS ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/hookledger (needs Go only)
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X hookledger/internal/observe.Version=$(VERSION)' -o bin/hookledger .

.PHONY: run
run: build ## Build, then start everything on this machine with development settings
	@exec bin/hookledger dev $(ARGS)

.PHONY: test
test: need-test-tools kafka python ## Run all tests, against real Kafka and Postgres (RACE=0|1, PKG=, ARGS=)
	go test $(if $(filter 1,$(RACE)),-race) -p $(TEST_PARALLEL) -timeout $(TEST_TIMEOUT) $(ARGS) $(PKG)
	$(if $(filter ./...,$(PKG)),$(MAKE) test-postgres test-pooler)

# The suites whose outcome depends on Postgres, without what measures load and time, and
# the story of the promise with real processes.
CORE := ./internal/ledger/... ./ingest/payments ./consumer ./internal/verify
CORE_SKIP := HundredThousand|TenThousand|DrainsFaster|MemoryUnder|TestKafka_|Benchmark
define test_core
go test -p $(TEST_PARALLEL) -timeout $(TEST_TIMEOUT) -skip '$(CORE_SKIP)' $(ARGS) $(CORE)
	$(1) go test -timeout $(TEST_TIMEOUT) -run '^TestStory_' $(ARGS) ./internal/e2e
endef

# Another version than the newest that is installed; downloaded if it is not here.
POSTGRES ?= 18

.PHONY: test-postgres
test-postgres: need-test-tools kafka python ## Run what depends on Postgres on another version (POSTGRES=18, ARGS=)
	HOOKLEDGER_TEST_POSTGRES=$(POSTGRES) $(call test_core,HOOKLEDGER_TEST_POSTGRES=$(POSTGRES))
	HOOKLEDGER_TEST_POSTGRES=$(POSTGRES) go test -timeout $(TEST_TIMEOUT) $(ARGS) ./migrations

.PHONY: test-pooler
test-pooler: need-test-tools kafka python ## Run what depends on Postgres through PgBouncer, transaction mode (ARGS=)
	HOOKLEDGER_TEST_POOLER=transaction $(call test_core,HOOKLEDGER_TEST_POOLER=transaction)

# As many inputs, or so long, for each parser: TIME=5m. Ordinary tests run the corpora.
TIME ?= 2000x

.PHONY: fuzz
fuzz: ## Fuzz every parser on the way, one after the other (TIME=2000x or 30s, PKG=)
	@mkdir -p $(CACHE); log='$(CURDIR)/$(CACHE)/fuzz.log'; binary='$(CURDIR)/$(CACHE)/fuzz.test'; \
	for dir in $$(grep -rl '^func Fuzz' --include='*_test.go' $(patsubst %/...,%,$(PKG)) | xargs -n 1 dirname | sort -u); do \
		go test -c -fuzz . -o "$$binary" "./$$dir"; \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9]*)\(.*/\1/p' "$$dir"/*_test.go); do \
			echo "$$dir $$target"; \
			(cd "$$dir" && "$$binary" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(TIME) -test.fuzzcachedir '$(CURDIR)/$(CACHE)/fuzz/'"$$dir") >"$$log" 2>&1 || { cat "$$log"; exit 1; }; \
			grep elapsed "$$log" | tail -n 1; \
		done; \
	done

# One table on standard output, what goes on meanwhile on standard error; nothing else is
# written. make bench ONLY=apply,delay QUICK=1; FULL=1 takes an hour; OUT=F keeps the table.
.PHONY: bench
bench: need-bench-tools kafka ## Measure beside a floor and print one table (ONLY=, QUICK=1, FULL=1, OUT=, PROFILES=)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$$dir/hookledger" . && \
	CGO_ENABLED=0 go test -c -o "$$dir/bench" ./internal/bench && \
	cd internal/bench && HOOKLEDGER_TEST_BINARY="$$dir/hookledger" "$$dir/bench" -test.run '^TestTable$$' -test.timeout 3h -table \
		$(if $(ONLY),-only '$(ONLY)') $(if $(QUICK),-quick) $(if $(FULL),-full) $(if $(OUT),-out '$(abspath $(OUT))') $(if $(PROFILES),-profiles '$(abspath $(PROFILES))')

# What CHAOS_… mean is in CONTRIBUTING.md. A line for each seed, then a table.
.PHONY: chaos
chaos: need-test-tools kafka python ## Run seeds of faults against real processes (SEED=, SEEDS= or MINUTES=, TARGET=kafka|kfake, PLAN=file, VERBOSE=1)
	@CHAOS_TARGET='$(or $(TARGET),kafka)' CHAOS_SEED='$(SEED)' CHAOS_SEEDS='$(or $(SEEDS),$(if $(MINUTES),,10))' \
		CHAOS_MINUTES='$(MINUTES)' CHAOS_PLAN='$(PLAN)' CHAOS_VERBOSE='$(VERBOSE)' \
		go test -v -count 1 -timeout 0 -run '^TestSoak$$' $(ARGS) ./internal/e2e/chaos

# Each mutant is a program of its own, against real processes: half an hour.
.PHONY: mutants
mutants: need-test-tools python ## Break the program one law at a time: the chaos harness must notice (ONLY=, SEEDS=)
	MUTANTS_ONLY='$(ONLY)' MUTANTS_SEEDS='$(SEEDS)' go test -tags mutants -run TestMutants -v -count 1 -timeout 3h ./internal/e2e/mutants

.PHONY: gameday
gameday: need-test-tools kafka ## Play eight incidents on real Kafka and Postgres, by the runbook
	@go test -tags gameday -run '^TestGameDay$$' -count 1 -v -timeout 30m ./internal/e2e/gameday | grep -v '^=== '

.PHONY: lint
lint: ## Check format, go vet and golangci-lint
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run \`make fmt\`:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go run $(GOLANGCI) run --allow-parallel-runners ./...

.PHONY: sbom
sbom: ## List everything the program is made of, in bin/hookledger.cdx.json (CycloneDX)
	@mkdir -p bin
	CGO_ENABLED=0 go run $(SBOM) app -json -licenses -std -main . -output bin/hookledger.cdx.json .

# From nothing, twice, in two folders with two empty caches: minutes.
.PHONY: reproducible
reproducible: ## Build twice from nothing and compare the bytes
	@a=$$(mktemp -d); b=$$(mktemp -d); trap 'rm -rf "$$a" "$$b"' EXIT; \
	for dir in "$$a" "$$b"; do \
		mkdir "$$dir/cache" "$$dir/src"; \
		git archive HEAD | tar -x -C "$$dir/src"; \
		(cd "$$dir/src" && CGO_ENABLED=0 GOCACHE="$$dir/cache" go build -trimpath -buildvcs=false -ldflags '-s -w -X hookledger/internal/observe.Version=$(VERSION)' -o "$$dir/hookledger" .); \
	done; \
	sha256sum "$$a/hookledger" "$$b/hookledger"; \
	cmp "$$a/hookledger" "$$b/hookledger" && echo "the two builds are the same"

.PHONY: fmt
fmt: ## Format the Go files
	gofmt -w .

.PHONY: clean
clean: ## Remove what make built and fetched (not the data of `make run`)
	rm -rf bin $(CACHE)

# ---- what the tests need -------------------------------------------------

.PHONY: kafka
kafka: $(CACHE)/kafka/.complete ## Fetch Apache Kafka's jars for the tests, once

$(CACHE)/kafka/.complete: internal/testkit/kafka/pom.xml
	@command -v mvn >/dev/null || { echo "Maven fetches Apache Kafka for the tests: install the Debian package maven"; exit 1; }
	rm -rf $(@D)
	mvn --batch-mode --quiet -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory='$(CURDIR)/$(@D)'
	touch $@

# An independent second Kafka client reads our topic in a test.
.PHONY: python
python: $(CACHE)/python/.complete ## Fetch the Python client for the tests, once

$(CACHE)/python/.complete: internal/testkit/kafka/requirements.txt
	rm -rf $(@D)
	@python3 -m venv $(@D) || { echo "the Python client needs a virtual environment: install the Debian package python3-venv"; exit 1; }
	$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# What the benchmarks need of that: no second clients, no alerts, no race detector.
.PHONY: need-bench-tools
need-bench-tools:
	@missing=0; \
	need() { command -v "$$1" >/dev/null || { echo "make bench needs $$1: install the Debian package $$2"; missing=1; }; }; \
	need go "golang-go (it must be able to become the Go that go.mod names)"; \
	need java default-jre-headless; \
	need mvn maven; \
	exit $$missing

.PHONY: need-test-tools
need-test-tools:
	@missing=0; \
	need() { command -v "$$1" >/dev/null || { echo "make test needs $$1: install the Debian package $$2"; missing=1; }; }; \
	need go "golang-go (it must be able to become the Go that go.mod names)"; \
	need java default-jre-headless; \
	need mvn maven; \
	need kcat kcat; \
	need promtool prometheus; \
	PATH=$$PATH:/usr/sbin need pgbouncer pgbouncer; \
	need prometheus prometheus; \
	need python3 python3-venv; \
	need psql postgresql-client; \
	need ps procps; \
	if [ '$(RACE)' = 1 ]; then \
		command -v gcc >/dev/null || command -v clang >/dev/null || command -v cc >/dev/null || { \
			echo "the race detector needs a C compiler: install the Debian packages gcc and libc6-dev, or say RACE=0"; missing=1; }; \
	fi; \
	if command -v java >/dev/null; then \
		major=$$(java -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1); \
		if [ "$${major:-0}" -lt 17 ]; then echo "Apache Kafka needs Java 17 or newer, this is $${major:-unknown}: install the Debian package openjdk-17-jre-headless or default-jre-headless"; missing=1; fi; \
	fi; \
	exit $$missing
