# A menu: `make` alone prints it.
PLAYERS  ?=
REFEREES ?= 2
SEED     ?=
GAME     ?=
PORT     ?=
MINE     ?=
CYCLES   ?=
NEW      ?=
OLD      ?=
NAME     ?=
OF       ?=
LEAD     ?=
LOGS     ?=
ADDRESS  ?=
# Another game is another league: make league GAME=tic_tac_toe, and the same for class, check and trace.
OF_GAME   = $(if $(GAME),--league-id league_2025_$(GAME))
unexport PORT # a student's own program must not take it for its own

help: ## this menu
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

league: target/built ## a whole league here: make league PLAYERS=8 REFEREES=3 SEED=7 GAME=tic_tac_toe; with your own player: MINE=ada CYCLES=20
	@./target/debug/league local --fresh $(OF_GAME) $(if $(PLAYERS),--players $(PLAYERS)) --referees $(REFEREES) \
		$(if $(SEED),--seed $(SEED)) $(if $(PORT),--port $(PORT)) \
		$(if $(MINE),--mine "$(MINE)") $(if $(CYCLES),--cycles $(CYCLES)) \
		$(if $(NEW),--new "$(NEW)") $(if $(OLD),--old "$(OLD)")

small: target/built ## the small league, to be read in an evening and changed: make small PLAYERS=6
	@./target/debug/league small $(if $(PLAYERS),--players $(PLAYERS))

class: export NAME := $(value NAME)
class: target/built ## a league for a class, which stays: make class NAME="10b, Tuesday" LEAD=5 ADDRESS=192.0.2.1
	@./target/debug/league class $(OF_GAME) $${NAME:+--name "$$NAME"} $(if $(PORT),--port $(PORT)) \
		$(if $(LEAD),--lead-sec $(LEAD)) $(if $(ADDRESS),--host $(ADDRESS))

again: target/built ## your choose once more, as in a match of the last practice: make again MATCH=R3M2 MINE=ada
	@./target/debug/league again $(MATCH) $(OF_GAME) --data data/practice -- $(or $(MINE),player)

check: target/built ## examine your agent: make check PORT=9000, then start it as always
	@./target/debug/league check $(OF_GAME) $(if $(PORT),--port $(PORT))

# Cargo shows how far it is while it builds; once built it need not be asked. A folder is newer when a file in it goes.
SOURCES   = src bin $(foreach depth,* */* */*/*,$(wildcard src/$(depth) bin/$(depth))) Cargo.toml
target/built: $(SOURCES)
	@cargo build
	@touch target/built

agent: export NAME := $(value NAME)
agent: target/built ## your own player: make agent NAME=ada, or NAME=eve.py for one in Python
	@./target/debug/league new "$$NAME"

faults: target/built ## twelve faults, for the stack and for the small league: make faults; one for your copy: make faults OF=bin/mine NAME=killed-manager
	@python3 tests/faults.py $(if $(OF),--of $(OF)) $(NAME)

test: ## all tests
	@cargo test --quiet --no-fail-fast

bench: ## how fast leagues are and what they cost
	@cargo test --quiet --release --test bench -- --ignored --exact --nocapture bench

trace: target/built ## what was said in a match, from the logs: make trace MATCH=R1M1
	@./target/debug/league trace $(MATCH) $(OF_GAME) $(if $(LOGS),--logs $(LOGS))

clean: ## remove what was built, data and logs
	cargo clean --quiet
	rm -rf data logs/*

.PHONY: help league small class agent again check faults trace test bench clean
