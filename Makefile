# A menu: `make` alone prints it.
# The options of each target, in capitals. Another one on the command line is refused.
league_TAKES = PLAYERS REFEREES SEED GAME PORT MINE CYCLES NEW OLD NAME LEAD
small_TAKES  = PLAYERS SEED
class_TAKES  = GAME NAME PORT LEAD ADDRESS
check_TAKES  = GAME PORT
agent_TAKES  = NAME
faults_TAKES = OF NAME
trace_TAKES  = MATCH GAME LOGS
simulate_TAKES = SEEDS FROM
# They have no value unless the command line gives one: variables of the environment do not count.
OPTIONS = PLAYERS REFEREES SEED GAME PORT MINE CYCLES NEW OLD NAME OF LEAD LOGS ADDRESS MATCH SEEDS FROM
$(foreach option,$(OPTIONS),$(eval $(option) =))
GIVEN = $(foreach name,$(.VARIABLES),$(if $(findstring command,$(origin $(name))),$(name)))
REFUSED = $(filter-out $($(target)_TAKES),$(GIVEN))
$(foreach target,$(MAKECMDGOALS),$(if $(strip $(REFUSED)),$(error make $(target) has no option $(strip $(REFUSED)); \
	its options are: $(or $($(target)_TAKES),none) (a value with a blank needs quotation marks: MINE="python3 bin/eve.py"))))
# Programs get texts by the environment, so quotation marks and blanks in them stay as they are.
export TEXT_MINE := $(value MINE)
export TEXT_NEW  := $(value NEW)
export TEXT_OLD  := $(value OLD)
export TEXT_NAME := $(value NAME)
unexport $(OPTIONS) # a student's own program must not take them for its own
# Cargo builds into another folder if CARGO_TARGET_DIR names one.
TARGET    = $(or $(CARGO_TARGET_DIR),./target)
# Another game is another league: make league GAME=tic_tac_toe, and the same for class, check and trace.
OF_GAME   = $(if $(GAME),--league-id league_2025_$(GAME))

help: ## this menu
	@grep -E '^([a-z]+:.*)?## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/; s/^## /\t/' | expand -t 18

league: built ## a whole league here: make league PLAYERS=8 REFEREES=3 SEED=7
## GAME=tic_tac_toe; with your own player: MINE=ada CYCLES=20
	@$(TARGET)/debug/league local --fresh $(OF_GAME) $(if $(PLAYERS),--players $(PLAYERS)) \
		$(if $(REFEREES),--referees $(REFEREES)) $(if $(SEED),--seed $(SEED)) $(if $(PORT),--port $(PORT)) \
		$(if $(LEAD),--lead-sec $(LEAD)) $(if $(CYCLES),--cycles $(CYCLES)) $${TEXT_NAME:+--name "$$TEXT_NAME"} \
		$${TEXT_MINE:+--mine "$$TEXT_MINE"} $${TEXT_NEW:+--new "$$TEXT_NEW"} $${TEXT_OLD:+--old "$$TEXT_OLD"}

small: built ## the small league, to be read in an evening and changed:
## make small PLAYERS=6 SEED=7
	@$(TARGET)/debug/league small $(if $(PLAYERS),--players $(PLAYERS)) $(if $(SEED),--seed $(SEED))

class: built ## a league for a class, which stays:
## make class NAME="10b, Tuesday" LEAD=5 ADDRESS=192.0.2.1
	@$(TARGET)/debug/league class $(OF_GAME) $${TEXT_NAME:+--name "$$TEXT_NAME"} $(if $(PORT),--port $(PORT)) \
		$(if $(LEAD),--lead-sec $(LEAD)) $(if $(ADDRESS),--host $(ADDRESS))

check: built ## examine your player, which you then start as always:
## make check PORT=9000
	@$(TARGET)/debug/league check $(OF_GAME) $(if $(PORT),--port $(PORT))

# Cargo shows how far it is with the first build; later ones take seconds. Then only errors are shown: the warnings of
# somebody's own player would stand before every command (cargo build shows them).
built:
	@$(if $(wildcard $(TARGET)/debug/league*),cargo build --quiet 2>/dev/null || cargo build --quiet,cargo build)

agent: built ## your own player: make agent NAME=ada, or NAME=eve.py in Python
	@$(if $(value NAME),,$(error make agent needs a name: NAME=ada, or NAME=eve.py))$(TARGET)/debug/league new "$$TEXT_NAME"

faults: built ## twelve faults, for the stack and for the small league;
## one for your copy: make faults OF=bin/mine NAME=killed-manager
	@python3 tests/faults.py $(if $(OF),--of $(OF)) $(NAME)

# A test that cannot run here notes it in a file, of which the last line is the sum.
LEFT_OUT  = $(TARGET)/debug/left-out.txt
# The tests start hundreds of programs, and write many small files. They take half as long with optimized programs, and
# with files in memory if 2 GB are free there.
MEMORY    = $(shell grep -qs '/dev/shm .*noexec' /proc/mounts || df -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 { print $$6 }')
FAST      = CARGO_PROFILE_TEST_OPT_LEVEL=1 $(addprefix TMPDIR=,$(MEMORY))
test: ## all tests
	@rm -f $(LEFT_OUT)
	@$(FAST) cargo test --quiet --no-fail-fast; code=$$?; touch $(LEFT_OUT); awk -F '\t' \
		'!seen[$$0]++ { n++; why[$$1]++ } END { printf "left out: %d tests", n; for (w in why) printf "; %d: %s", why[w], w; print "" }' \
		$(LEFT_OUT); exit $$code

simulate: ## leagues in virtual time, until a law is broken:
## make simulate SEEDS=100000 FROM=1
	@cargo run --quiet --profile simulate --example simulation -- $(or $(SEEDS),10000) $(or $(FROM),1)

bench: ## how fast leagues are and what they cost
	@cargo test --quiet --release --test bench -- --ignored --exact --nocapture --test-threads 1 bench comparisons

trace: built ## the messages of a match, from the logs: make trace MATCH=R1M1
	@$(if $(MATCH),,$(error make trace needs a match: MATCH=R1M1))$(TARGET)/debug/league trace $(MATCH) $(OF_GAME) $(if $(LOGS),--logs $(LOGS))

clean: ## remove what was built, data and logs
	cargo clean --quiet
	rm -rf data logs/*

.PHONY: help built league small class agent check faults trace test simulate bench clean
