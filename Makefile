# Omnia Sandboxes. `make demo` sets everything up and runs the main job; `make test` passes every test.
SHELL := /bin/bash
.DEFAULT_GOAL := help

DEV := go tool -modfile=hack/tools/dev/go.mod
LINT := $(DEV) golangci-lint
E2E_TIMEOUT := 20m
ISOLATION_TIMEOUT := 12m
INTEGRATION_TIMEOUT := 15m
PROPERTY_TIMEOUT := 60m
CHAOS_TIMEOUT := 20m
CHAOS_ROUND_TIMEOUT := 170m
BENCH_NODES := 10
BENCH_CONTROLLER_QPS := 500
BENCH = go run ./test/bench $(if $(ONLY),-only=$(ONLY)) $(if $(SIZES),-sizes=$(SIZES))

.PHONY: help
help: ## Show what there is to make
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.PHONY: demo
demo: ## Bring up a cluster and the server, and play an agent that gets a sandbox and calls a tool in it
	go run ./hack/demo

.PHONY: build
build: ## Build the server into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/sandbox-apiserver ./cmd/sandbox-apiserver

.PHONY: image
image: ## Build the server's image into bin/sandbox-apiserver.tar (REFERENCE=name:tag)
	go run ./hack/serverimage $(if $(REFERENCE),-reference $(REFERENCE))

.PHONY: cluster-up
cluster-up: ## Bring up the local cluster (FAKE=n: that many fake nodes, REAL=false: no real one)
	go run ./hack/cluster up --fake-nodes=$(or $(FAKE),0) --real-node=$(or $(REAL),true)

.PHONY: cluster-down
cluster-down: ## Take the local cluster down, and leave nothing of it
	go run ./hack/cluster down

.PHONY: generate
generate: ## Generate all that is made from the types
	hack/update-codegen.sh
	hack/update-docs.sh

.PHONY: test
test: verify unit integration property e2e test-isolation test-chaos ## Pass every test

.PHONY: unit
unit: ## Test the packages, each for itself
	go test ./apis/... ./cmd/... ./hack/... ./pkg/... ./registry/... ./test/bench/... ./test/framework/... ./test/images/... ./test/judge/... ./test/measure/... ./test/meter/... ./test/report/... ./test/soak/...

.PHONY: integration
integration: test-cluster ## Test the server behind a real aggregator, with fake nodes
	go test -count=1 -timeout $(INTEGRATION_TIMEOUT) -v -p=1 ./test/integration/...

.PHONY: property
property: test-cluster ## Play agents and time at random against the server (CHECKS=n worlds; SEED=n to replay)
	go test -count=1 -timeout $(PROPERTY_TIMEOUT) -v ./test/property/... $(if $(CHECKS),-rapid.checks=$(CHECKS)) $(if $(SEED),-rapid.seed=$(SEED))

.PHONY: e2e
e2e: test-cluster ## Test sandboxes in real pods, the server as people install it, and what watches over it
	go test -count=1 -timeout $(E2E_TIMEOUT) -v -p=1 ./test/e2e ./test/install/... ./test/monitoring

# Its tests mostly wait, so more of them wait beside each other than there are processors.
.PHONY: test-isolation
test-isolation: test-cluster ## Attack sandboxes in real pods from within, and print what was promised, tried and found
	go test -count=1 -timeout $(ISOLATION_TIMEOUT) -v -parallel=6 ./test/e2e/isolation

.PHONY: test-chaos
test-chaos: test-cluster ## Break the servers and what they stand on while agents work, each fault that takes seconds once
	go test -count=1 -timeout $(CHAOS_TIMEOUT) -v ./test/chaos

.PHONY: chaos
chaos: test-cluster ## The same with every fault (ROUNDS=n times), and print what each cost: long
	go test -count=1 -timeout $(CHAOS_ROUND_TIMEOUT) -v ./test/chaos -rounds=$(or $(ROUNDS),1)

.PHONY: soak
soak: REAL := false
soak: ## Play a steady load for an hour on servers that end and come back, and judge what grows (DURATION=1h; SEED=n to replay)
	$(call alone,go run ./test/soak $(if $(DURATION),-duration=$(DURATION)) $(if $(SEED),-seed=$(SEED)))

.PHONY: bench
bench: ## Measure how fast and how large, each beside its floor (ONLY=scenario,scenario; SIZES=100,1000; REAL=false: fake nodes alone)
	$(call alone,$(BENCH))

.PHONY: bench-full
bench-full: ## The same with more turns and up to 5,000 claims: long
	$(call alone,$(BENCH) -full)

# A cluster of its own, and nothing of it left: what thousands of claims leave behind would slow whatever comes next.
# kube-controller-manager's default of 20 requests a second would be all that is measured.
define alone
go run ./hack/cluster down
go run ./hack/cluster up --fake-nodes=$(BENCH_NODES) --real-node=$(or $(REAL),true) --controller-qps=$(BENCH_CONTROLLER_QPS)
$(1); status=$$?; go run ./hack/cluster down && exit $$status
endef

.PHONY: test-cluster
test-cluster:
	go run ./hack/cluster up --fake-nodes=2

.PHONY: verify
verify: verify-format verify-vet verify-tidy verify-generated verify-docs verify-lint ## Check format, vet, lint, and that generated files are up to date

.PHONY: verify-format
verify-format:
	@out=$$(gofmt -l apis cmd hack pkg registry test); test -z "$$out" || { echo "not formatted (run gofmt -w):"; echo "$$out"; exit 1; }

.PHONY: verify-vet
verify-vet:
	go vet ./...
	go -C hack/tools/promql vet ./...

.PHONY: verify-tidy
verify-tidy:
	@go mod tidy -diff || { echo "go.mod is not tidy: run go mod tidy"; exit 1; }

.PHONY: verify-generated
verify-generated:
	hack/verify-codegen.sh

.PHONY: verify-docs
verify-docs:
	hack/verify-docs.sh

.PHONY: verify-lint
verify-lint:
	$(LINT) run
