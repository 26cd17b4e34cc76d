# Every target does its own set-up on a machine that has Python 3.11+ (and Go, where no Pulumi can be downloaded).
STACK ?= local

.PHONY: help setup up down test test-rig test-cluster lint bench
help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: ## the Python environment (.venv) and the Pulumi CLI
	@scripts/setup.sh

up: setup ## bring a stack up: make up [STACK=local]
	@.venv/bin/tpu-ray up -s $(STACK)

down: setup ## end and delete what the stack made: make down [STACK=local]
	@.venv/bin/tpu-ray destroy -s $(STACK)

lint: setup ## style and types
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

test: setup ## style, types and every test that needs no root, with the time of each part
	@scripts/tests.sh

test-rig: setup ## the GKE stacks on a real API server and Kubernetes provider; their first build takes minutes
	@.venv/bin/python -m tests.rig.kube
	@.venv/bin/python -m pytest -m rig --durations=10

test-cluster: setup ## stacks whose pods run, on a whole Kubernetes on this machine; needs root and a few Debian packages
	@.venv/bin/python -m tests.rig.kube cluster
	@scripts/cluster.sh .venv/bin/python -m pytest -m cluster --durations=10

bench: setup ## scale runs; none is in CI
	@.venv/bin/python -m bench.hundred_slices
