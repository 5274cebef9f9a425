// Shows a league. Its data are in the page, so it is complete as soon as it is loaded. A live page
// then asks the manager every second for changes; a saved report asks nothing.

const MAX_OPEN = 16; // maximum number of players whose cross table is open from the start
const MAX_ROWS = 9; // maximum number of matches below each other in half of the wall
const MAX_POINTS = 200; // maximum number of rounds that a player's line shows
const MAX_LOSSES = 40; // maximum number of rows of technical losses
const QUOTED = /([\x22\x27\x60]).*?\1|\d+/g; // texts in quotation marks, and numbers

let matches; // all matches of the schedule
let played; // those that have ended
let lines; // by player: its points above the average after each complete round
let lowest; // the lowest of them
let highest;
let luckOf; // by player: its points beyond the expected ones, where a number was drawn
let view = "league"; // league, wall, or the id of a player
let failures = 0; // requests without an answer, one after the other
let clock = 0; // the manager's clock minus ours, in milliseconds

const points = number => String(Math.round(number * 100) / 100);
const sum = numbers => numbers.reduce((total, number) => total + number, 0);

// ---------------------------------------------------------------------------- reading the league

const ids = () => league.standings.map(row => row.player_id);
const isLobby = () => league.status === "waiting";
const rankOf = row => (league.matches_completed ? league.ranks[row.rank - 1] : `${row.rank}`);
const technical = id => byId.get(id)?.technical_losses ?? 0;
const matchesIn = round => league.rounds[round - 1]?.matches ?? [];
/** Returns true if the game draws numbers: only then there are expected points and luck. */
const drawsNumbers = () => Object.keys(league.worth).length > 0;
/** Returns true if pairs meet more than once, as in a practice: then means say more. */
const isRepeated = () => league.total_matches > (players().length * (players().length - 1)) / 2;

/** Returns how many matches of a round are over. */
function done(matches) {
  const over = matches.filter(match => match.ending).length;
  return `${over} of ${count(matches.length, "match")} over`;
}

/** Returns the expected points of a player in a match; none if no number was drawn. */
function expectedPoints(match, id) {
  const both = rivals(match);
  const pair = both.map(id => choice(match, id)).join(" ");
  return match.drawn_number ? league.worth[pair]?.[both.indexOf(id)] : undefined;
}

/** Adds up the points of each player, round by round, for its line in the table. */
function addUpRounds() {
  const all = ids();
  const sums = Object.fromEntries(all.map(id => [id, 0]));
  lines = Object.fromEntries(all.map(id => [id, [0]]));
  [lowest, highest] = [-1, 1];
  for (const { matches } of league.rounds) {
    if (!matches.every(match => match.ending)) break;
    for (const { score } of matches) for (const id in score) sums[id] += score[id];
    const average = sum(Object.values(sums)) / all.length;
    for (const id of all) {
      const value = sums[id] - average;
      lines[id].push(value);
      lowest = Math.min(lowest, value);
      highest = Math.max(highest, value);
    }
  }
}

function addUpLuck() {
  luckOf = Object.fromEntries(ids().map(id => [id, 0]));
  for (const match of played.filter(match => match.drawn_number)) {
    for (const id of rivals(match)) luckOf[id] += match.score[id] - expectedPoints(match, id);
  }
}

// ---------------------------------------------------------------------------- parts

/** Returns a player's letter and name, as a link to its sheet. */
function who(id) {
  const isRemoved = byId.get(id)?.removed;
  const tag = isRemoved && h("span.tag", "removed");
  return h("a.who", { href: `#${id}` }, badge(id), h("bdi", called(id)), tag);
}

/** Returns a link to what was said in a match. */
const trace = (match, text) => h("a", { href: traceOf(match), title: sentence(match) }, text);

/**
 * Returns a table. A column is its head, the content of its cell in a row, and its classes; a cell
 * of the class `name` is the head of its row.
 */
function table(label, columns, rows) {
  const head = ([text, , classes]) => h(`th.${classes}`, { scope: "col" }, text);
  const cell = row => ([, content, classes]) =>
    h(`${classes === "name" ? "th" : "td"}.${classes}`, content(row));
  const body = rows.map(row => h("tr", { "data-key": row.player_id }, columns.map(cell(row))));
  return h("div.scroll", { tabindex: 0, role: "group", "aria-label": label },
    h("table", h("thead", h("tr", columns.map(head))), h("tbody", body)));
}

/**
 * Returns a picture: for each row a dot, a bar between two values and perhaps a ring, all on one
 * scale, and perhaps a line through all rows.
 */
function picture(rows, line) {
  const all = rows.flatMap(row => [row.from, row.to]);
  if (line) all.push(line.at);
  const low = Math.min(...all);
  const range = Math.max(...all) - low || 1;
  const at = value => `${(100 * (value - low)) / range}%`;

  const mark = (kind, value, to, text) =>
    value !== undefined && h(`i.${kind}`, { "--at": at(value), "--to": at(to) }, text);
  const marks = ({ from, to, dot, ring }) => [
    mark("line", line?.at), mark("reach", from, to), mark("dot", dot), mark("ring", ring)
  ];
  return h("ol.picture",
    line && h("li", h("span"), h("span.axis", mark("label", line.at, 0, line.text))),
    rows.map(row => h(`li.${row.side}`,
      h("span.who", row.who), h("span.axis", marks(row)), h("b", row.text))));
}

/** Returns the course of a player through the league: its points above the average. */
function sparkline(id) {
  const y = value => 1 + (28 * (highest - value)) / (highest - lowest);
  const step = Math.ceil(league.total_rounds / MAX_POINTS);
  const x = n => (100 * n) / league.total_rounds;
  const at = lines[id].map((value, n) => (n % step === 0 ? `${x(n)},${y(value)}` : ""));
  const box = { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": true };
  return h("svg.course", { ...box, ...hue(id) },
    h("line", { x2: 100, y1: y(0), y2: y(0) }), h("polyline", { points: at.join(" ") }));
}

/** Returns a part that the reader can open. Its content is made only when it is open. */
function more(id, summary, content, isOpen) {
  const isShown = $(id)?.open ?? isOpen;
  return h("details", { id, open: isShown && "" }, h("summary", summary), isShown && content());
}

/** Fills a box of the wall with rows: the style chooses the largest letters with which they fit. */
function fit(rows, columns, content) {
  return h("div.fit", { "--rows": Math.ceil(rows / columns), "--columns": columns }, content);
}

// ---------------------------------------------------------------------------- the head

/** Returns the line about the open round. */
function now() {
  const { current_round: round, next_at: next } = league;
  const awaited = league.league.players_awaited;
  if (isLobby()) return `${players().length}${awaited ? ` of ${awaited}` : ""} players here`;
  if (isOver()) return `The league is over: ${count(league.matches_completed, "match")}`;

  const open = `Round ${round} of ${league.total_rounds}`;
  if (!next || league.paused || failures > 1) return `${open}: ${done(matchesIn(round))}`;
  const left = Math.ceil((Date.parse(next) - Date.now() - clock) / 1000);
  return `${open} begins ${left > 0 ? `in ${left} s` : "now"}`;
}

/** Returns the line beside it, and its class. It is never empty, so nothing moves. */
function notice() {
  const isCut = league.matches_completed < league.total_matches && !league.league.practice;
  if (isOver()) return [isCut ? "it was ended before all matches were played" : "all is played"];
  if (failures > 1) return ["the manager does not answer; this is how it was last", "alarm"];
  if (league.paused) return ["paused by the operator", "alarm"];
  if (isLobby()) return [league.reason ?? "enough are here to start", "waiting"];
  if (!league.reason || league.next_at) return ["all is well"];
  const times = league.reason.match(/(?<=\(until )[\d:]+( UTC)?/g);
  return [times ? `in play until ${times.sort().at(-1)} at most` : league.reason, "waiting"];
}

function drawHead() {
  const { display_name: own, name } = league.league;
  const title = name ? `${own} · ${name}` : own;
  document.title = `${sanitize(title)}: ${league.status}`;

  const [text, kind] = notice();
  const link = (key, text) =>
    h("a", { href: `#${key}`, "aria-current": key === view && "page" }, text);
  morph($("head"), h("header", { id: "head" },
    h("h1", title), h("nav", link("league", "Everything"), " ", link("wall", "Wall")),
    h("p", { id: "now" }, now()), h(`p.${kind ?? ""}`, { id: "notice", role: "status" }, text)));
}

// ---------------------------------------------------------------------------- the lobby

/** Returns what is wrong with an agent before the start. */
function trouble({ reachable, rehearsal, trouble: why }) {
  if (reachable === false) return `does not answer: it ${why}`;
  return rehearsal && !rehearsal.startsWith("plays") && `would lose: it ${rehearsal}`;
}

/** Returns the address to join: the page's, if the manager only knows one of its own machine. */
function address() {
  const own = league.league.register_at.replace("/mcp", "");
  const isNear = /\/(127\.|localhost|\[::1)/.test(own);
  return isNear ? new URL(".", location).href.slice(0, -1) : own;
}

/** Returns the two lines with which a student joins. They are broken only between two words. */
function command(system, curl, python) {
  const url = address();
  const stay = league.league.players_awaited ? "" : " --stay";
  const lines = [
    `${curl} -O "${url}/{player,league_player}.py"`,
    `${python} player.py --manager ${url} --display-name NAME${stay}`
  ];
  const words = line => line.split(" ").map(word => [h("span.word", word), " "]);
  return h("div", h("p.bar", h("b", system), h("button.copy", "Copy")),
    h("pre", lines.map(line => h("code", words(line)))));
}

function lobby() {
  const here = players();
  const referees = league.agents.length - here.length;
  const slots = Math.max(12, league.league.players_awaited ?? 0, here.length);
  const troubled = league.agents.filter(trouble);
  const box = agent => h(`li.${troubled.includes(agent) ? "failed" : ""}`,
    badge(agent.id), h("bdi", called(agent.id)), agent.rehearsal && !trouble(agent) && " ✓");
  return [
    section("Join", h("p.address", { "--letters": address().length }, address()),
      command("macOS, Linux", "curl", "python3"),
      command("Windows, in PowerShell", "curl.exe", "py"),
      soft("Write your own choose into player.py, and put your name in the place of NAME.")),
    section(`Who is here: ${count(here.length, "player")}, ${count(referees, "referee")}`,
      fit(slots, Math.ceil(Math.sqrt(slots / 4)), h("ol.names", here.map(box))),
      h("ul", troubled.map(agent => h("li", name(agent.id), " ", trouble(agent)))),
      soft("✓ has played a trial match.")),
  ];
}

// ---------------------------------------------------------------------------- parts of a league

/** Returns the first three on steps, and at the end all champions, if several share the rank. */
function podium() {
  const isChampion = row => isOver() && rankOf(row) === "1=";
  const isBest = (row, n) => league.matches_completed > 0 && (n < 3 || isChampion(row));
  const best = league.standings.filter(isBest);
  const isShared = best.some(isChampion);
  const step = row => h("li", { "--rank": parseInt(rankOf(row), 10), ...hue(row.player_id) },
    badge(row.player_id), h("bdi", called(row.player_id)),
    h("b", rankOf(row), h("small", count(row.points, "point"))));

  const champion = isShared ? "Champions, equal in everything" : "Champion";
  return wide(isOver() ? champion : "In the lead",
    h(`ol.podium.${isShared ? "shared" : ""}`, { "--rows": Math.ceil(best.length / 10) },
      best.map(step)));
}

function standings(title, rows) {
  const columns = [
    ["#", rankOf, "n"],
    ["Player", row => who(row.player_id), "name"],
    ["Points", row => h("b", row.points), "n"],
    ["Course", row => sparkline(row.player_id), "broad"],
    ["W-D-L", row => `${row.wins}-${row.draws}-${row.losses}`, "n.why"],
    ["T", row => technical(row.player_id) || "", "n.broad"],
  ];
  return section(title, table("The table, best first", columns, rows),
    soft("T counts technical losses, which are among the losses; = stands at players that are ",
      "equal in everything. Course: points above the average, round by round."));
}

/** Returns what the choices of players were worth, and what they got. */
function luck(standings) {
  if (!drawsNumbers()) return false;
  const rows = standings.map(({ player_id: id, points: dot }) => {
    const luck = luckOf[id];
    const ring = dot - luck;
    const [from, to] = [Math.min(ring, dot), Math.max(ring, dot)];
    const text = `${luck > 0 ? "+" : ""}${points(luck)}`;
    return { who: who(id), from, to, ring, dot, text, side: luck < 0 ? "less" : "more" };
  });
  const worth = Object.values(league.worth).flat();
  const [different, same] = [Math.max(...worth), Math.min(...worth)].map(points);
  return section("Luck: from ○ choices to ● points", fit(rows.length, 1, picture(rows)),
    soft("A ring shows what a player's choices were worth before the numbers were drawn: ",
      different, " where the two choices differed, ", same, " where they were the same. ",
      "The bar to its points is luck. A different choice is worth as much to the rival."));
}

/** Returns the open round, or the round so many before it. */
function openRound(back = 0) {
  const round = league.current_round - back;
  const matches = matchesIn(round);
  if (matches.length === 0) return false;
  const busy = matches.flatMap(rivals);
  const idle = ids().find(id => !busy.includes(id));
  return section(`Round ${round}`, fit(matches.length, 1, meetings(matches)),
    idle && soft(name(idle), " rests"));
}

/**
 * Returns the technical losses of some players, and who does not answer. Reasons of a player that
 * differ only in what they quote share a row.
 */
function losses(wanted) {
  const found = {};
  for (const match of played.filter(isLost)) {
    if (match.reason?.includes("by the operator")) continue;
    for (const id of rivals(match)) {
      if (!failed(match, id) || !wanted.includes(id)) continue;
      const why = reason(match, id);
      const key = id + why.replace(QUOTED, "…");
      found[key] ??= { id, why, matches: [] };
      found[key].matches.push(match);
    }
  }
  const rows = Object.values(found).sort((a, b) => b.matches.length - a.matches.length);
  const silent = isOver() ? [] : league.agents.filter(agent => agent.reachable === false);
  if (rows.length + silent.length === 0) return false;

  const links = loss => loss.matches.slice(0, 8).map(match => [trace(match, match.match_id), " "]);
  const columns = [
    ["Player", loss => who(loss.id), "name"],
    ["Times", loss => loss.matches.length, "n"],
    ["Why", loss => loss.why, "why"],
    ["Matches", links, "broad"],
  ];
  return wide("Technical losses",
    rows.length > 0 && table("Technical losses", columns, rows.slice(0, MAX_LOSSES)),
    silent.map(agent => soft(name(agent.id), " does not answer: it ", agent.trouble)));
}

/** Returns the cross table. */
function cross() {
  const all = ids();
  const met = {};
  for (const match of matches) for (const id of rivals(match)) met[id + rival(match, id)] = match;

  const cell = (id, other) => {
    const match = met[id + other];
    if (!match) return id === other && { class: "cell self" };
    const [how, letter] = outcome(match, id);
    return [{ class: `cell ${how}` }, letter && trace(match, letter)];
  };
  const head = id => [{ title: called(id) }, badge(id), h("span.unseen", called(id))];
  const columns = all.map(other => [head(other), id => cell(id, other), "cell"]);
  const content = () => [
    table("A row and a column for each player", [["Player", who, "name"], ...columns], all),
    soft("A row shows a player's results: W won, D drew, L lost, T lost technically."),
  ];
  return wide("Who met whom", more("cross", "Each pair", content, all.length <= MAX_OPEN));
}

function rounds() {
  const round = ({ round_id: id, matches }) =>
    more(`round${id}`, `Round ${id}: ${done(matches)}`, () => meetings(matches), false);
  return wide("All rounds", h("div.all", league.rounds.map(round)));
}

function rules() {
  const { scoring } = league.league;
  const ties = [...scoring.tiebreakers, "id"].join(", ").replaceAll("_", " ");
  const file = name => [h("a", { href: name }, name), " "];
  return wide("Rules and files",
    h("p", league.league.game, ": points for a win ", scoring.win_points, ", for a draw ",
      scoring.draw_points, ", for a loss ", scoring.loss_points, ", for a technical loss ",
      scoring.technical_loss_points, ". Players with equal points are ordered by ", ties, "."),
    h("p", !IS_REPORT && ["report.html", "results.csv", "standings.csv"].map(file)));
}

// ---------------------------------------------------------------------------- a practice

/** Returns the players that are judged, best first: the user's own in a practice, or all. */
function judged() {
  const names = league.league.practice?.own ?? [];
  const own = ids().filter(id => names.includes(byId.get(id)?.display_name));
  return own.length > 0 ? own : ids();
}

/**
 * Returns the points of each match by pair: the expected ones if the game draws numbers. A
 * technical loss counts 0.
 */
function valuesByPair() {
  const found = { all: [] };
  for (const match of played) {
    for (const id of rivals(match)) {
      const isExpected = drawsNumbers() && !failed(match, id);
      const value = isExpected ? expectedPoints(match, id) : match.score[id];
      if (value === undefined) continue;
      (found[id + rival(match, id)] ??= []).push(value);
      found.all.push(value);
    }
  }
  return found;
}

/** Returns the mean of some numbers, and its standard error. */
function sample(numbers = []) {
  const n = numbers.length;
  const mean = sum(numbers) / Math.max(1, n);
  const squares = sum(numbers.map(value => (value - mean) ** 2));
  return { mean, error: n > 1 ? Math.sqrt(squares / (n - 1) / n) : 0 };
}

/** Returns the points per match with which players are compared. */
function reference() {
  const coin = Object.values(league.worth).map(both => both[0]);
  const at = sample(drawsNumbers() ? coin : valuesByPair().all).mean;
  return { at, text: `${drawsNumbers() ? "a coin" : "the average"} (${points(at)})` };
}

/** Returns the picture that answers whether a player is better than a coin. */
function answer() {
  const line = reference();
  const values = valuesByPair();
  const own = judged();
  const others = ids().filter(id => !own.includes(id));
  const opponents = others.length > 0 ? others : own;

  const row = (id, against, shown) => {
    const { mean, error } = sample(against.flatMap(other => values[id + other] ?? []));
    const isLike = Math.abs(mean - line.at) <= 2 * error;
    const side = isLike ? "like" : mean > line.at ? "more" : "less";
    const [from, to] = [mean - 2 * error, mean + 2 * error];
    return { id, who: shown, from, to, dot: mean, text: mean.toFixed(2), side };
  };
  const fails = id => technical(id) > 0 && h("span.tag", `${technical(id)} failed`);
  const rows = own.map(id => row(id, opponents, [who(id), fails(id)]));
  rows.sort((a, b) => b.dot - a.dot);
  const part = (side, words) => {
    const named = rows.filter(row => row.side === side).map(row => name(row.id));
    return named.length > 0 && [words, line.text, ": ", named.join(", "), ". "];
  };
  const parts = [part("more", "Better than "), part("like", "Like "), part("less", "Worse than ")];

  const [verdict, ...rest] = (league.comparison ?? "").trim().split("\n");
  const pair = (id, other) => id !== other && row(id, [other], [badge(id), "–", who(other)]);
  const pairs = () => own.flatMap(id => opponents.map(other => pair(id, other))).filter(Boolean);
  return wide("Is it better?", h("p.verdict", verdict || parts), picture(rows, line),
    soft(drawsNumbers() ? "Expected points" : "Points", " per match; a technical loss counts 0. ",
      "A bar is two standard errors long to each side: where it crosses the line, luck alone can ",
      "do this."),
    more("pairs", "Against each rival", () => picture(pairs(), line), own.length === 1),
    rest.length > 0 && more("rest", "In numbers", () => h("pre", rest.join("\n")), false));
}

// ---------------------------------------------------------------------------- views

/** Returns the table for a projector. */
function ranks() {
  const rows = league.standings;
  const columns = 1 + (rows.length > 18) + isOver();
  const row = row => h("li", { "data-key": row.player_id },
    h("span.n", rankOf(row)), who(row.player_id),
    columns < 2 && sparkline(row.player_id), h("b", row.points));
  return h("section", { "aria-label": "The table" },
    fit(rows.length, columns, h("ol.ranks", rows.map(row))));
}

/** Returns one player with its matches. */
function sheet() {
  const row = league.standings.find(row => row.player_id === view);
  if (!row) return wide(`${view} is no player of this league`);
  const own = matches.filter(match => rivals(match).includes(view));
  return [
    standings([badge(view), " ", h("bdi", called(view)), h("span.soft", ` ${view}`)], [row]),
    luck([row]),
    wide("Matches", meetings(own, view)),
    losses([view]),
  ];
}

const VIEWS = {
  lobby,
  sheet,
  wall() {
    const many = players().length > 2 * MAX_ROWS ? "many" : "";
    return [ranks(), h(`div.rows.${many}`, openRound(), openRound(1))];
  },
  end: () => [podium(), ranks(), luck(league.standings.slice(0, 8)) || openRound()],
  league() {
    const all = league.standings;
    const aside = h("div.rows", openRound(), luck(all));
    return [podium(), standings("Table", all), aside, cross(), rounds(), losses(ids()), rules()];
  },
  practice() {
    // The players of a comparison meet unequal numbers of rivals, so its table says nothing.
    const all = league.standings;
    const isComparison = league.league.practice?.is_comparison;
    const table = isComparison ? [] : [standings("Table", all), luck(all)];
    return [answer(), table, losses(ids()), rules()];
  },
};

/** Chooses the view that the address names. A match opens over the current view. */
function chooseView() {
  const asked = location.hash.slice(1);
  if (/^(wall|league|P\d+)$/.test(asked)) view = asked;
  else if (!asked) view = "league";
}

/** Returns the view that shows the league now. */
function currentView() {
  if (isLobby()) return "lobby";
  if (view.startsWith("P")) return "sheet";
  if (view === "wall") return isOver() ? "end" : "wall";
  return isRepeated() ? "practice" : "league";
}

function draw() {
  const places = placesOfRows();
  const scene = currentView();
  document.body.className = view === "wall" ? "full" : "";
  drawHead();
  morph($("view"), h(`main.${scene}`, { id: "view", "data-scene": scene + view }, VIEWS[scene]()));
  slide(places);
}

/** Returns the place of each row of a player on the screen. */
function placesOfRows() {
  const rows = [...document.querySelectorAll("[data-key]")];
  return new Map(rows.map(row => [row.dataset.key, [row, row.getBoundingClientRect()]]));
}

/** Lets rows slide to their new places. They stand there already, so the layout never moves. */
function slide(places) {
  if (matchMedia("(prefers-reduced-motion)").matches) return;
  for (const [key, [row, now]] of placesOfRows()) {
    const old = places.get(key)?.[1] ?? now;
    const [x, y] = [old.left - now.left, old.top - now.top];
    if (x === 0 && y === 0) continue;
    const transform = [`translate(${x}px, ${y}px)`, "none"];
    row.animate({ transform }, { duration: 700, easing: "ease-in-out" });
  }
}

/** Takes a newer document. It is complete, except that it has only the rounds that have changed. */
function update(newest) {
  const rounds = [];
  for (const round of [...(league?.rounds ?? []), ...newest.rounds]) {
    rounds[round.round_id - 1] = round;
  }
  take({ ...newest, rounds: rounds.slice(0, newest.total_rounds) });
  if (league.now) clock = Date.parse(league.now) - Date.now();

  matches = league.rounds.flatMap(round => round.matches);
  played = matches.filter(match => match.ending);
  addUpRounds();
  addUpLuck();
}

// ---------------------------------------------------------------------------- what was said

/**
 * Returns the lanes of a diagram, and its steps: who said what to whom. The n-th lane is the
 * column 11 + 10 n; behind the lanes stands what was said.
 */
function readDiagram(diagram) {
  const [head, ...rows] = diagram.split("\n");
  const lanes = head.slice(10).match(/\S+/g) ?? [];
  const end = 2 + 10 * lanes.length;
  const steps = rows.map(row => {
    const ms = row.slice(0, 8);
    if (!row.startsWith(" |", 10)) return { ms, text: row.slice(10) };
    const text = row.slice(end);
    const arrow = /\|[<x]?-+[>x]?\|/.exec(row.slice(0, end));
    if (!arrow) return { ms, text };

    const drawn = arrow[0];
    const left = (arrow.index - 11) / 10;
    const right = left + (drawn.length - 1) / 10;
    return { ms, text, left, right, isLeft: drawn[1] !== "-", isBroken: drawn.includes("x") };
  });
  return [lanes, steps];
}

/** Returns a step as an arrow between the lanes, in the colour of its player. */
function step({ ms, text, left, right, isLeft, isBroken }, lanes) {
  if (left === undefined) return h("li", h("span.n", ms), h("span.note", text));
  const [from, to] = isLeft ? [lanes[right], lanes[left]] : [lanes[left], lanes[right]];
  const own = [from, to].find(lane => lane.startsWith("P"));
  const classes = `${isLeft ? "left" : ""}.${isBroken ? "broken" : own && "own"}`;
  const columns = { "--from": left + 1, "--to": right + 2, ...(own && hue(own)) };
  const words = [called(from), " to ", called(to), isBroken && ", which failed", ": "];
  return h("li", h("span.n", ms),
    h("span.lanes", h("span.unseen", words), h(`i.arrow.${classes}`, columns)),
    h("span.said", text));
}

/** Returns what was said in a match. */
function talk(match, diagram) {
  const [lanes, steps] = readDiagram(diagram);
  const position = league.positions[match.match_id];
  const heads = lanes.map(lane => h("b.who", lane.startsWith("P") && badge(lane), called(lane)));
  return [
    h("p.bar", h("h2", { id: "h-talk" }, "What was said in ", match.match_id),
      h("button", { id: "close" }, "Close")),
    meeting(match),
    h("p", sentence(match)),
    position !== undefined && board(position),
    h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Messages" },
      h("ol.talk", { "--lanes": Math.max(1, lanes.length) },
        h("li", h("span.n", "ms"), h("span.lanes", heads)),
        steps.map(one => step(one, lanes)))),
  ];
}

/**
 * Opens the match that the address names, for instance R1M1. While the manager traces another
 * one, the page asks again.
 */
async function openMatch() {
  const dialog = $("talk");
  const id = location.hash.slice(1);
  const match = matches.find(match => match.match_id === id);
  if (!match || !traceOf(match)) return dialog.close();

  const show = diagram => morph(dialog,
    h("dialog", { id: "talk", "aria-labelledby": "h-talk", open: "" }, talk(match, diagram)));
  if (!dialog.open) dialog.showModal();
  show(IS_REPORT ? league.traces[id] : "");
  while (!IS_REPORT) {
    const reply = await fetch(`trace/${id}`, { cache: "no-store" }).catch(() => undefined);
    const diagram = reply?.ok ? await reply.text() : "\n          There is no log of it here.";
    if (location.hash !== `#${id}`) return;
    if (reply?.status !== 503) return show(diagram);
    await new Promise(done => setTimeout(done, 1000));
  }
}

// ---------------------------------------------------------------------------- events and polling

/** Asks the manager for what has changed since our version; a lobby has no rounds yet. */
async function poll() {
  try {
    const since = isLobby() ? 0 : league.version;
    const options = { cache: "no-store", signal: AbortSignal.timeout(5000) };
    const reply = await fetch(`league.json?since=${since}`, options);
    const newest = await reply.json();
    failures = 0;
    if (newest.version !== league.version) {
      update(newest);
      draw();
    }
  } catch {
    failures += 1;
  }
  setTimeout(poll, document.hidden ? 5000 : 1000);
}

addEventListener("click", ({ target }) => {
  if (target.id === "close") $("talk").close();
  if (target.className !== "copy") return;
  // The newer way to copy is not allowed to a page of another machine without encryption.
  getSelection().selectAllChildren(target.parentElement.nextElementSibling);
  target.textContent = document.execCommand("copy") ? "Copied" : "Marked";
});
document.addEventListener("toggle", draw, true); // it does not bubble
$("talk").addEventListener("close", () => {
  if (location.hash.startsWith("#R")) location.hash = view;
});
addEventListener("hashchange", () => {
  chooseView();
  draw();
  openMatch();
});
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  draw();
});

update(DATA);
chooseView();
draw();
openMatch();
if (!IS_REPORT) {
  setInterval(drawHead, 500);
  setTimeout(poll, 1000);
}
