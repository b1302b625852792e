SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VERSION := 0.2.0
IMAGE := docker.io/albertofaria/pav:$(VERSION)

# What is compiled once a machine and not once a checkout: the cluster's programs and the tools.
CACHE := $(or $(PAV_CLUSTER_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pav-cluster)
export PAV_CLUSTER_CACHE := $(CACHE)

# No path of a checkout is compiled in: two builds of a commit are equal, and what one checkout compiled serves another.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

CLUSTER := bin/cluster
GO_MODULES := . hack/image test/cluster test/commands test/conformance test/reference/check-jsonschema test/reference/cosi-sidecar test/reference/lib-bucket-provisioner
GO_FILES := $(shell find cmd internal jinja -name '*.go')

GO_BUILD := CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'

.PHONY: help
help: ## Show this text
	@grep -hE '^[a-zA-Z_-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

##@ Build

.PHONY: build
build: bin/pav bin/kubectl-pav $(CLUSTER) ## Build the programs into bin/

bin/pav: $(GO_FILES) go.mod go.sum
	$(GO_BUILD) -o $@ ./cmd/pav

bin/kubectl-pav: $(GO_FILES) go.mod go.sum
	$(GO_BUILD) -o $@ ./cmd/kubectl-pav

PREFIX ?= /usr/local

.PHONY: install-plugin
install-plugin: bin/kubectl-pav ## Install the plugin, "kubectl pav": make install-plugin PREFIX=~/.local
	install -D bin/kubectl-pav $(PREFIX)/bin/kubectl-pav
	install -D cmd/kubectl-pav/kubectl_complete-pav $(PREFIX)/bin/kubectl_complete-pav

$(CLUSTER): $(shell find test/cluster hack/image -type f)
	cd test/cluster && CGO_ENABLED=0 go build -o ../../$@ .

bin/pav-image: $(shell find hack/image -type f)
	CGO_ENABLED=0 go -C hack/image build -o ../../$@ .

# The commit and its time, which are labels of the image. Set them if this is no Git checkout.
REVISION ?= $(shell git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null || echo unknown)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
MAKE_IMAGE = bin/pav-image -name $(IMAGE) -version $(VERSION) -revision $(REVISION) -created $(SOURCE_DATE_EPOCH)

# The same image, but only for this machine.
bin/pav.tar: bin/pav bin/pav-image LICENSE
	$(MAKE_IMAGE) -out $@ bin/pav

.PHONY: image
image: bin/image/checksums.txt ## Make the image for amd64 and arm64 in bin/image, and push it: make image PUSH=1 IMAGE=registry.example/pav:0.2.0
	@echo "$(IMAGE)@$$(cat bin/image/digest)"

# Go knows what is up to date, which depends on the version, too.
.PHONY: always
bin/image/pav-linux-%: always
	GOOS=linux GOARCH=$* $(GO_BUILD) -o $@ ./cmd/pav

# For example bin/image/kubectl-pav-darwin-arm64.
bin/image/kubectl-pav-%: always
	GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) $(GO_BUILD) -o $@ ./cmd/kubectl-pav

PROGRAMS := bin/image/pav-linux-amd64 bin/image/pav-linux-arm64

bin/image/pav.oci.tar: $(PROGRAMS) bin/pav-image
	$(MAKE_IMAGE) $(if $(PUSH),-push) -out $@ $(PROGRAMS) >bin/image/digest

bin/image/deployment.yaml: bin/image/pav.oci.tar bin/helm
	deploy/render $(IMAGE) "$$(cat bin/image/digest)" >$@

bin/image/deployment-buckets.yaml: deployment-buckets.yaml
	cp $< $@

bin/image/checksums.txt: bin/image/pav.oci.tar bin/image/deployment.yaml bin/image/deployment-buckets.yaml $(wildcard bin/image/kubectl-pav-*)
	cd bin/image && sha256sum pav.oci.tar deployment.yaml deployment-buckets.yaml $$(shopt -s nullglob; echo kubectl-pav-*) >checksums.txt

.PHONY: generate
generate: deployment.yaml deployment-buckets.yaml docs/reference.md docs/pictures ## Generate CRDs, deep copies, manifests, the reference and pictures

.PHONY: crds
crds: bin/controller-gen
	bin/controller-gen object crd paths=./internal/api/v1alpha1 output:crd:dir=deploy/chart/definitions
	bin/controller-gen object crd paths=./internal/api/objectbucket/v1alpha1 output:crd:dir=deploy/foreign/objectbucket
	bin/controller-gen object crd paths=./internal/api/cosi/v1alpha1 output:crd:dir=deploy/foreign/cosi
	bin/controller-gen object crd paths=./internal/api/cosi/v1alpha2 output:crd:dir=test/integration/testdata/cosi-v1alpha2
	bin/controller-gen object crd paths=./internal/api/cosi/proposal output:crd:dir=deploy/cosi-proposal

.PHONY: docs/reference.md
docs/reference.md: crds
	go run ./hack/docgen

# Those of terminals; the others are drawn by hand.
.PHONY: docs/pictures
docs/pictures:
	go run ./hack/pictures

deployment.yaml: crds bin/helm
	deploy/render $(IMAGE) $(DIGEST) >$@.new
	mv $@.new $@

deployment-buckets.yaml: $(wildcard deploy/chart/templates/*-buckets.yaml) deploy/chart/Chart.yaml deploy/chart/values.yaml deploy/render bin/helm
	deploy/render --buckets >$@.new
	mv $@.new $@

bin/helm: test/tools/helm/go.mod
	CGO_ENABLED=0 go -C test/tools/helm build -ldflags '-s -w' -o ../../../$@ helm.sh/helm/v4/cmd/helm

bin/controller-gen: test/tools/controller-gen/go.mod
	go -C test/tools/controller-gen build -o ../../../$@ sigs.k8s.io/controller-tools/cmd/controller-gen

bin/golangci-lint: test/tools/golangci-lint/go.mod
	go -C test/tools/golangci-lint build -o ../../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# What the examples' tests load into the cluster: the image of examples/Containerfile, an S3 server, and clients for it.
EXAMPLE_IMAGES := bin/example-tools.tar bin/versitygw.tar bin/s3-tools.tar

bin/example-tools.tar: $(CLUSTER)
	$(CLUSTER) image examples $@

bin/versitygw: test/tools/versitygw/go.mod
	CGO_ENABLED=0 go -C test/tools/versitygw build -ldflags '-s -w' -o ../../../$@ github.com/versity/versitygw/cmd/versitygw

bin/versitygw.tar: bin/versitygw $(CLUSTER)
	$(CLUSTER) image --ref docker.io/versity/versitygw:v1.8.0 --ref localhost/versitygw:1.8.0 --binary bin/versitygw --entrypoint /usr/local/bin/versitygw $@

bin/s3-tools.tar: test/objectstore/s3.sh $(CLUSTER)
	$(CLUSTER) image s3 $< $@

# What others wrote for the protocols of buckets, which the tests compare PaV with.
REFERENCE := bin/lib-bucket-provisioner bin/cosi-driver bin/objectstorage-sidecar bin/check-jsonschema
REFERENCE_BUILD = CGO_ENABLED=0 go -C test/reference/$(1) build -ldflags '-s -w' -o ../../../$@

bin/lib-bucket-provisioner: $(wildcard test/reference/lib-bucket-provisioner/*)
	$(call REFERENCE_BUILD,lib-bucket-provisioner) .

bin/cosi-driver: $(wildcard test/reference/cosi-sidecar/go.* test/reference/cosi-sidecar/cosi-driver/*)
	$(call REFERENCE_BUILD,cosi-sidecar) ./cosi-driver

bin/objectstorage-sidecar: $(wildcard test/reference/cosi-sidecar/go.*)
	$(call REFERENCE_BUILD,cosi-sidecar) sigs.k8s.io/container-object-storage-interface-provisioner-sidecar/cmd/objectstorage-sidecar

bin/check-jsonschema: $(wildcard test/reference/check-jsonschema/*)
	$(call REFERENCE_BUILD,check-jsonschema) .

# Kubernetes' external-storage suite, the program that runs it, and the images that it needs.
SUITE := bin/conformance.test bin/ginkgo bin/conformance-report bin/suite-agnhost.tar bin/suite-gnu.tar bin/suite-shell.tar bin/hello-populator.tar

bin/conformance.test: test/conformance/go.mod $(wildcard test/conformance/suite/*.go)
	CGO_ENABLED=0 go -C test/conformance test -c -ldflags '-s -w' -o ../../$@ ./suite

bin/ginkgo: test/conformance/go.mod
	CGO_ENABLED=0 go -C test/conformance build -o ../../$@ github.com/onsi/ginkgo/v2/ginkgo

bin/conformance-report: test/conformance/go.mod $(shell find test/conformance/report test/conformance/internal -name '*.go')
	CGO_ENABLED=0 go -C test/conformance build -o ../../$@ ./report

bin/suite-agnhost.tar bin/suite-gnu.tar bin/suite-shell.tar &: $(CLUSTER)
	$(CLUSTER) image suite bin/suite-agnhost.tar bin/suite-gnu.tar bin/suite-shell.tar

bin/hello-populator: test/conformance/go.mod $(wildcard test/conformance/populator/*.go)
	CGO_ENABLED=0 go -C test/conformance build -ldflags '-s -w' -o ../../$@ ./populator

bin/hello-populator.tar: bin/hello-populator $(CLUSTER)
	$(CLUSTER) image --ref registry.k8s.io/sig-storage/hello-populator:v1.0.1 --binary bin/hello-populator --entrypoint /populator $@

##@ See it work

.PHONY: demo
demo: $(CLUSTER) bin/pav.tar ## Boot a cluster, install PaV, and read a PaV volume
	@test/demo/run $(CLUSTER) bin/pav.tar

.PHONY: demo-down
demo-down: $(CLUSTER) ## Take the demo's cluster away
	@$(CLUSTER) down

.PHONY: transcripts
transcripts: $(CLUSTER) bin/kubectl-pav ## Write docs/transcripts.md on the demo's cluster: run 'make demo' first
	@test/demo/transcripts $(CLUSTER) docs/transcripts.md
	@$(MAKE) docs/pictures

.PHONY: kubectl
kubectl: $(CLUSTER) bin/kubectl-pav ## Run kubectl in the demo's cluster: make kubectl ARGS="get pods -A"
	@PATH="$(CURDIR)/bin:$$PATH" $(CLUSTER) exec --network-only -- kubectl $(ARGS)

.PHONY: demo-shell
demo-shell: $(CLUSTER) bin/kubectl-pav ## Open a shell in which kubectl and its plugin use the demo's cluster
	@PATH="$(CURDIR)/bin:$$PATH" $(CLUSTER) exec --network-only -- bash || true

.PHONY: demo-images
demo-images: $(CLUSTER) $(EXAMPLE_IMAGES) ## Load the images that the examples need into the demo's cluster
	$(CLUSTER) load $(EXAMPLE_IMAGES)

##@ Check

# What runs side by side often waits: the end-to-end tests and the storage suite on two clusters, and the integration tests with two
# API servers, or one on a slow machine: with four, leases end as none of them answers in time. The storage suite takes half the
# processes there. The end-to-end tests alone leave a third of two cores idle.
comma := ,
SLOW = $(eval SLOW := $(shell test/parts/slow))$(SLOW)# measured once, before the tests
SIDE_BY_SIDE = test-e2e+test-e2e-alone,test-conformance+test-integration-node,test-integration-controller-2$(if \
	$(SLOW),$(comma),+)test-integration-controller-1,test-simulation

# Three processes, each with an API server of its own.
INTEGRATION := test-integration-node test-integration-controller-1 test-integration-controller-2

# There is more memory than time, so what checks the tests, compiles them and runs them collects garbage less often. The test clusters
# do so by themselves.
test test-long test-race lint compile test-unit test-simulation $(INTEGRATION): export GOGC := 300

.PHONY: test
test: ## Run every test that a change must pass, and print how long each part took
	@$(if $(SLOW),PROCS=4 )test/parts/run test packages verify lint test-unit compile $(SIDE_BY_SIDE)

.PHONY: packages
packages: $(CLUSTER) ## Install the Debian packages that the tests take, where they are missing
	$(CLUSTER) packages

.PHONY: compile
compile: $(CLUSTER) bin/pav.tar bin/kubectl-pav bin/helm bin/integration.test bin/e2e.test $(EXAMPLE_IMAGES) $(REFERENCE) $(SUITE) ## Compile Kubernetes and all other programs that the tests run
	$(CLUSTER) build

.PHONY: verify
verify: generate ## Check that generated files are up to date
	@git diff --exit-code -- deploy/chart/definitions deploy/foreign deploy/cosi-proposal test/integration/testdata deployment.yaml deployment-buckets.yaml docs internal/api || { echo "generated files differ: run 'make generate' and commit them" >&2; exit 1; }

.PHONY: lint
lint: bin/golangci-lint ## Run go vet and golangci-lint
	@for module in $(GO_MODULES); do (cd $$module && go vet ./...); done
	@test/words
	@root=$$PWD; for module in $(GO_MODULES); do (cd $$module && $$root/bin/golangci-lint run --allow-parallel-runners -c $$root/.golangci.yml ./...); done

bin/govulncheck: test/tools/govulncheck/go.mod
	go -C test/tools/govulncheck build -o ../../../$@ golang.org/x/vuln/cmd/govulncheck

.PHONY: vuln
vuln: bin/govulncheck ## Look for known vulnerabilities that PaV's programs reach; takes the database at vuln.go.dev
	@test/vuln bin/govulncheck ./cmd/...

# "make lint" has vetted the code, and tests without tables for debuggers are linked in three quarters of the time.
GO_TEST := go test -vet=off -ldflags '-s -w'

# Go keeps no track of pages and examples, which are outside the modules that check them: -count=1 runs those tests each time.
.PHONY: test-unit
test-unit: packages bin/helm bin/versitygw ## Run the unit tests, those on real mounts, and those of the templates
	$(GO_TEST) -race -timeout 30m ./cmd/... ./deploy ./hack/... ./internal/...
	$(GO_TEST) ./jinja/... ./test/jinja/... ./test/bench/... ./test/examples/... ./test/objectstore ./test/parts ./test/reference/...
	$(GO_TEST) -race -run Concurrently ./test/jinja/sandbox
	cd hack/image && $(GO_TEST) ./...
	cd test/cluster && $(GO_TEST) -count=1 ./...
	cd test/commands && $(GO_TEST) -count=1 ./...
	cd test/conformance && $(GO_TEST) . ./report ./internal/... ./populator/...

# The same seeds each time: what a change breaks is its own.
.PHONY: test-simulation
test-simulation: ## Simulate a cluster's bad days for a minute
	$(GO_TEST) -count=1 ./test/simulation/kubernetes ./test/simulation/node ./test/simulation/scenes ./test/simulation/world
	$(GO_TEST) -count=1 -timeout 30m ./test/simulation -during 60s

.PHONY: simulate
simulate: ## Simulate a cluster's bad days from seeds: make simulate SEEDS=1000 SEED=7, or ARGS="-seed 7 -seeds 1 -history"
	go test -count=1 -timeout 24h -v ./test/simulation $(or $(ARGS),-seed $(or $(SEED),1) -seeds $(or $(SEEDS),100)) | grep -v '^ *\(=== \|--- PASS: .*/\)'

# Those that have most goroutines at work, and do not take minutes, are run with the race detector, which makes them several times
# dearer. test-race runs all with it.
RACED := ^Test(LeaderStalls|Node_LifeOfAVolume|WaitForFirstConsumer)
# What the simulation holds at every write, too, is left to test-long.
SIMULATED := ^Test(AgentStoppedAfterEachWrite|StaleCache|UnreliableLine)
# What takes longest is left to test-long, too, where make test has the same of another kind of object, or unit tests alone are enough.
LONGEST := ^Test(COSIProposal_WithAnAgentThatIsStopped|GrantPod_OfAStalledLeader_While)|^TestBucketCreationPod_OfAStalled/claim_chose|^TestObjectBucketClaim_WithAnAgent/all_succeed|^TestNode_Sanity/block

INTEGRATION_TEST = assets=$$($(CLUSTER) build) && cd test/integration && KUBEBUILDER_ASSETS=$$assets ../../bin/integration.test -test.v -test.timeout 80m
FIRST_HALF := ^Test([A-N]|P[eo])

bin/integration.test: $(GO_FILES) $(wildcard test/integration/*.go test/agent/*.go test/flood/*.go test/kubelet/*.go test/reference/*.go test/reference/chainsaw/*.go test/scrape/*.go test/seed/*.go test/simulation/*/*.go) go.mod go.sum
	$(GO_TEST) -c -o $@ ./test/integration

.PHONY: test-integration $(INTEGRATION)
test-integration: $(INTEGRATION) ## Run the agents against a real kube-apiserver and etcd

test-integration-node: $(CLUSTER) bin/integration.test
	KUBEBUILDER_ASSETS="$$($(CLUSTER) build)" $(GO_TEST) -race -count=1 -timeout 80m -run '$(RACED)' ./test/integration
	$(INTEGRATION_TEST) -test.run '^TestNode_' -test.skip '$(RACED)|$(LONGEST)'

test-integration-controller-1: $(CLUSTER) bin/helm bin/integration.test $(REFERENCE)
	$(INTEGRATION_TEST) -test.run '$(FIRST_HALF)' -test.skip '^TestNode_|$(RACED)|$(SIMULATED)|$(LONGEST)'

test-integration-controller-2: $(CLUSTER) bin/helm bin/integration.test $(REFERENCE)
	$(INTEGRATION_TEST) -test.skip '$(FIRST_HALF)|$(RACED)|$(SIMULATED)|$(LONGEST)'

# The end-to-end tests; also what installs PaV for the storage suite, and looks for what is left.
bin/e2e.test: $(GO_FILES) $(wildcard test/e2e/*.go test/e2e/testdata/* test/agent/*.go test/flood/*.go test/scrape/*.go test/seed/*.go test/simulation/*/*.go) go.mod go.sum
	$(GO_TEST) -c -o $@ ./test/e2e

# Those that stop agents, components of Kubernetes or nodes, or count what the agents do, run one by one. Some of these
# are left to the other cluster, where they run before the rest, so that both take the same time.
ALONE := ^Test(APIServerDown|Agents|ExclusiveVolume_OldNodeIsCutOff|Kubelet(Stopped|Forgets)|Load_Claims|Node(Agents|Drained|Lost|Pressure|Rebooted|Restarted|Shutdown)|Uninstall|VolumeInUse)
SOAK := ^TestSoak$$
# What the simulation or other tests hold, too, is left to test-long, and so is what takes longest.
CRASHED := ^Test(ControllerStopped|ControllerRestarted|LeaderMoves|UnreliableAPIServer|CreationPod(Evicted|DeletedByForce)|Deletion(_WaitsForTheLastStage|PodDeletedByForce)|DynamicVolume_OnOneThatWaits|NodeLostDuringCreation|RevertingFails)
HELD := ^Test(BucketName_|BucketThatExists_|Claim(Deleted(BetweenAttempts|DuringCreation|When|WhileReverting|WhileThePod)|Replaced)|CreationPod(AgainstPodSecurity|FitsNoNode|InANamespace|IsReady_AndItsClaim|OverQuota)|CreationTemplate|DefinitionChanges|DeletedProvisioner|Deletion(_NeedsNo|PodFitsNoNode)|DynamicVolume_Def|ExclusiveVolume_OldNodesUnstaging|HandleOfARetained|NodeDrained_Where|NodeRestarted|ProvisionerDeletedWhile|ReclaimPolicy|Records_|RetainedVolume|Scope_|SecretOfAnother|Snapshot_Fails|StaticVolume(_IsValidated|_OfAProvisioner|$$)|TopologyOutside|Uninstall_WhileARetained|VolumeGrows_(AndItsClaim|ThatAnAdministrator))
DISTURBED := ^TestAgentsKilledAtAnyMoment_ClientsContinue$$
LENGTHY := ^Test(AllowedTopologies|Attack_FloodOfInline|BlockVolume_Moves|DynamicVolume_OnAnother|Example_(Buckets|DirectoryCopies|LocalPath|LoopDevice|ObjectStore|ReflinkFiles)|FUSEDaemonKilled(Repeatedly|_ClientDeleted|_WithoutRecovery)|FiveProvisioners|KubectlTest_DeletionFails|Load_|ManyVolumesInOnePod|Metrics_CoverTheLife|NodeAgentsRolledOut|NodePressure_StagingPodOfLowerPriority|NodeShutdown|Restored_|Rotation_ClientThat|SelectedNodeWithoutRoom|SnapshotUnderWrites|TenClients|Uninstall_WithHelm|VolumeGrows_OnItsNode)
# Of tests that do the same with several volumes or results, make test runs one or two.
VARIANTS := ^TestUnusableResults$$/^(capacity-(missing|no-quantity|field)|handle-(of|too|no))|^TestScopePod_EachClient/fuse|^TestKubectlNew_/^(layer|fuse|local)
E2E := $(CLUSTER) bin/pav.tar bin/kubectl-pav bin/helm bin/e2e.test $(EXAMPLE_IMAGES)

.PHONY: test-e2e
test-e2e: $(E2E) ## Run the end-to-end tests that can share a real cluster
	test/e2e/run $(CLUSTER) bin/pav.tar -test.skip '^TestAgentsOfDifferentVersions|$(SOAK)|$(ALONE)|$(CRASHED)|$(HELD)|$(LENGTHY)|$(VARIANTS)'

.PHONY: test-e2e-alone
test-e2e-alone: $(E2E) ## Run the end-to-end tests that need a real cluster for themselves
	test/e2e/run $(CLUSTER) bin/pav.tar -test.run '$(ALONE)' -test.skip '^TestAgentsOfDifferentVersions|$(CRASHED)|$(HELD)|$(DISTURBED)|$(LENGTHY)'

# The driver whose volumes are shared by all nodes; test-long has the other two.
.PHONY: test-conformance
test-conformance: $(CLUSTER) bin/pav.tar bin/e2e.test $(SUITE) ## Run those specs of Kubernetes' storage suite that a change must pass
	env -u FOCUS -u FAILED -u RECORD SHORT=1 test/conformance/run shared-directories

.PHONY: conformance
conformance: $(CLUSTER) bin/pav.tar bin/e2e.test $(SUITE) ## Run all of Kubernetes' storage suite: make conformance DRIVER=loop-devices FOCUS=subPath
	test/conformance/run $(DRIVER)

##@ Check at length

# The versions of Kubernetes that the tests run on besides the present one: the oldest that PaV supports, and one between.
OTHER_KUBERNETES := v1.30.14 v1.33.13
TEST_KUBERNETES := $(OTHER_KUBERNETES:%=test-kubernetes-%)

# Each is a part of test-long, and can be run by itself.
LONG := long-unit long-simulation long-templates long-node long-sequences long-controller long-disturbed long-crashed long-loaded long-e2e long-soak long-conformance
$(LONG): export PAV_LONG := 1
.PHONY: $(LONG)

.PHONY: test-long
test-long: ## Run what takes hours, part by part: the same command resumes an interrupted run
	@test/parts/run --long test-long packages compile $(LONG) test-race test-versions $(TEST_KUBERNETES)

.PHONY: test-race
test-race: $(CLUSTER) ## Run all integration tests with the race detector, without their repeats
	KUBEBUILDER_ASSETS="$$($(CLUSTER) build)" go test -race -count=1 -timeout 3h ./test/integration

long-unit: packages bin/helm ## Run the unit tests with all of their repeats
	go test -count=1 -timeout 3h ./cmd/... ./deploy ./hack/... ./internal/... ./jinja/...

long-simulation: ## Simulate a cluster's bad days for an hour, from other seeds each time
	go test -count=1 -timeout 3h ./test/simulation -during 1h $(if $(PAV_SEED),-seed $(PAV_SEED))

long-templates: packages ## Compare templates made at random with real Jinja2 and Bash
	$(MAKE) fuzz-jinja SEED=$(PAV_SEED)
	$(MAKE) fuzz-tobash SEED=$(PAV_SEED)

SEQUENCES := ^TestNode_RandomSequences$$

long-node: $(CLUSTER) ## End the node agent after each of its effects, and let 1,000 volumes be idle for an hour
	KUBEBUILDER_ASSETS="$$($(CLUSTER) build)" go test -count=1 -timeout 6h -run TestNode_ -skip '$(SEQUENCES)' ./test/integration

long-sequences: $(CLUSTER) ## Make 10,000 sequences of kubelet's calls
	KUBEBUILDER_ASSETS="$$($(CLUSTER) build)" go test -count=1 -timeout 6h -run '$(SEQUENCES)' ./test/integration

long-controller: $(CLUSTER) ## Run the other integration tests with all of their repeats
	KUBEBUILDER_ASSETS="$$($(CLUSTER) build)" go test -count=1 -timeout 6h -skip TestNode_ ./test/integration/...

LOADED := ^Test(Load_|NodeAgentsRolledOut|TenClients)

long-disturbed: $(E2E) ## Disturb the agents 100 times
	test/e2e/run $(CLUSTER) bin/pav.tar -test.run '$(DISTURBED)'

long-crashed: $(E2E) ## Stop the controller agent after each of its writes, move leadership 50 times, and lose pods and a node
	test/e2e/run $(CLUSTER) bin/pav.tar -test.run '$(CRASHED)'

long-loaded: $(E2E) ## Make 500 claims at once, roll out the node agents ten times under writes, and delete 200 clients
	test/e2e/run $(CLUSTER) bin/pav.tar -test.run '$(LOADED)'

long-e2e: $(E2E) ## Run the other end-to-end tests with all of their repeats
	test/e2e/run $(CLUSTER) bin/pav.tar -test.skip '^TestAgentsOfDifferentVersions|$(SOAK)|$(DISTURBED)|$(CRASHED)|$(LOADED)'

long-soak: $(E2E) ## Let volumes come and go for an hour while requests fail, agents die and a node is rebooted
	test/e2e/run $(CLUSTER) bin/pav.tar -test.run '$(SOAK)'

long-conformance: $(CLUSTER) bin/pav.tar bin/e2e.test $(SUITE) ## Run the short specs of Kubernetes' storage suite with all drivers
	env -u FOCUS -u FAILED -u RECORD SHORT=1 test/conformance/run

# The version before this one: what an update replaces, and a rollback brings back.
FORMER := f090a9c

.PHONY: test-versions
test-versions: $(CLUSTER) bin/pav.tar bin/e2e.test ## Run agents of this version and of the one before side by side
	test/versions/run $(CLUSTER) bin/pav.tar $(FORMER)

.PHONY: test-kubernetes $(TEST_KUBERNETES)
test-kubernetes: $(TEST_KUBERNETES) ## Run the integration tests and the demo on other versions of Kubernetes

$(TEST_KUBERNETES): test-kubernetes-%: $(CLUSTER) bin/helm bin/pav.tar
	KUBEBUILDER_ASSETS="$$(PAV_KUBERNETES=$* $(CLUSTER) build)" go test -count=1 -timeout 3h -skip '$(SIMULATED)' ./test/integration/...
	test/kubernetes/run $(CLUSTER) bin/pav.tar $*

##@ Templates

.PHONY: fuzz-jinja
fuzz-jinja: ## Compare templates made at random with real Jinja2: make fuzz-jinja CASES=500000 SEED=7
	go run ./test/jinja/fuzz -cases $(or $(CASES),500000) -seed $(or $(SEED),0)

.PHONY: fuzz-tobash
fuzz-tobash: ## Give the words of tobash to real bash: make fuzz-tobash STRINGS=1000000 SEED=7
	go run ./test/jinja/bash -strings $(or $(STRINGS),1000000) -seed $(or $(SEED),0)

.PHONY: fuzz-native
fuzz-native: ## Evaluate sources that Go's fuzzer makes, for FUZZTIME each: make fuzz-native FUZZTIME=20m
	for target in FuzzRender FuzzCompile FuzzSurvey; do go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),20m) -fuzzminimizetime 1s ./test/jinja/sandbox; done

# What the benchmarks compare PaV with, each in an image of its own; and what the case of buckets takes.
PEERS := bin/bench-driver.tar bin/csi-provisioner.tar bin/local-path-provisioner.tar
BUCKET_PEERS := bin/lib-bucket-provisioner bin/versitygw.tar bin/s3-tools.tar

bin/csi-provisioner: test/tools/external-provisioner/go.mod
	CGO_ENABLED=0 go -C test/tools/external-provisioner build -ldflags '-s -w' -o ../../../$@ github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner

bin/csi-provisioner.tar: bin/csi-provisioner $(CLUSTER)
	$(CLUSTER) image --ref localhost/csi-provisioner:v6.4.0 --binary bin/csi-provisioner --entrypoint /csi-provisioner $@

bin/local-path-provisioner: test/tools/local-path-provisioner/go.mod
	CGO_ENABLED=0 go -C test/tools/local-path-provisioner build -ldflags '-s -w' -o ../../../$@ github.com/rancher/local-path-provisioner

bin/local-path-provisioner.tar: bin/local-path-provisioner $(CLUSTER)
	$(CLUSTER) image --ref docker.io/rancher/local-path-provisioner:v0.0.30 --binary bin/local-path-provisioner --entrypoint /usr/bin/local-path-provisioner $@

bin/bench-driver: $(wildcard test/bench/driver/*.go) go.mod go.sum
	CGO_ENABLED=0 go build -ldflags '-s -w' -o $@ ./test/bench/driver

bin/bench-driver.tar: bin/bench-driver $(CLUSTER)
	$(CLUSTER) image --ref localhost/pav-bench-driver:1 --binary bin/bench-driver --entrypoint /driver $@

.PHONY: bench
bench: $(CLUSTER) bin/pav.tar $(PEERS) $(BUCKET_PEERS) ## Measure PaV beside floors and peers on a cluster, into bin/bench: make bench CASES="bound running*" N=5 FOR=1h
	@mkdir -p bin/bench
	test/bench/volumes/run $(CLUSTER) bin/pav.tar $(PEERS) -- -cases "$(or $(CASES),*)" -n $(or $(N),30) $(if $(FOR),-for $(FOR)) -samples bin/bench/samples.tsv | tee bin/bench/report.md

.PHONY: bench-jinja
bench-jinja: ## Measure the template engine, and gonja for comparison
	test/bench/run

.PHONY: bench-mounts
bench-mounts: ## Measure a look at a stage on a node with many mounts, and reads of the mount table
	go test ./internal/node/pavdir -run '^$$' -bench Look

.PHONY: bench-stage
bench-stage: $(CLUSTER) ## Measure what a node agent takes of staging a volume, also on a node with many mounts
	KUBEBUILDER_ASSETS="$$($(CLUSTER) build)" go test ./test/integration -run '^$$' -bench Node_Stage -benchtime 30x

.PHONY: bench-scale
bench-scale: $(CLUSTER) ## Measure the agents in a large cluster, into bin/bench: make bench-scale SCALE="-nodes 200 -volumes 2000"
	@mkdir -p bin/bench
	CGO_ENABLED=0 go build -ldflags '-s -w' -o bin/scale ./test/bench/scale
	assets=$$($(CLUSTER) build) && bin/scale -assets $$assets -commit "$$(git rev-parse --short HEAD)" $(SCALE) | tee bin/bench/scale.md

.PHONY: bench-drivers
bench-drivers: ## Measure the memory of a driver on a node, and how long after a restart 1,000 drivers answer
	go test -run '^$$' -bench Registry -benchtime 5x ./internal/node/csi

.PHONY: clean
clean: ## Remove what was built in this checkout
	rm -rf bin
