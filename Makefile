# A menu: `make` alone prints it.
PLAYERS  ?= 4
REFEREES ?= 2
SEED     ?=
PORT     ?=

help: ## this menu
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

league: target/built ## a whole league here: make league PLAYERS=8 REFEREES=3 SEED=7 PORT=9000
	@./target/debug/league_manager local --fresh --players $(PLAYERS) --referees $(REFEREES) \
		$(if $(SEED),--seed $(SEED)) $(if $(PORT),--port $(PORT))

check: target/built ## examine your agent: make check PORT=9000, then start it as always
	@./target/debug/league_manager check $(if $(PORT),--port $(PORT))

# Cargo shows how far it is while it builds; once built it need not be asked.
target/built: $(shell find src bin -type f) Cargo.toml
	@cargo build
	@touch target/built

test: ## all tests
	cargo test --quiet --no-fail-fast

bench: ## how fast leagues are and what they cost: make bench JSON=1 for machines
	@JSON=$(JSON) cargo test --quiet --release --test bench -- --ignored --exact --nocapture bench

clean: ## remove what was built, data and logs
	cargo clean --quiet
	rm -rf data logs/*

.PHONY: help league check test bench clean
