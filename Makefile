# A menu: `make` alone prints it.
PLAYERS  ?= 4
REFEREES ?= 2
SEED     ?=
PORT     ?=

help: ## this menu
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

league: ## a whole league here: make league PLAYERS=8 REFEREES=3 SEED=7 PORT=9000
	@cargo build --quiet
	@./target/debug/league_manager local --fresh --players $(PLAYERS) --referees $(REFEREES) \
		$(if $(SEED),--seed $(SEED)) $(if $(PORT),--port $(PORT))

test: ## all tests
	cargo test --quiet

bench: ## how fast leagues are, as ratios
	cargo test --quiet --release --test bench -- --ignored --nocapture

clean: ## remove what was built, data and logs
	cargo clean --quiet
	rm -rf data logs/*

.PHONY: help league test bench clean
