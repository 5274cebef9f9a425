// Shows a league. Its data are in the page, so it is complete as soon as it is loaded; a live page then asks the
// manager every second for changes, a saved report asks nothing.

const WALL_WIDTH = 1700; // minimum width of a window that shows the wall by default
const MAX_OPEN = 16; // maximum number of players whose cross table is open from the start
const MAX_ROWS = 9; // maximum number of matches below each other in half of the wall

let lines; // by player: its points above the average after each complete round
let before; // by player: its points before the newest round
let view = "league"; // league, wall, or the id of a player
let failures = 0; // requests without an answer, one after the other
let clock = 0; // the manager's clock minus ours, in milliseconds

const points = number => number === undefined ? "" : String(Math.round(number * 100) / 100);
const signed = number => `${number > 0 ? "+" : ""}${points(number)}`;

const keyed = () => [...document.querySelectorAll("[data-key]")];
/** Lets rows slide to their new places. Rows are written where they stand, so the layout itself never moves. */
function slide(from) {
  if (matchMedia("(prefers-reduced-motion)").matches) return;
  const rows = keyed();
  rows.forEach(row => row.getAnimations().forEach(animation => animation.cancel()));
  for (const row of rows) {
    const now = row.getBoundingClientRect(), old = from.get(row.dataset.key) ?? now;
    const transform = [`translate(${old.left - now.left}px, ${old.top - now.top}px)`, "none"];
    if (old.top !== now.top || old.left !== now.left) row.animate({ transform }, { duration: 700, easing: "ease-in-out" });
  }
}

// ------------------------------------------------------------------------------------------- reading the league

const allMatches = () => league.rounds.flatMap(round => round.matches);
const played = () => allMatches().filter(match => match.ending);
const ids = () => league.standings.map(row => row.player_id);
const done = matches => `${matches.filter(match => match.ending).length} of ${count(matches.length, "match")} over`;
const isLobby = () => league.status === "waiting";
const rankOf = row => league.matches_completed ? league.ranks[row.rank - 1] : String(row.rank);
const technical = id => byId.get(id)?.technical_losses ?? 0;
/** Returns true if the game draws numbers: only then there are expected points and luck. */
const drawsNumbers = () => Object.keys(league.worth).length > 0;
/** Returns true if pairs meet more than once, as in a practice: then means say more than single results. */
const isRepeated = () => league.total_matches > players().length * (players().length - 1) / 2;

/** Returns the expected points of a player in a match; none if no number was drawn. */
function expectedPoints(match, id) {
  const both = rivals(match), pair = both.map(id => choice(match, id)).join(" ");
  return match.drawn_number ? league.worth[pair]?.[both.indexOf(id)] : undefined;
}
/** Returns the points that a player got beyond its expected points, where a number was drawn. */
function luckOf(id) {
  const drawn = played().filter(match => match.drawn_number && rivals(match).includes(id));
  return drawn.reduce((sum, match) => sum + match.score[id] - expectedPoints(match, id), 0);
}
/** Returns the points above the average after each complete round, and the points before the newest with a result. */
function course() {
  const sums = Object.fromEntries(ids().map(id => [id, 0])), found = Object.fromEntries(ids().map(id => [id, [0]]));
  let old = null, last = null;
  for (const { matches } of league.rounds) {
    if (!matches.some(match => match.ending)) break;
    [last, old] = [{ ...sums }, last];
    for (const { score } of matches) for (const id in score) sums[id] += score[id];
    const average = ids().reduce((sum, id) => sum + sums[id], 0) / ids().length;
    if (matches.every(match => match.ending)) ids().forEach(id => found[id].push(sums[id] - average));
  }
  return [found, old && last];
}
/** Returns an arrow if a place has changed since then, by points alone. */
function change(row) {
  const above = points => league.standings.filter(other => points(other) > points(row)).length;
  const gained = before ? above(other => before[other.player_id]) - above(other => other.points) : 0;
  const [way, sign] = gained > 0 ? ["up", "▲"] : ["down", "▼"];
  return h(`span.${way}`, gained !== 0 && sign + Math.abs(gained));
}

// ------------------------------------------------------------------------------------------- parts

/** Returns a player's letter and name, as a link to its sheet. */
function who(id) {
  return h("a.who", { href: `#${id}` }, badge(id), h("bdi", called(id)), byId.get(id)?.removed && h("span.tag", "removed"));
}
const trace = (match, text) => h("a", { href: traceOf(match), title: sentence(match) }, text);

/** Returns a table. A column is its head, the content of its cell in a row, and its classes; the class `name` is the head of the row. */
function table(label, columns, rows) {
  const shown = columns.filter(Boolean);
  return h("div.scroll", { tabindex: 0, role: "group", "aria-label": label }, h("table",
    h("thead", h("tr", shown.map(([head, , classes]) => h(`th.${classes ?? ""}`, { scope: "col" }, head)))),
    h("tbody", rows.map(row => h("tr", { "data-key": row.player_id },
      shown.map(([, cell, classes]) => h(`${classes === "name" ? "th" : "td"}.${classes ?? ""}`, cell(row))))))));
}

/** Returns a picture: for each row a dot, a bar between two values and perhaps a ring, on one scale, with a line through all. */
function picture(rows, line) {
  const all = rows.flatMap(row => [row.from, row.to]).concat(line?.at ?? []);
  const low = Math.min(...all), wide = Math.max(...all) - low || 1;
  const at = value => `${100 * (value - low) / wide}%`;
  const mark = (kind, value, to, text) => value !== undefined && h(`i.${kind}`, { "--at": at(value), "--to": at(to) }, text);
  return h("ol.picture", line && h("li", h("span"), h("span.axis", mark("label", line.at, 0, line.text))),
    rows.map(row => h(`li.${row.side}`, h("span.who", row.who), h("span.axis", mark("line", line?.at), mark("reach", row.from, row.to),
      mark("dot", row.dot), mark("ring", row.ring)), h("b", row.text))));
}
/** Returns the course of a player through the league: its points above the average. */
function sparkline(id) {
  const all = Object.values(lines).flat(), top = Math.max(1, ...all), low = Math.min(-1, ...all);
  const y = value => 1 + 28 * (top - value) / (top - low);
  const at = lines[id].map((value, n) => `${100 * n / league.total_rounds},${y(value)}`);
  return h("svg.course", { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": true, ...hue(id) },
    h("line", { x2: 100, y1: y(0), y2: y(0) }), h("polyline", { points: at.join(" ") }));
}
/** Returns a part that the reader can open. Its content is made only when it is open. */
const more = (id, summary, content, isOpen = false) =>
  h("details", { id, open: isOpen && "" }, h("summary", summary), ($(id)?.open ?? isOpen) && content());
/** Fills a box of the wall with rows: the style chooses the largest letters with which they fit. */
const fit = (rows, columns, content) => h("div.fit", { "--rows": Math.ceil(rows / columns), "--columns": columns }, content);

// ------------------------------------------------------------------------------------------- the head

/** Returns the line about the open round. */
function now() {
  const { current_round: round, total_rounds: rounds, next_at: next } = league, awaited = league.league.players_awaited;
  if (isLobby()) return `${players().length}${awaited ? ` of ${awaited}` : ""} players here`;
  if (isOver()) return `The league is over: ${count(league.matches_completed, "match")}`;
  if (!next || league.paused || failures > 1) return `Round ${round} of ${rounds}: ${done(league.rounds[round - 1]?.matches ?? [])}`;
  const left = Math.ceil((Date.parse(next) - Date.now() - clock) / 1000);
  return `Round ${round} of ${rounds} begins ${left > 0 ? `in ${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}` : "now"}`;
}
/** Returns the line below it and its class. It is never empty, so nothing moves. */
function notice() {
  const isCut = league.matches_completed < league.total_matches && !league.league.practice;
  if (isOver()) return [isCut ? "it was ended before all matches were played" : "all is played"];
  if (failures > 1) return ["the manager does not answer; this is how it was last", "lost"];
  if (league.paused) return ["paused by the operator", "lost"];
  if (isLobby()) return [league.reason ?? "enough are here to start", "waiting"];
  if (league.next_at) return ["next round: these are the pairs"];
  const until = league.reason?.match(/(?<=\(until )[\d:]+( UTC)?/g)?.sort().at(-1);
  if (!until) return league.reason ? [league.reason, "waiting"] : ["all is well"];
  return [`in play until ${until} at most`, "waiting"];
}
function drawHead() {
  const title = [league.league.display_name, league.league.name].filter(Boolean).join(" · ");
  const [text, classes] = notice();
  document.title = `${sanitize(title)}: ${league.status}`;
  const link = (key, text) => h("a", { href: `#${key}`, "aria-current": key === view && "page" }, text);
  morph($("head"), h("header", { id: "head" }, h("h1", title), h("nav", link("league", "Everything"), " ", link("wall", "Wall")),
    h("p", { id: "now" }, now()), h(`p.${classes ?? ""}`, { id: "notice", role: "status" }, text)));
}

// ------------------------------------------------------------------------------------------- the lobby

function lobby() {
  const { register_at, players_awaited: awaited } = league.league, registered = players();
  const own = register_at.replace("/mcp", ""), isNear = /\/(127\.|localhost)/;
  const address = isNear.test(own) && !isNear.test(location.origin) ? String(new URL(".", location)).slice(0, -1) : own;
  const slots = Math.max(12, awaited ?? 0, registered.length);
  const trouble = ({ reachable, rehearsal, trouble: why }) => reachable === false ? `does not answer: it ${why}`
    : rehearsal && !rehearsal.startsWith("plays") && `would lose: it ${rehearsal}`;
  const command = (system, curl, python) => {
    const words = [`${curl} -O "${address}/{player,league_player}.py"`, `${python} player.py --manager ${address} --display-name NAME${awaited ? "" : " --stay"}`];
    return h("div", h("p.bar", h("b", system), h("button.copy", "Copy")),
      h("pre", { tabindex: 0 }, words.map(line => h("code", line.split(" ").map(word => [h("span.word", word), " "])))));
  };
  return [
    section("Join", h("p.address", address), command("macOS, Linux", "curl", "python3"), command("Windows, in PowerShell", "curl.exe", "py"),
      soft("Write your own choose into player.py, and put your name in the place of NAME.")),
    section(`Who is here: ${count(registered.length, "player")}, ${count(league.agents.length - registered.length, "referee")}`,
      fit(slots, Math.ceil(Math.sqrt(slots / 4)), h("ol.names", registered.map(agent =>
        h(`li.${trouble(agent) ? "failed" : ""}`, badge(agent.id), h("bdi", called(agent.id)))))),
      h("ul", league.agents.filter(trouble).map(agent => h("li", name(agent.id), " ", trouble(agent))))),
  ];
}

// ------------------------------------------------------------------------------------------- parts of a league

/** Returns the first three on steps, the champion in the largest letters. */
function podium() {
  return wide(isOver() ? "Champion" : "In the lead",
    h("ol.podium", league.standings.slice(0, league.matches_completed && 3).map(row => h("li", hue(row.player_id), badge(row.player_id),
      h("bdi", called(row.player_id)), h("b", rankOf(row), h("small", count(row.points, "point")))))));
}
function standings() {
  return section("Table", table("The table, best first", [
    ["#", rankOf, "n"], ["▲▼", change, "broad"], ["Player", row => who(row.player_id), "name"], ["Points", row => h("b", row.points), "n"],
    ["Course", row => sparkline(row.player_id), "broad"], ["W-D-L", row => `${row.wins}-${row.draws}-${row.losses}`, "n.why"],
    ["T", row => technical(row.player_id) || "", "n.broad"],
  ], league.standings),
  soft("T counts technical losses, which are among the losses; = stands at players that are equal in everything. Course: points above the average, round by round."));
}
function luck(most) {
  const values = Object.values(league.worth).flat();
  const rows = league.standings.slice(0, most).map(({ player_id: id, points: dot }) => {
    const luck = luckOf(id), ring = dot - luck;
    return { who: who(id), from: Math.min(ring, dot), to: Math.max(ring, dot), ring, dot, text: signed(luck), side: luck < 0 ? "less" : "more" };
  });
  return drawsNumbers() && section("Luck: from ○ choices to ● points", fit(rows.length, 1, picture(rows)),
    soft("A ring shows what a player's choices were worth before the numbers were drawn: ", points(Math.max(...values)), " where the two choices differed, ",
      points(Math.min(...values)), " where they were the same. The bar to its points is luck. A different choice is worth as much to the rival."));
}
/** Returns the open round, or the round so many before it. */
function openRound(back = 0) {
  const round = league.current_round - back, matches = league.rounds[round - 1]?.matches ?? [];
  const idle = ids().find(id => !matches.flatMap(rivals).includes(id));
  return matches.length > 0 && section(`Round ${round}`, fit(matches.length, 1, meetings(matches)), idle && soft(name(idle), " rests"));
}
/** Returns the technical losses: a row for each player and kind of reason, whatever it quotes, the most frequent first. */
function losses(ids) {
  const found = {};
  for (const match of played()) {
    for (const id of ids.filter(id => rivals(match).includes(id) && failed(match, id) && !/by the operator/.test(match.reason))) {
      const text = reason(match, id), key = id + text.replace(/([\x22\x27\x60]).*?\1|\d+/g, "…");
      found[key] ??= { id, text, matches: [] };
      found[key].matches.push(match);
    }
  }
  const rows = Object.values(found).sort((a, b) => b.matches.length - a.matches.length).slice(0, 40);
  const notes = league.agents.filter(agent => agent.reachable === false && !isOver()).map(agent => [name(agent.id), " does not answer: it ", agent.trouble]);
  return rows.length + notes.length > 0 && wide("Technical losses", table("Technical losses", [
    ["Player", loss => who(loss.id), "name"], ["Times", loss => loss.matches.length, "n"], ["Why", loss => loss.text, "why"],
    ["Matches", loss => loss.matches.slice(0, 8).map(match => [trace(match, match.match_id), " "]), "broad"],
  ], rows), notes.map(soft));
}

/** Returns the cross table: results, or in a practice the means of each pair as a map of colours. */
function cross() {
  const repeated = isRepeated(), rows = repeated ? ids().filter(id => judged().includes(id)) : ids();
  const others = rows.length < ids().length ? ids().filter(id => !rows.includes(id)) : ids();
  const { at: middle, text: coin } = reference(), values = valuesByPair();
  const result = (id, other, match) => {
    const [how, letter] = outcome(match, id);
    return [{ class: `cell ${how}` }, letter && trace(match, letter)];
  };
  const heat = (id, other) => {
    const { mean } = sample(values[id + other]), share = `${Math.min(100, 200 * Math.abs(mean - middle))}%`;
    return [{ class: `cell ${mean > middle ? "above" : "below"}`, "--share": share }, mean.toFixed(2)];
  };
  const met = Object.fromEntries(allMatches().flatMap(match => rivals(match).map(id => [id + rival(match, id), match])));
  const cell = (id, other) => id === other ? { class: "cell self" } : met[id + other] && (repeated ? heat : result)(id, other, met[id + other]);
  return wide(repeated ? "Who does well against whom" : "Who met whom",
    more("cross", "Each pair", () => [
      table("A row and a column for each player", [["Player", who, "name"],
        ...others.map(other => [[{ title: called(other) }, badge(other), h("span.unseen", called(other))], id => cell(id, other), "cell"])], rows),
      soft(repeated ? ["A cell shows what the player of its row got in a match against the player of its column, on average: green is more than ", coin, ", orange is less."]
        : "A row shows a player's results: W won, D drew, L lost, T lost technically."),
    ], ids().length <= MAX_OPEN));
}
const rounds = () => wide("All rounds", h("div.all", league.rounds.map(({ round_id: round, matches }) =>
  more(`round${round}`, [`Round ${round}: `, done(matches)], () => meetings(matches)))));
function rules() {
  const { win_points: win, draw_points: draw, loss_points: loss, technical_loss_points: technical, tiebreakers } = league.league.scoring;
  const file = name => [h("a", { href: name }, name), " "];
  return wide("Rules and files", h("p", league.league.game, ": ", count(win, "point"), " for a win, ", draw, " for a draw, ", loss, " for a loss, ", technical,
    " for a technical loss. Players with equal points are ordered by ", tiebreakers.join(", ").replaceAll("_", " "), ", id", "."),
  soft(league.luck ?? ""), h("p", !IS_REPORT && file("report.html"), file("results.csv"), file("standings.csv")));
}

// ------------------------------------------------------------------------------------------- a practice

/** Returns the players that are judged: the user's own in a practice, or all. */
function judged() {
  const own = players().filter(agent => league.league.practice?.own.includes(agent.display_name));
  return (own.length ? own : players()).map(agent => agent.id);
}
/** Returns the points of each match by pair: the expected ones if a number was drawn; a technical loss counts 0. */
function valuesByPair() {
  const found = { all: [] };
  for (const match of played()) {
    for (const id of rivals(match)) {
      const value = drawsNumbers() && !failed(match, id) ? expectedPoints(match, id) : match.score[id];
      for (const key of value === undefined ? [] : ["all", id + rival(match, id)]) (found[key] ??= []).push(value);
    }
  }
  return found;
}
/** Returns the mean of some numbers, and its standard error. */
function sample(numbers = []) {
  const n = numbers.length, mean = numbers.reduce((sum, value) => sum + value, 0) / Math.max(1, n);
  const squares = numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, error: n > 1 ? Math.sqrt(squares / (n - 1) / n) : 0 };
}
/** Returns the points per match with which players are compared. */
function reference() {
  const at = sample(drawsNumbers() ? Object.values(league.worth).map(both => both[0]) : valuesByPair().all).mean;
  return { at, text: `${drawsNumbers() ? "a coin" : "the average"} (${points(at)})` };
}
/** Returns the picture that answers whether a player is better than a coin, and the answer of a comparison. */
function answer() {
  const line = reference(), values = valuesByPair(), own = judged();
  const others = ids().filter(id => !own.includes(id)), opponents = others.length ? others : own;
  const row = (id, against, shown) => {
    const { mean, error } = sample(against.flatMap(other => values[id + other] ?? []));
    const side = Math.abs(mean - line.at) <= 2 * error ? "like" : mean > line.at ? "more" : "less";
    return { id, who: shown, from: mean - 2 * error, to: mean + 2 * error, dot: mean, text: mean.toFixed(2), side };
  };
  const rows = own.map(id => row(id, opponents, [who(id), technical(id) > 0 && h("span.tag", `${technical(id)} failed`)])).sort((a, b) => b.dot - a.dot);
  if (own.length === 1) rows.push(...opponents.map(other => row(own[0], [other], [h("span.broad", "against"), who(other)])));
  const said = [["more", "Better than "], ["like", "Like "], ["less", "Worse than "]].map(([side, words]) => {
    const named = rows.slice(0, own.length).filter(row => row.side === side).map(row => name(row.id));
    return named.length > 0 && [words, line.text, ": ", named.join(", "), ". "];
  });
  const [verdict, ...rest] = (league.comparison ?? "").trim().split("\n");
  return wide("Is it better?", h("p.verdict", verdict || said), picture(rows, line),
    soft(drawsNumbers() ? "Expected points" : "Points", " per match; a technical loss counts 0. A bar is two standard errors long to each side: where it crosses the line, luck alone can do this."),
    rest.length > 0 && more("rest", "In numbers", () => h("pre", rest.join("\n"))));
}

// ------------------------------------------------------------------------------------------- views

/** Returns the table for a projector. */
function ranks() {
  const rows = league.standings, columns = 1 + (rows.length > 18) + isOver();
  return h("section", { "aria-label": "The table" }, fit(rows.length, columns, h("ol.ranks", rows.map(row => h("li", { "data-key": row.player_id },
    h("span.n", rankOf(row)), change(row), who(row.player_id), columns < 2 && sparkline(row.player_id), h("b", row.points))))));
}
function sheet() {
  const row = league.standings.find(row => row.player_id === view), agent = byId.get(view);
  if (!row) return section([view, " is no player of this league"]);
  const numbers = drawsNumbers(), { even = 0, odd = 0 } = agent.choices ?? {};
  const facts = {
    Rank: `${rankOf(row)} of ${ids().length}`, Points: row.points, Luck: numbers && signed(luckOf(view)), "Won, drew, lost": `${row.wins}, ${row.draws}, ${row.losses}`,
    "Lost technically": technical(view), "Chose even, odd": numbers && `${even}, ${odd}`,
  };
  return [
    wide([badge(view), " ", h("bdi", called(view)), h("span.soft", ` ${view} `), sparkline(view)], h("dl",
      Object.entries(facts).map(([head, fact]) => fact !== false && h("div", h("dt", head), h("dd", fact))))),
    wide("Matches", meetings(allMatches().filter(match => rivals(match).includes(view)), view)), losses([view]),
  ];
}
const VIEWS = {
  lobby, sheet,
  wall: () => [ranks(), h(`div.rows${players().length > 2 * MAX_ROWS ? ".many" : ""}`, openRound(), openRound(1))],
  end: () => [podium(), ranks(), luck(8) || openRound()],
  league: () => [podium(), standings(), h("div.rows", openRound(), luck()), cross(), rounds(), losses(ids()), rules()],
  practice: () => [answer(), cross(), ...league.league.practice?.is_comparison ? [] : [standings(), luck()], losses(ids()), rules()],
};

/** Chooses the view that the address names. A match opens over the current view. */
function chooseView() {
  const asked = location.hash.slice(1);
  if (/^(wall|league|P\d+)$/.test(asked)) view = asked;
  else if (!asked) view = !IS_REPORT && innerWidth >= WALL_WIDTH && !isRepeated() ? "wall" : "league";
}
function draw() {
  const from = new Map(keyed().map(row => [row.dataset.key, row.getBoundingClientRect()])), isWall = view === "wall", whole = isRepeated() ? "practice" : "league";
  const scene = isLobby() ? "lobby" : view.startsWith("P") ? "sheet" : !isWall ? whole : isOver() ? "end" : "wall";
  document.body.className = isWall ? "full" : "";
  drawHead();
  morph($("view"), h(`main.${scene}`, { id: "view", "data-scene": scene + view }, VIEWS[scene]()));
  slide(from);
}

/** Updates the league. A newer document is complete, except that it has only the rounds that have changed. */
function update(newest) {
  const known = new Map([...league?.rounds ?? [], ...newest.rounds].map(round => [round.round_id, round]));
  const current = [...known.values()].filter(round => round.round_id <= newest.total_rounds); // a new league may have fewer
  league = { ...newest, rounds: current.sort((a, b) => a.round_id - b.round_id) };
  if (league.now) clock = Date.parse(league.now) - Date.now();
  byId = new Map(league.agents.map(agent => [agent.id, agent]));
  [lines, before] = course();
}

// ------------------------------------------------------------------------------------------- what was said in a match

/** Returns the lanes of a diagram, and its steps: who said what to whom. */
function steps(diagram) {
  const [head, ...rows] = diagram.split("\n"), lanes = head.slice(10).match(/\S+/g) ?? [], end = 2 + 10 * lanes.length;
  return [lanes, rows.filter(row => !row.startsWith("dotted")).map(row => {
    const arrow = /\|[<x]?[-.]+[>x]?\|/.exec(row.slice(0, end)), label = row.includes("|") ? row.slice(end) : row;
    if (!arrow) return { label };
    const [left, right] = [arrow.index, arrow.index + arrow[0].length].map(at => Math.floor((at - 10) / 10));
    return { label, ms: row.slice(0, 8).trim(), left, right, isLeft: /\|[<x]/.test(arrow[0]), isBroken: arrow[0].includes("x") };
  })];
}
/** Returns a step as an arrow between the lanes, in the colour of the player that sends or receives it. */
function step({ label, ms, left, right, isLeft, isBroken }, lanes) {
  if (left === undefined) return h("li", h("span.note", label));
  const from = lanes[isLeft ? right : left], to = lanes[isLeft ? left : right], own = [from, to].find(lane => lane.startsWith("P"));
  return h("li", h("span.n", ms), h("span.lanes", h("span.unseen", called(from), " to ", called(to), isBroken && ", which failed", ": "),
    h(`i.arrow${isLeft ? ".left" : ""}${isBroken ? ".broken" : ""}${own ? ".own" : ""}`, { "--from": left + 1, "--to": right + 2, ...hue(own ?? "P01") })), h("span.said", label));
}
function talk(match, diagram) {
  const [lanes, rows] = steps(diagram), position = league.positions[match.match_id];
  return [h("p.bar", h("h2", { id: "h-talk" }, "What was said in ", match.match_id), h("button", { id: "close" }, "Close")),
    meeting(match), h("p", sentence(match)), position && board(position),
    h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Messages" }, h("ol.talk", { "--lanes": Math.max(1, lanes.length) },
      h("li", h("span.n", "ms"), h("span.lanes", lanes.map(lane => h("b.who", lane.startsWith("P") && badge(lane), called(lane))))), rows.map(row => step(row, lanes))))];
}
/** Opens the match that the address names, for instance R1M1. While the manager traces another one, it asks again. */
async function openMatch() {
  const id = location.hash.slice(1), dialog = $("talk"), match = allMatches().find(match => match.match_id === id);
  if (!match || !traceOf(match)) return dialog.close();
  const show = text => morph(dialog, h("dialog", { id: "talk", "aria-labelledby": "h-talk", open: "" }, talk(match, text)));
  if (!dialog.open) dialog.showModal();
  show(IS_REPORT ? league.traces[id] : "");
  while (!IS_REPORT && location.hash === `#${id}`) {
    const reply = await fetch(`trace/${id}`, { cache: "no-store" }).catch(() => null);
    if (reply?.status !== 503) return show(reply?.ok ? await reply.text() : "\nThe manager does not answer, or has no logs of it.");
    await new Promise(done => setTimeout(done, 1000));
  }
}

// ------------------------------------------------------------------------------------------- events and polling

/** Asks the manager for changes since our version; a lobby has no rounds yet. */
async function poll() {
  try {
    const reply = await fetch(`league.json?since=${isLobby() ? 0 : league.version}`, { cache: "no-store", signal: AbortSignal.timeout(5000) });
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
  if (!target.matches(".copy")) return;
  getSelection().selectAllChildren(target.parentElement.nextElementSibling);
  target.textContent = document.execCommand("copy") ? "Copied" : "Marked"; // the newer way is only for pages of this machine
});
document.addEventListener("toggle", draw, true); // it does not bubble
$("talk").addEventListener("close", () => {
  if (/^#R/.test(location.hash)) history.replaceState(null, "", `${location.pathname}${location.search}#${view}`);
});
addEventListener("hashchange", () => { chooseView(); draw(); openMatch(); });
addEventListener("beforeprint", () => { // on paper everything is open
  document.querySelectorAll("details").forEach(details => { details.open = true; });
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
