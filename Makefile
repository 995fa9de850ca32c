# make help lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

BIN := .bin
PACKAGES := ./...
MODULE := github.com/dpareto/dpareto
# Packages whose goroutines share memory are tested with the race detector, which watches all that
# they import but UNWATCHED: numerics, which tests of their own watch where they share memory, and functions
# of the standard library without state. The others compute, or serve one request at a time through packages that
# are watched by their own tests: there it finds nothing and costs four to eight times the time.
RACE = $(filter-out $(addprefix $(MODULE)/server/,accounting analysis expression list publish/ledger publish/private simulation \
	spec specchange web web/choose web/statement web/trials),$(shell go list ./server/...)) \
	$(addprefix $(MODULE)/,clients/go clients/go/agent clients/go/trainer/internal/parallel \
	cmd/internal/child cmd/internal/console cmd/dpareto/internal/agent cmd/dpareto/internal/serve)
# Tests of watched packages that run without the detector: long ones that make one request at a time; and those that
# damage pages of bbolt, whose slices then lie beyond the file. The program recovers from such a fault, but not where
# the detector reads the address.
ALONE = Damage|^Test(SecretsOf.*|SubsetKeyIsSecret|RandomRequests|HostileRequests|ImportMutants)$$
STATELESS = $(foreach p,math regexp regexp/syntax,-gcflags=$(p)=-race=false)
# checkptr finds the same fault in bbolt, where other tests damage pages.
UNWATCHED = $(foreach p,gonum.org/v1/gonum/... $(MODULE)/privacy/... $(MODULE)/surrogate,-gcflags=$(p)=-race=false) $(STATELESS) -gcflags=go.etcd.io/bbolt/...=-d=checkptr=0
# Tests of numerics that share memory between goroutines, and the packages that have such.
SHARING = Concurrent|Workers
SHARED = $(shell grep -rlE '^func Test\w*($(SHARING))' --include='*_test.go' ./privacy ./surrogate | xargs dirname | sort -u)
# What takes longest begins first, so that no processor waits for it at the end.
SLOWEST = $(addprefix $(MODULE)/,privacy privacy/tuning cmd/dpareto)
# The version of programs and packages, and the commit that programs name with it.
VERSION := $(shell cat cmd/internal/command/VERSION)
COMMIT ?= $(shell git describe --always --abbrev=12 --exclude '*' --dirty=.dirty)
# Tests and linters compile as programs are built, so that it is done once; the race detector needs C.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath
WATCHED := CGO_ENABLED=1 go test -race
# The same sources, commit and Go give the same bytes, wherever they are: no C, no paths, no state of git.
BUILD = CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(STRIP) -X $(MODULE)/cmd/internal/command.commit=$(COMMIT)'
# Extra arguments of make demo, for example DEMO="--study svt --seed 3".
DEMO ?=
# The designers that make bench-engine compares.
DESIGNERS ?= random,nsga2,dpareto,ehvi,default
# The interpreter that tests of the Python client take, 3.10 or later, and its packages.
PYTHON ?= python3
VENV := $(BIN)/venv
DOCS := $(BIN)/venv-docs
# What the contract is compared with by make breaking.
AGAINST ?= .git\#branch=main

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: build
build: ## Build the programs into .bin/dpareto and .bin/dpareto-lab
	$(BUILD) -o $(BIN)/ ./cmd/dpareto ./cmd/dpareto-lab

.PHONY: reproducible
reproducible: ## Build the last commit twice, in two folders and without a cache, and compare the bytes
	rm -rf $(BIN)/again && mkdir -p $(BIN)/again/one $(BIN)/again/another/folder
	for folder in one another/folder; do \
		git archive HEAD | tar -x -C $(BIN)/again/$$folder; \
		(cd $(BIN)/again/$$folder && GOCACHE=$$PWD/.cache $(BUILD) -o dpareto ./cmd/dpareto); \
	done
	cd $(BIN)/again && sha256sum one/dpareto another/folder/dpareto && cmp one/dpareto another/folder/dpareto
	rm -rf $(BIN)/again

.PHONY: image
image: build ## Build the image dpareto:VERSION from the program alone (docker)
	rm -rf $(BIN)/image && mkdir -p $(BIN)/image/program/usr/local/bin $(BIN)/image/state
	mkdir -m 700 $(BIN)/image/state/data $(BIN)/image/state/tmp
	cp $(BIN)/dpareto $(BIN)/image/program/usr/local/bin/
	cp LICENSE $(BIN)/image/program/
	go run ./internal/notices ./cmd/dpareto > $(BIN)/image/program/THIRD_PARTY_NOTICES.txt
	docker build --file deploy/docker/Dockerfile --tag dpareto:$(VERSION) $(BIN)/image

.PHONY: sbom
sbom: build $(BIN)/cyclonedx-gomod ## Write the list of what dpareto is made of to .bin/dpareto.cdx.json (CycloneDX)
	$(BIN)/cyclonedx-gomod bin -json -std -noserial -notimestamp -version $(VERSION)+$(COMMIT) -output $(BIN)/dpareto.cdx.json $(BIN)/dpareto

.PHONY: vulnerabilities
vulnerabilities: $(BIN)/govulncheck ## Look for known vulnerabilities that are reached; needs the network
	@$(BIN)/govulncheck $(PACKAGES) || { status=$$?; \
		if [ $$status -ne 3 ]; then echo 'NOT CHECKED: govulncheck could not run; is its database, https://vuln.go.dev, reachable?' >&2; fi; exit $$status; }

.PHONY: demo
demo: build ## Run a real study: a server, two agents, and the front that they find
	$(BIN)/dpareto demo $(DEMO)

.PHONY: test
test: check lint unit test-postgres test-deploy test-python test-wheel ## Everything that must pass: checks, linters, tests

# Tests run without go vet: make lint runs its analyzers, and more, over the same files.
.PHONY: unit
unit: export RAPID_SEED := $(or $(RAPID_SEED),1)
unit: $(BIN)/axe.min.js ## Run the tests; properties draw from RAPID_SEED, 0 for other inputs at every run
	$(WATCHED) -vet=off $(UNWATCHED) -skip '$(ALONE)' -timeout 60m $(RACE)
	go test -vet=off -run '$(ALONE)' -timeout 60m ./server ./server/store/... ./server/maintenance
	$(WATCHED) -vet=off $(STATELESS) -run '$(SHARING)' $(SHARED)
	go test -vet=off -timeout 60m -run Audit ./server/publish/release
	go test -vet=off -timeout 60m $(SLOWEST) $(filter-out $(RACE),$(shell go list $(PACKAGES)))

# Tests that make test-postgres runs again: what services like ours are known to get wrong, failing stores,
# repeated and late calls, leases, exports and imports, backups, watches; and SIGKILL at any moment.
SERVER_ON_POSTGRES = TestNumbersDoNotRace TestWorkersGetDifferentPoints TestClockJumps TestFrontOfWhatSucceeded \
	TestNothingIsStoppedByChance TestNotFound TestFaultyStore TestUnwritableStore TestReleasesOnAFailingStore \
	TestReleaseWithoutAnswer TestRequestIDs TestRequestIDAtTheSameTime TestRequestIDOfDemand TestRequestIDOfFailedCall \
	TestBackupStore TestExportImport TestExportReleases TestImportHalf TestImportMany TestImportsOfOneUID TestWatchStudy TestWatchMany \
	TestWatchEnds TestUpdateStudy TestPauseAndResume TestLeaseExpiry TestCompleteIsIdempotentAndNeverOverwrites \
	TestLateResultHasItsOwnCurve TestPastAttempts TestLedgerChargesEveryRun TestOpenTrialsAreBounded TestBytesOfAStudyAreBounded \
	TestSuggestionsAreDeterministic TestReplicasSuggestDifferentPoints TestReplicasWatch TestReplicasForget TestReplicasAnswerAlike \
	TestReplicasLeases TestReplicasDuration TestReplicasTakeOver TestReplicasImport
PROGRAM_ON_POSTGRES = TestEndToEnd TestServerKilled TestKilledWhileReleasing TestReplicasKilled
empty :=
space := $(empty) $(empty)

.PHONY: test-postgres
test-postgres: export DPARETO_TEST_STORE := postgres
test-postgres: ## Run the tests of the store, and of what one and several servers promise of it, on PostgreSQL (three minutes)
	go test -vet=off -timeout 60m ./server/store
	go test -vet=off -timeout 60m -run '^($(subst $(space),|,$(strip $(SERVER_ON_POSTGRES))))$$' $(addprefix ./server/,. study transfer spending publish/release)
	go test -vet=off -timeout 60m -run '^($(subst $(space),|,$(strip $(PROGRAM_ON_POSTGRES))))$$' ./cmd/dpareto
	go test -vet=off -timeout 60m -run '^TestGoClient$$' ./clients/contract

# The types of Kubernetes are many and run for a second: compiling them without optimization takes half the time.
PLAINLY = $(foreach p,k8s.io/... sigs.k8s.io/... github.com/...,-gcflags=$(p)=-N)

.PHONY: test-deploy
test-deploy: build ## Check deploy/ with the types of Kubernetes and Compose, and start the program with its settings
	cd tools/deploy && go vet $(PLAINLY) ./... && DPARETO_BINARY=$(CURDIR)/$(BIN)/dpareto go test -vet=off $(PLAINLY) -count 1 ./...

.PHONY: test-python
test-python: build $(VENV)/ready ## Check and test the Python client against the server
	cd clients/python && ../../$(VENV)/bin/ruff check && ../../$(VENV)/bin/ruff format --check && ../../$(VENV)/bin/mypy
	cd clients/python && DPARETO_BINARY=$(CURDIR)/$(BIN)/dpareto ../../$(VENV)/bin/pytest $(PYTEST)

.PHONY: test-python-long
test-python-long: build $(VENV)/ready ## Hammer a server that restarts every minute from 64 processes, run the notebook (15 minutes)
	cd clients/python && DPARETO_BINARY=$(CURDIR)/$(BIN)/dpareto ../../$(VENV)/bin/pytest -m long $(PYTEST)

# What wheels have the program for, and pip's names of these platforms. The program needs no C library,
# so that every Linux will do; Go 1.26 needs macOS 12.
WHEELS := linux-amd64 linux-arm64 darwin-amd64 darwin-arm64 windows-amd64
PLATFORM_linux-amd64 := manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64
PLATFORM_linux-arm64 := manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64
PLATFORM_darwin-amd64 := macosx_12_0_x86_64
PLATFORM_darwin-arm64 := macosx_12_0_arm64
PLATFORM_windows-amd64 := win_amd64
HOST = $(shell go env GOOS)-$(shell go env GOARCH)
TEST_WHEEL = cd clients/python && DPFRONT_WHEELS=$(CURDIR)/$(BIN)/wheels ../../$(VENV)/bin/pytest --capture=no tests/test_wheel.py

.PHONY: wheels
wheels: $(addprefix wheel-,$(WHEELS)) ## Build the Python package with the program, for all platforms, into .bin/wheels, and inspect it
	$(TEST_WHEEL) -k inspect

wheel-%: STRIP := -s -w
wheel-%: $(VENV)/ready
	rm -rf $(BIN)/program/$* $(BIN)/wheels/*-$(PLATFORM_$*).whl && mkdir -p $(BIN)/program/$*
	go build -o $(BIN)/notices ./internal/notices
	export GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)); \
		$(BUILD) -o $(BIN)/program/$*/ ./cmd/dpareto && $(BIN)/notices ./cmd/dpareto > $(BIN)/program/$*/THIRD_PARTY_NOTICES.txt
	DPFRONT_PROGRAM=$(CURDIR)/$(BIN)/program/$* DPFRONT_PLATFORM=$(PLATFORM_$*) \
		$(VENV)/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir $(BIN)/wheels ./clients/python

.PHONY: test-wheel
test-wheel: ## Build the wheel of this platform, install it without Go and without the sources, and time its first example; needs the network
	$(MAKE) wheel-$(HOST)
	$(TEST_WHEEL)

# What make release makes: what a tag publishes.
RELEASE := $(BIN)/release
# Archives and packages carry the time of the commit.
EPOCH = $(shell git log -1 --format=%ct)
TAR = tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(EPOCH)

.PHONY: release
release: sbom $(BIN)/nfpm ## Build what a tag publishes into .bin/release: wheels, sources, archives, packages, checksums
	rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	$(MAKE) wheels $(addprefix archive-,$(WHEELS)) package-amd64 package-arm64
	cp $(BIN)/wheels/dpfront-$(VERSION)-*.whl $(BIN)/dpareto.cdx.json $(RELEASE)/
	cd clients/python && SOURCE_DATE_EPOCH=$(EPOCH) ../../$(VENV)/bin/hatchling build --target sdist --directory $(CURDIR)/$(RELEASE)
	sed -e 's/@VERSION@/$(VERSION)/' $(foreach p,darwin-arm64 darwin-amd64 linux-arm64 linux-amd64,\
		-e "s/@$(p)@/$$(sha256sum $(RELEASE)/dpareto-$(VERSION)-$(p).tar.gz | cut -d' ' -f1)/") deploy/homebrew/dpareto.rb > $(RELEASE)/dpareto.rb
	cd $(RELEASE) && sha256sum * > SHA256SUMS
	ls -l $(RELEASE)

# The program of a platform, its licences and the README.
archive-%: wheel-%
	cp LICENSE README.md $(BIN)/program/$*/
	rm -f $(RELEASE)/dpareto-$(VERSION)-$*.*
	if [ -e $(BIN)/program/$*/dpareto.exe ]; then \
		touch --date=@$(EPOCH) $(BIN)/program/$*/* && cd $(BIN)/program/$* && $(CURDIR)/$(VENV)/bin/python -m zipfile -c $(CURDIR)/$(RELEASE)/dpareto-$(VERSION)-$*.zip *; \
	else $(TAR) -C $(BIN)/program/$* -c dpareto LICENSE README.md THIRD_PARTY_NOTICES.txt | gzip -n > $(RELEASE)/dpareto-$(VERSION)-$*.tar.gz; fi

# .deb and .rpm, where the program is /usr/bin/dpareto.
package-%: wheel-linux-% $(BIN)/nfpm build
	sed 's,/usr/local/bin/,/usr/bin/,' deploy/systemd/dpareto.service > $(BIN)/program/linux-$*/dpareto.service
	$(BIN)/dpareto completion bash > $(BIN)/program/linux-$*/completion.bash
	export VERSION=$(VERSION) ARCH=$* PROGRAM=$(BIN)/program/linux-$* SOURCE_DATE_EPOCH=$(EPOCH); \
		for kind in deb rpm; do $(BIN)/nfpm package --config deploy/packages/nfpm.yaml --packager $$kind --target $(RELEASE)/; done

.PHONY: test-release
test-release: ## Check what make release has built: checksums, packages, and installation of a tagged version by Go and pip
	cd $(RELEASE) && sha256sum --check --quiet SHA256SUMS
	tools/release/test $(CURDIR)/$(RELEASE) $(CURDIR)/$(VENV)/bin/python

.PHONY: test-pythons
test-pythons: build $(VENV)/ready ## Test the Python client under every Python that is found, with pandas 2 and 3, Optuna 4 and 5; needs the network
	$(MAKE) wheel-$(HOST)
	$(VENV)/bin/python clients/python/tools/test_pythons.py

.PHONY: docs
docs: export NO_MKDOCS_2_WARNING := 1
docs: build $(DOCS)/ready ## Build the site of docs/ into .bin/site, with the reference of commands, methods and Python
	$(DOCS)/bin/mkdocs build --strict --quiet

# Frameworks that the Python package works with, each in an environment of its own. PyPI's torch
# for Linux, which the first four and synthetic need, brings CUDA: some 5 GB each.
FRAMEWORKS := opacus lightning huggingface opake sklearn jax keras flower synthetic
FRAMEWORK_TESTS = tests/frameworks/test_$*.py
test-framework-opacus: FRAMEWORK_TESTS = tests/test_frameworks.py
test-framework-synthetic: FRAMEWORK_TESTS =
IN_FRAMEWORK = cd clients/python && DPARETO_BINARY=$(CURDIR)/$(BIN)/dpareto OMP_NUM_THREADS=1 ../../$(BIN)/venv-$(1)/bin

.PHONY: test-frameworks
test-frameworks: $(addprefix test-framework-,$(FRAMEWORKS)) ## Test against the real frameworks, installed one by one; CUDA comes with torch; needs the network

test-framework-%: build $(BIN)/venv-%/ready
	$(call IN_FRAMEWORK,$*)/pytest -m frameworks -k 'not test_recipes or $*' $(FRAMEWORK_TESTS) tests/frameworks/test_recipes.py $(PYTEST)

.PHONY: test-ray
test-ray: build $(BIN)/venv-trackers/ready ## Test against a real Ray cluster, whose workers and drivers are killed, Dask, submitit, MLflow, W&B and TensorBoard; 1 GB
	cd clients/python && DPARETO_BINARY=$(CURDIR)/$(BIN)/dpareto RAY_TRIALS=200 ../../$(BIN)/venv-trackers/bin/pytest -m ray -rA tests/test_ray.py tests/test_clusters.py tests/test_trackers.py $(PYTEST)

.PHONY: record-frameworks
record-frameworks: build $(BIN)/venv-opacus/ready ## Record what Opacus does, for make test
	$(call IN_FRAMEWORK,opacus)/python -W ignore -m tests.opacus_examples

.PHONY: generate-python
generate-python: $(VENV)/ready ## Generate the Python code from proto/, and the blocking client
	$(VENV)/bin/python clients/python/tools/generate.py

.PHONY: quality
quality: ## Measure the quality of fronts over several seeds (about half an hour)
	go test -tags long -timeout 90m -run FrontQuality -v ./cmd/dpareto

.PHONY: test-long
test-long: ## Run all tests with the repetitions that make test leaves out, and soak (hours)
	go test -tags long -timeout 90m $(filter-out $(MODULE)/cmd/dpareto,$(shell go list $(PACKAGES)))
	$(MAKE) quality soak

.PHONY: test-clients
test-clients: ## Build and run the examples of docs/reference/clients.md, and kill their server (minutes; npm, Maven, cargo, C++)
	go test -tags long -timeout 90m -count 1 -run '^TestExamples' -v ./cmd/dpareto

.PHONY: bench
bench: ## Run the benchmarks; compare two runs with benchstat
	go test -run '^$$' -bench . -benchmem -count 6 $(PACKAGES)

.PHONY: soak
soak: ## Kill the server under load 60 times, twice, and compare what is left (about four minutes)
	go test -tags long -timeout 30m -run TestKilledOften -v ./cmd/dpareto $(if $(SEED),-args -kill-seed $(SEED))
	go test -tags long -timeout 10m -run BetweenRestarts ./clients/contract

# Kills of make soak-postgres; every fifth is of the database.
ROUNDS ?= 250

.PHONY: soak-postgres
soak-postgres: export DPARETO_TEST_STORE := postgres
soak-postgres: ## Kill three servers and their database under load, ROUNDS times, then promote a standby 20 times (half an hour)
	go test -timeout 3h -count 1 -run '^TestReplicasKilled$$' -v ./cmd/dpareto -args -kill-rounds $(ROUNDS) -kill-seed $(or $(SEED),1)
	go test -timeout 1h -count 1 -run '^TestReplicasPromoted$$' -v ./cmd/dpareto -args -promotions 20 -kill-seed $(or $(SEED),1)

# The histories of make simulate: so many, from consecutive seeds.
N ?= 100000

.PHONY: simulate
simulate: ## Run N histories of a simulated server from SEED on (half an hour for 100,000)
	GOGC=400 go test -timeout 5h -count 1 -run '^TestHistories$$' -v ./server/simulation -args -histories $(N) -seed $(or $(SEED),1)

.PHONY: simulate-faults
simulate-faults: ## Put faults into the server, one by one, and find each by its histories (minutes)
	go test -tags long -timeout 60m -count 1 -run '^TestFaultsAreFound$$' -v ./server/simulation

.PHONY: bench-server
bench-server: build ## Measure the server under load, small and large, and beside a study that fits a model
	$(BIN)/dpareto-lab bench server --repeat 3
	$(BIN)/dpareto-lab bench server --studies 1000 --preload 1000000 --repeat 3
	$(BIN)/dpareto-lab bench server --studies 8 --workers 16 --rate 100 --slow-fit --duration 6s --warmup 1s --repeat 15

.PHONY: bench-engine
bench-engine: build ## Compare designers on test problems, the sparse vector technique and Adult (hours)
	for problem in branin_currin zdt1 zdt2 zdt3 dtlz2 vehicle_safety dh1; do \
		$(BIN)/dpareto-lab bench engine --problem $$problem --designer $(DESIGNERS) --budget 50 --at 20,30,40 --output markdown; \
	done
	$(BIN)/dpareto-lab bench engine --problem noisy_branin_currin --designer $(DESIGNERS) --initial 6 --batch 4 --budget 86 --at 46 --output markdown
	$(BIN)/dpareto-lab bench engine --problem svt --designer $(DESIGNERS) --budget 128 --at 32,64 --output markdown
	$(BIN)/dpareto-lab bench engine --problem adult --designer $(DESIGNERS) --budget 80 --at 32 --remeasure 10 --target 8.365 --output markdown
	$(BIN)/dpareto-lab bench engine --problem adult --designer dpareto --final-only --budget 272 --at 32,80 --remeasure 10 --output markdown

# optuna-dashboard, which bench-page compares the page with.
DASHBOARD := $(BIN)/venv-dashboard

.PHONY: bench-page
bench-page: $(BIN)/dashboard.db ## Measure the page at 100 to 100,000 trials, beside optuna-dashboard (minutes; needs Chromium)
	DPARETO_OPTUNA_DASHBOARD=$(CURDIR)/$(DASHBOARD) DPARETO_OPTUNA_STUDY=$(CURDIR)/$(BIN)/dashboard.db \
		go test -tags long -timeout 30m -count 1 -run '^TestPageSpeed$$' -v ./cmd/dpareto

# Where Adult is, in the folder adult; without it agents download it.
DATA ?= $(HOME)/.cache/dpareto

.PHONY: page-pictures
page-pictures: ## Make the pictures of the page in docs/images (a minute; needs Chromium)
	DPARETO_PAGE_PICTURES=$(CURDIR)/docs/images DPARETO_PAGE_DATA=$(DATA) \
		go test -tags long -count 1 -run '^TestPagePictures$$' ./cmd/dpareto

$(BIN)/dashboard.db: clients/python/benchmarks/optuna_dashboard_study.py
	rm -rf $(DASHBOARD) $@
	$(PYTHON) -m venv $(DASHBOARD)
	$(DASHBOARD)/bin/pip install --quiet --disable-pip-version-check optuna==5.0.0 optuna-dashboard==0.21.0
	$(DASHBOARD)/bin/python $< sqlite:///$(CURDIR)/$@.part 10000 && mv $@.part $@

# One experiment of cmd/dpareto-lab/notes/engine.md: five seeds, 32 and 80 runs, fresh runs of the front. The target is what the 3^5 grid has.
ADULT = $(BIN)/dpareto-lab bench engine --budget 80 --at 32 --remeasure 10 --target 8.365 --output markdown

.PHONY: bench-ablation
bench-ablation: build ## Tell what each part of the engine is worth on Adult (half an hour)
	$(ADULT) --problem adult_linear --designer dpareto --final-only
	$(ADULT) --problem adult --designer dpareto,ehvi,ehvi_exact,default --final-only
	$(ADULT) --problem adult --designer random,default
	$(ADULT) --problem adult --designer default --own-initial
	$(ADULT) --problem adult --designer default --own-initial --epoch-cost
	$(ADULT) --problem adult_uniform --designer default --own-initial

.PHONY: reproduce
reproduce: build ## Recompute the tables and figures of papers, the figures into .bin/figures; without data what needs none (minutes)
	$(BIN)/dpareto-lab reproduce dpareto --quick --plot $(BIN)/figures
	$(BIN)/dpareto-lab reproduce fast-estimation --plot $(BIN)/figures
	$(BIN)/dpareto-lab reproduce propose-test --adult --plot $(BIN)/figures
	$(BIN)/dpareto-lab reproduce dp-bayesian-optimization --plot $(BIN)/figures
	$(BIN)/dpareto-lab reproduce private-front --plot $(BIN)/figures

.PHONY: fuzz
fuzz: ## Run every fuzz target for 30 seconds
	@grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do \
		for target in $$(grep -oE '^func Fuzz[A-Za-z0-9_]*' "$$file" | cut -d' ' -f2); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime 30s -fuzzminimizetime 10x "./$$(dirname "$$file")"; \
		done; \
	done

.PHONY: lint
lint: $(BIN)/buf $(BIN)/golangci-lint ## Run the linters
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	GOGC=400 $(BIN)/golangci-lint run # a third less time, for 3 GB

.PHONY: breaking
breaking: $(BIN)/buf ## Check that the contract breaks no client of AGAINST
	$(BIN)/buf breaking --against '$(AGAINST)'

.PHONY: generate
generate: $(BIN)/buf $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc $(BIN)/protoc-gen-grpc-gateway $(BIN)/protoc-gen-openapiv2 ## Generate gen/ from proto/ and gateway.yaml
	rm -rf gen/dpareto gen/gateway gen/openapi/*.json
	$(BIN)/buf generate

.PHONY: check
check: generate ## Check that generated code, modules and formatting are up to date, and the words of the documents
	@test -z "$$(git status --porcelain gen)" || { git status --short gen; echo 'gen/ is stale: run make generate and commit it'; exit 1; }
	go mod tidy -diff
	cd tools/deploy && go mod tidy -diff
	@unformatted="$$(gofmt -l $$(git ls-files '*.go' ':!gen'))"; \
		test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	go test -vet=off ./cmd/dpareto/internal/cli -run TestPlainWords

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN)

$(VENV)/ready: clients/python/pyproject.toml clients/python/constraints.txt cmd/internal/command/VERSION
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=clients/python/constraints.txt $(VENV)/bin/pip install --quiet --disable-pip-version-check --editable 'clients/python[dev]'
	touch $@

.PRECIOUS: $(BIN)/venv-%/ready
$(BIN)/venv-%/ready: clients/python/pyproject.toml
	rm -rf $(BIN)/venv-$*
	$(PYTHON) -m venv $(BIN)/venv-$*
	$(BIN)/venv-$*/bin/pip install --quiet --disable-pip-version-check pytest --editable 'clients/python[matplotlib,$*]'
	touch $@

$(DOCS)/ready: tools/site/requirements.txt
	rm -rf $(DOCS)
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# What tests of the page look for barriers with, as published on npm.
AXE := 4.14.1
AXE_SHA256 := e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745

$(BIN)/axe.min.js: Makefile
	mkdir -p $(BIN)
	curl --fail --silent --show-error --location --retry 3 --output $(BIN)/axe-core.tgz https://registry.npmjs.org/axe-core/-/axe-core-$(AXE).tgz
	echo '$(AXE_SHA256)  $(BIN)/axe-core.tgz' | sha256sum --check --quiet
	tar -xzf $(BIN)/axe-core.tgz -C $(BIN) --strip-components 1 package/axe.min.js
	touch $@

# Tools are built at pinned versions from modules of their own.

$(BIN)/buf: tools/go.mod tools/go.sum
	cd tools && go build -o ../$@ github.com/bufbuild/buf/cmd/buf

$(BIN)/protoc-gen-go: tools/go.mod tools/go.sum
	cd tools && go build -o ../$@ google.golang.org/protobuf/cmd/protoc-gen-go

$(BIN)/protoc-gen-go-grpc: tools/go.mod tools/go.sum
	cd tools && go build -o ../$@ google.golang.org/grpc/cmd/protoc-gen-go-grpc

$(BIN)/protoc-gen-grpc-gateway: tools/go.mod tools/go.sum
	cd tools && go build -o ../$@ github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway

$(BIN)/protoc-gen-openapiv2: tools/go.mod tools/go.sum
	cd tools && go build -o ../$@ github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-openapiv2

$(BIN)/govulncheck: tools/security/go.mod tools/security/go.sum
	cd tools/security && go build -o ../../$@ golang.org/x/vuln/cmd/govulncheck

$(BIN)/cyclonedx-gomod: tools/security/go.mod tools/security/go.sum
	cd tools/security && go build -o ../../$@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

$(BIN)/nfpm: tools/release/go.mod tools/release/go.sum
	cd tools/release && go build -o ../../$@ github.com/goreleaser/nfpm/v2/cmd/nfpm

$(BIN)/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	cd tools/lint && go build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
