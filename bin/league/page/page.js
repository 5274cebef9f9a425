"use strict";
// Shows a league. Its data are in the page, so the page is complete as soon as it is loaded. A live page then asks the
// manager every second for changes; a saved report asks nothing.
//
// Texts of other people go through `sanitize` into text nodes, never into HTML. Elements are kept, and only differences are
// written, so nothing flickers or moves.

const $ = id => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const IS_REPORT = !("now" in DATA); // only a live page has a time
const ME = (new URLSearchParams(location.search).get("me") ?? "").toUpperCase();
const MAX_DETAILED = 16; // maximum number of players with details in the cross table
const WALL_WIDTH = 1700; // minimum width of a window that shows the wall by default
const MAX_ROUNDS = 100; // maximum number of rounds in a complete schedule
const MAX_RESULTS = 10; // maximum number of results on the wall
const COLOURS = 8;
const DASHES = ["", "9 4", "2 3", "12 3 2 3"]; // so that colour is not the only difference

let league; // the newest document
let byId; // its agents, by their ids
let pointsBeforeRound; // the points of its players before the newest round
const changedAt = new Map(); // the times at which a player was last seen to have played
let values; // the points of each match, by player and by pair of players, if pairs meet more than once
let view = "league"; // league, wall, or the id of a player

// ---------------------------------------------------------------------------------------------------------- texts

const HARMFUL = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2065\ufeff]/g;

/** Returns a text of others without control characters, also those that change the direction of writing. */
function sanitize(text) {
  return String(text ?? "").replace(HARMFUL, "\ufffd");
}

/** Returns true if another player has the same name. */
const isShared = id => players().some(agent => agent.id !== id && agent.display_name === byId.get(id)?.display_name);

/** Returns a player's name, between two marks that keep a name written from right to left apart from its line. */
function name(id, hasId = isShared(id)) {
  const displayName = byId.get(id)?.display_name;
  if (displayName === undefined) return id;
  return `\u2068${displayName.replace(/[\u2066-\u2069]/g, "\ufffd")}\u2069${hasId ? ` (${id})` : ""}`;
}

/** Returns `1 match`, `2 matches`. */
function count(n, noun) {
  if (n === 1) return `1 ${noun}`;
  return `${n} ${noun}${noun.endsWith("ch") || noun.endsWith("s") ? "es" : "s"}`;
}

/** Returns `a, b and c`. */
function list(texts) {
  return texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
}

/** Returns a number with at most two digits after the point: 12, 13.5; empty if there is none. */
const points = number => number === undefined ? "" : String(Math.round(number * 100) / 100);
const number = id => parseInt(id.replace(/\D/g, ""), 10);

/** Returns a player's name with at most `max` letters, and with its id if another player has the same name. */
function label(id, max = 19) {
  const displayName = byId.get(id)?.display_name ?? id;
  return isShared(id) ? `${displayName.slice(0, max - 6)} (${id})` : displayName.slice(0, max);
}

// ------------------------------------------------------------------------------------------------- writing elements

function setText(element, text) {
  const safe = sanitize(text);
  if (element.textContent !== safe) element.textContent = safe;
}
function show(element, shown) {
  if (element.hidden === shown) element.hidden = !shown;
}
function setClass(element, classes) {
  if (element.className !== classes) element.className = classes;
}
function setAttribute(element, key, value) {
  if (element.getAttribute(key) !== String(value)) element.setAttribute(key, value);
}
function make(tag, ...children) {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}

/** Gives a parent one child for each item, written by `write`. Old children are used again, so nothing moves. */
function fill(parent, items, create, write) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  while (parent.children.length < items.length) parent.append(create());
  items.forEach((item, n) => write(parent.children[n], item, n));
}

/** Writes a text into an element, as a link if there is an address. */
function link(element, text, address, label) {
  let anchor = element.firstElementChild;
  if (!address) {
    if (anchor) anchor.remove();
    return setText(element, text);
  }
  if (anchor?.tagName !== "A") element.replaceChildren(anchor = make("a"));
  setText(anchor, text);
  setAttribute(anchor, "href", address);
  if (label) setAttribute(anchor, "aria-label", sanitize(label)); else anchor.removeAttribute("aria-label");
}

/** Writes a player's name as a link to its view, with a tag if the operator has removed the player. */
function nameLink(cell, id) {
  if (!cell.firstElementChild) cell.append(make("bdi"), make("span"));
  link(cell.firstElementChild, byId.get(id)?.display_name ?? id, byId.get(id)?.kind === "player" ? `#${id}` : "");
  const tag = byId.get(id)?.removed ? "removed" : "";
  setClass(cell.lastElementChild, "tag");
  setText(cell.lastElementChild, tag);
  show(cell.lastElementChild, tag !== "");
}

/**
 * Writes a table. A column has a head, classes, and `write(cell, row)`, or `value(row)` for a cell of text. The cell of
 * class "name" is the head of its row. `playerOf(row)` returns the id of the row's player.
 */
function fillTable(table, caption, columns, rows, playerOf) {
  if (!table.tHead) {
    table.createCaption();
    table.createTHead().insertRow();
    table.createTBody();
  }
  setText(table.caption, caption);
  fill(table.tHead.rows[0], columns, () => make("th"), (cell, column) => {
    setAttribute(cell, "scope", "col");
    setClass(cell, column.classes ?? "");
    setText(cell, column.head);
    if (column.title) setAttribute(cell, "title", column.title);
  });
  fill(table.tBodies[0], rows, () => make("tr"), (tr, row) => {
    setClass(tr, playerOf && playerOf(row) === ME ? "me" : "");
    if (tr.cells.length !== columns.length) tr.replaceChildren(...columns.map(rowCell));
    columns.forEach((column, n) => {
      const cell = tr.cells[n];
      setClass(cell, `${column.classes ?? ""} ${column.marks?.(row) ?? ""}`.trim());
      if (column.write) column.write(cell, row); else setText(cell, column.value(row));
    });
  });
}
function rowCell(column) {
  const cell = make(column.classes?.includes("name") ? "th" : "td");
  if (cell.tagName === "TH") cell.scope = "row";
  return cell;
}

// ------------------------------------------------------------------------------------------------ reading the league

const players = () => league.agents.filter(agent => agent.kind === "player");
const allMatches = () => league.rounds.flatMap(round => round.matches);
const played = () => allMatches().filter(match => match.ending);
const rivals = match => [match.player_A_id, match.player_B_id];
const rival = (match, id) => match.player_A_id === id ? match.player_B_id : match.player_A_id;
const isOver = () => league.status === "completed";
const isRunning = () => league.status === "running";
const isLost = match => match.ending === "TECHNICAL_LOSS";

/** Returns true if a player lost a match technically; both players can. */
const lostTechnically = (match, id) => isLost(match) && match.winner !== id;

/** Returns the number of complete rounds before the first that is not. */
function roundsOver() {
  const open = league.rounds.findIndex(round => round.matches.some(match => !match.ending));
  return open < 0 ? league.rounds.length : open;
}

/** The manager's clock minus ours, in milliseconds. */
let clockDifference = 0;
/** Returns true if matches are announced and will begin. */
const isAnnounced = () => Boolean(league.next_at) && !league.paused && isRunning() && failures < 2;
/** Returns the seconds until the matches of the announced round begin; 0 if no round is announced. */
function secondsLeft() {
  if (!isAnnounced()) return 0;
  return Math.max(0, Math.ceil((Date.parse(league.next_at) - (Date.now() + clockDifference)) / 1000));
}

/** Returns the status of a match for people. A match that is only announced has a referee, but is not in play. */
function matchStatus(match, round) {
  if (match.ending) return "over";
  if (isRunning() && round === league.current_round) {
    return match.status === "assigned" && !league.next_at ? "in play" : "announced";
  }
  return "to come";
}

/** Returns the rank as a text: equal players share the best of their ranks. */
const rankOf = row => league.matches_completed ? league.ranks[row.rank - 1] : String(row.rank);

/** Returns the letter of a result for one player, and the class of its colour. */
function resultLetter(match, id) {
  if (isLost(match)) return match.winner === id ? ["W*", "won"] : ["T", "failed"];
  if (match.ending === "DRAW") return ["D", "drew"];
  return match.winner === id ? ["W", "won"] : ["L", "lost"];
}

/** Returns the reason of a result without a number, without the parts that the sentence around it has. */
function reason(match) {
  const loser = rivals(match).find(id => id !== match.winner);
  return (match.reason ?? "").replace(new RegExp(`^${loser} `), "").replace(/ - (\w+ wins by default|nobody wins)$/, "");
}

/** Returns true for a match of a game by turns, which has a position. */
const isByTurns = match => match.match_id in league.positions;

/** Returns the choice of a player; empty in a game by turns. */
function choice(match, id) {
  if (isByTurns(match)) return "";
  return match.choices?.[id] ?? match.moves?.find(played => played.player_id === id)?.move ?? "";
}

/** Writes the last position of a match of a game by turns; returns false if there is none. */
function putBoard(element, match) {
  const board = (league.positions[match.match_id] ?? "").split("\n").map(sanitize).join("\n");
  if (element.textContent !== board) element.textContent = board;
  return board !== "";
}

/** Returns a sentence about a match. */
function sentence(match) {
  const [a, b] = rivals(match);
  const [one, two] = match.winner === b ? [b, a] : [a, b];
  const who = id => choice(match, id) ? `${name(id)} (${choice(match, id)})` : name(id);
  const ending = match.drawn_number ? `: the number was ${match.drawn_number}` : reason(match) ? `: ${reason(match)}` : "";
  if (!match.ending) return `${name(a)} and ${name(b)}`;
  if (match.ending === "DRAW") return `${who(one)} and ${who(two)} drew${ending}`;
  if (match.ending === "WIN") return `${who(one)} beat ${who(two)}${ending}`;
  if (match.winner) return `${who(one)} won, ${who(two)} lost technically${ending}`;
  return `${who(one)} and ${who(two)} both lost technically${ending}`;
}

/** Returns the address of the trace of a match, if there is one. A report has only some traces. */
function traceOf(match) {
  const wasPlayed = match.ending && match.referee_id && match.referee_id !== "league_manager";
  const hasTrace = IS_REPORT ? league.traces?.[match.match_id] : wasPlayed;
  return hasTrace ? `#${match.match_id}` : "";
}
const traceLabel = match => `${match.match_id}: what was said`;

/** Returns true if the game draws numbers: only then there are expected points. */
const drawsNumbers = () => Object.keys(league.worth).length > 0;

/** Returns the expected points of a player in a match; none if no number was drawn. */
function expectedPoints(match, id) {
  const both = rivals(match), pair = both.map(id => choice(match, id)).join(" ");
  return match.drawn_number ? league.worth[pair]?.[both.indexOf(id)] : undefined;
}
function meaning() {
  if (!drawsNumbers()) return "";
  const of = isSame => [...new Set(Object.entries(league.worth)
    .filter(([pair]) => new Set(pair.split(" ")).size === (isSame ? 1 : 2))
    .flatMap(([, both]) => both.map(points)))].join(" or ");
  return `Expected points are what a player's choices were worth before the numbers were drawn, against these rivals: `
    + `${of(false)} where the two choices differed, ${of(true)} where they were the same. `
    + `A different choice is worth as much to the rival; technical losses are counted apart.`;
}

// ------------------------------------------------------------------------------------------------------ the head

function drawHead() {
  const { league: heading, status } = league;
  const title = heading.name ? `${heading.display_name} · ${heading.name}` : heading.display_name;
  setText($("title"), title);
  document.title = sanitize(`${title}: ${status}`);
  drawNow();
  drawNotice();
  document.querySelectorAll("#views a").forEach(anchor => {
    if (anchor.hash.slice(1) === view) setAttribute(anchor, "aria-current", "page"); else anchor.removeAttribute("aria-current");
  });
}

/** Writes the line about the open round; twice a second, for the countdown. */
function drawNow() {
  const { current_round: round, total_rounds: rounds } = league;
  if (league.status === "waiting") {
    const registered = players().length, awaited = league.league.players_awaited;
    return setText($("now"), awaited ? `${registered} of ${count(awaited, "player")} here` : `${count(registered, "player")} here`);
  }
  if (isOver()) return setText($("now"), `The league is over: ${count(roundsOver(), "round")}, ${count(league.matches_completed, "match")}`);
  const left = secondsLeft();
  const matches = league.rounds[round - 1]?.matches ?? [];
  const done = matches.filter(match => match.ending).length;
  if (isAnnounced() && left === 0) return setText($("now"), `Round ${round} of ${rounds} begins now`);
  if (left > 0) {
    const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    return setText($("now"), `Round ${round} of ${rounds} begins in ${clock}`);
  }
  setText($("now"), `Round ${round} of ${rounds}: ${done} of ${count(matches.length, "match")} over`);
}

/** Writes the line below it, which is never empty, so that nothing moves. */
function drawNotice() {
  let text = "all is well", classes = "";
  const isComplete = league.matches_completed === league.total_matches;
  if (failures > 1 && isOver()) text = "the manager has ended with its league; its report.html shows the same";
  else if (failures > 1) [text, classes] = ["the manager does not answer; this is how it was last", "lost"];
  else if (isOver()) text = isComplete ? "all matches are played" : "it was ended before all matches were played";
  else if (league.paused) [text, classes] = ["paused by the operator", "paused"];
  else if (league.status === "waiting") [text, classes] = [league.reason ?? "enough are here to start", "waiting"];
  else if (league.next_at) text = "next round: these are the pairs";
  else if (league.reason) [text, classes] = [waitingReason(), "waiting"];
  setText($("notice"), text);
  setClass($("notice"), classes);
}
/** Returns the reason why the league waits: for matches, their players without the referees. */
function waitingReason() {
  const times = league.reason.match(/(?<=\(until )[\d:]+( UTC)?(?=\))/g);
  if (!times) return league.reason;
  const open = league.rounds[league.current_round - 1].matches.filter(match => !match.ending);
  const pairs = open.map(match => rivals(match).map(id => name(id)).join(" – "));
  const shown = pairs.length > 4 ? [...pairs.slice(0, 3), `${pairs.length - 3} more`] : pairs;
  return `still in play: ${list(shown)}, until ${times.sort().at(-1)} at most`;
}

// ------------------------------------------------------------------------------------------------------ the lobby

function drawLobby() {
  const isLobby = league.status === "waiting";
  show($("join"), isLobby);
  show($("rollcall"), isLobby);
  if (!isLobby) return;
  const address = league.league.register_at.replace(/\/mcp$/, "");
  const { players_awaited: playerCount, referees_awaited: refereeCount } = league.league;
  // If an operator starts the league, another lobby may follow, which the players join with --stay.
  for (const [id, curl, python] of [["command", "curl", "python3"], ["command-windows", "curl.exe", "py"]]) {
    const text = `${command(sanitize(address), curl, python)}${playerCount ? "" : " --stay"}`;
    if ($(id).textContent !== text) $(id).replaceChildren(...withWholeOptions(text));
  }
  setText($("address"), `${address}/`);
  setText($("awaited"), playerCount
    ? `The league starts by itself when ${count(playerCount, "player")} and ${count(refereeCount, "referee")} are here.`
    : "The league starts when its operator says so.");
  const referees = league.agents.filter(agent => agent.kind === "referee");
  const registered = [...players(), ...referees.filter(agent => agent.reachable === false)];
  setText($("h-rollcall"), league.agents.length ? `Who is here: ${count(players().length, "player")}, ${count(referees.length, "referee")}` : "No agent is here yet");
  fill($("present"), registered, () => make("li", make("bdi"), " ", make("small")), (item, agent) => {
    setText(item.children[0], agent.display_name);
    const other = players().find(other => other !== agent && other.display_name === agent.display_name);
    const note = problemOf(agent) ? "see below" : [agent.rehearsal, other && `name as ${other.id}`].filter(Boolean).join(", ");
    setText(item.children[1], `${agent.id} ${note}`);
    setClass(item, problemOf(agent) ? "failed" : agent.id === ME ? "me" : "");
  });
  fill($("problems"), registered.filter(problemOf), () => make("li"), (item, agent) => setText(item, `${name(agent.id, true)} ${problemOf(agent)}`));
  const box = $("present");
  box.style.fontSize = ""; // on the wall as large as the style sheet says, or as fits
  for (let size = 3.5; size > 1 && box.scrollHeight > box.clientHeight; size *= 0.7) box.style.fontSize = `${size}vh`;
}
/** Returns the reason why an agent would lose its matches as it is now; empty if there is none. */
function problemOf(agent) {
  if (agent.reachable === false) return `does not answer: it ${agent.trouble}`;
  return agent.rehearsal && !agent.rehearsal.startsWith("plays") ? `would lose: it ${agent.rehearsal}` : "";
}
/** Returns the two lines that a student types. In Windows PowerShell, `curl` is another command. */
function command(address, curl, python) {
  return `${curl} -O "${address}/{player,league_player}.py"\n${python} player.py --manager ${address} --display-name NAME`;
}
/** Returns a command in pieces between which it may be broken: before an option, but not within. */
function withWholeOptions(text) {
  return text.split(/(?=--)/).map(piece => {
    const span = make("span", piece);
    span.className = "option";
    return span;
  });
}
async function copyCommand(id) {
  try {
    await navigator.clipboard.writeText($(id).textContent);
    setText($("copied"), "copied");
  } catch { // browsers allow this only to pages of this machine
    getSelection().selectAllChildren($(id));
    setText($("copied"), "marked: copy it with the keys of your browser");
  }
}

// ------------------------------------------------------------------------------------------- the table and champions

/** Returns the points by player before the newest round with a result; null before the second such round. */
function pointsBefore() {
  const newest = league.rounds.findLastIndex(round => round.matches.some(match => match.ending));
  return newest > 0 ? linesOf(newest)[1] : null;
}
/** Returns an arrow and its class if a place has changed since then, by points alone. */
function placeChange(row) {
  if (!pointsBeforeRound) return ["", ""];
  const above = points => league.standings.filter(other => points(other) > points(row)).length;
  const places = above(other => pointsBeforeRound[other.player_id]) - above(other => other.points);
  if (places === 0) return ["", ""];
  return places > 0 ? [`▲${places}`, "up"] : [`▼${-places}`, "down"];
}
const expected = id => points(league.expected_points[id] ?? 0);
const technical = id => byId.get(id)?.technical_losses ?? 0;

function drawTable() {
  const rows = league.standings;
  show($("table"), league.status !== "waiting" && rows.length > 0);
  fillTable($("standings"), "The table, best first", [
    { head: "#", classes: "n", value: rankOf },
    { head: "▲▼", classes: "id", title: "places by points since the round before", value: row => placeChange(row)[0], marks: row => placeChange(row)[1] },
    { head: "Player", classes: "name", write: (cell, row) => nameLink(cell, row.player_id) },
    { head: "Id", classes: "id broad", value: row => row.player_id },
    { head: "Points", classes: "n", value: row => row.points },
    ...drawsNumbers() ? [{ head: "Expected", classes: "n broad", title: "what the choices were worth before the draws", value: row => expected(row.player_id) }] : [],
    { head: "Played", classes: "n broad", value: row => row.played },
    { head: "W", classes: "n broad", title: "wins", value: row => row.wins },
    { head: "D", classes: "n broad", title: "draws", value: row => row.draws },
    { head: "L", classes: "n broad", title: "losses", value: row => row.losses },
    { head: "W-D-L", classes: "n narrow", value: row => `${row.wins}-${row.draws}-${row.losses}` },
    { head: "T", classes: "n broad", title: "technical losses, which are among the losses", value: row => technical(row.player_id) },
  ], rows, row => row.player_id);
  setText($("equals"), rows.some(row => rankOf(row).endsWith("=")) ? "= marks players that are equal in everything: their order is decided by id." : "");
  document.querySelectorAll(".meaning").forEach(paragraph => setText(paragraph, meaning()));
}

/** Returns the champion and the players that are equal to it. */
function champions() {
  const best = league.standings.filter(row => rankOf(row) === league.ranks[0]);
  return league.champion ? best.map(row => row.player_id) : [];
}
/** Writes who is in the lead, or the champion: the same box, so that nothing moves at the end. */
function drawChampion() {
  if (league.league.practice) return drawComparison(); // points of a practice say little, so it has no champion
  const [first, ...others] = league.standings;
  const level = others.filter(row => row.points === first.points).map(row => row.player_id);
  const best = isOver() ? champions() : first ? [first.player_id, ...level] : [];
  show($("champion"), best.length > 0 && league.status !== "waiting");
  if (!best.length) return;
  setText($("h-champion"), !isOver() ? "In the lead" : best.length > 1 ? "Champions" : "Champion");
  const names = best.length > 3 ? `${best.length} players` : list(best.map(id => name(id, true)));
  setText($("winner"), `${names}, ${count(first.points, "point")}`);
  const shared = isOver() && best.length > 1 ? "Equal in everything; the league names the first by id. " : "";
  setText($("luck"), shared);
}

/** Writes the answer of a comparison, or how far it is, in the place of the champion. */
function drawComparison() {
  const [verdict, ...rest] = (league.comparison ?? "").trim().split("\n");
  show($("champion"), verdict !== "");
  setText($("h-champion"), "Which is better?");
  setText($("winner"), verdict);
  setText($("luck"), rest.slice(0, 4).join(" "));
}

// ------------------------------------------------------------------------------------------------------ the chart

/** Returns by player its points above the average after each complete round, and its points. */
function linesOf(rounds) {
  const ids = league.standings.map(row => row.player_id);
  const sums = Object.fromEntries(ids.map(id => [id, 0]));
  const lines = Object.fromEntries(ids.map(id => [id, [0]]));
  for (const { matches } of league.rounds.slice(0, rounds)) {
    for (const { score } of matches) for (const id in score) sums[id] += score[id];
    const average = ids.reduce((sum, id) => sum + sums[id], 0) / ids.length;
    for (const id of ids) lines[id].push(sums[id] - average);
  }
  return [lines, sums];
}

function drawChart() {
  const rounds = roundsOver(), order = league.standings.map(row => row.player_id);
  const isShown = league.status !== "waiting" && !league.league.practice;
  show($("lines"), isShown);
  if (!isShown) return;
  const [lines, sums] = linesOf(rounds);
  const named = order.slice(0, COLOURS);
  if (order.includes(ME) && !named.includes(ME)) named.push(ME);
  const scale = scaleOf(lines, rounds);
  fillChart($("chart"), [...axes(scale), ...polylines(lines, order, named, scale), ...lineEnds(lines, named, scale)]);
  const ordered = [...order].sort((a, b) => sums[b] - sums[a]);
  const leaders = ordered.filter(id => sums[id] === sums[ordered[0]]);
  const lead = leaders.length > 3 ? `${leaders.length} players are level` : `${list(leaders.map(id => name(id)))} ${leaders.length > 1 ? "are level" : isOver() ? "was first" : "leads"}`;
  const rest = order.length > named.length ? ` Grey: the other ${order.length - named.length}.` : "";
  setText($("chart-words"), rounds === 0 ? "The lines begin after the first round." : `After ${count(rounds, "round")} ${lead} with ${count(sums[leaders[0]], "point")}.${rest}`);
  if ($("chart-table").open) {
    const columns = Array.from({ length: rounds }, (_, n) => ({ head: n + 1, classes: "n", value: id => points(lines[id][n + 1]) }));
    const who = [{ head: "Player", classes: "name", write: nameLink }, { head: "Id", classes: "id", value: id => id }];
    fillTable($("points"), "Points above the average after each round", [...who, ...columns], order, id => id);
  }
}

// The edges of the lines in the chart, which is 640 wide and 420 high; the names are on the right.
const LEFT = 56, RIGHT = 420, TOP = 14, BOTTOM = 390;

/** Returns the functions from a round and a number of points to their place in the chart. */
function scaleOf(lines, rounds) {
  const all = Object.values(lines).flat();
  const top = Math.max(1, ...all), low = Math.min(-1, ...all), wide = Math.max(8, rounds);
  return {
    top, low, wide,
    x: round => LEFT + (RIGHT - LEFT) * round / wide,
    y: value => BOTTOM - (BOTTOM - TOP) * (value - low) / (top - low),
  };
}
/** Returns a round number, 1, 2, 5, 10, 20 and so on, of which at most `most` steps are in a distance. */
function roundStep(distance, most) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(distance / most)));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => distance / step <= most);
}
function axes({ top, low, wide, x, y }) {
  const step = roundStep(top - low, 6), beat = roundStep(wide, 8);
  const parts = [];
  for (let value = Math.ceil(low / step) * step; value <= top; value += step) {
    parts.push(["line", { class: value === 0 ? "zero" : "axis", x1: LEFT, x2: RIGHT, y1: y(value), y2: y(value) }]);
    parts.push(["text", { x: LEFT - 6, y: y(value) + 5, "text-anchor": "end" }, value > 0 ? `+${value}` : String(value)]);
  }
  for (let round = beat; round <= wide; round += beat) {
    parts.push(["text", { x: x(round), y: BOTTOM + 22, "text-anchor": "middle" }, String(round)]);
  }
  return parts;
}
function polylines(lines, order, named, { x, y }) {
  return [...order].reverse().map(id => {
    const shift = named.includes(id) ? (number(id) % 8 - 3.5) * 0.9 : 0; // so that equal lines do not hide each other
    const every = Math.ceil(lines[id].length / 400), last = lines[id].length - 1; // more points cannot be seen
    const at = lines[id].map((value, round) => round % every === 0 || round === last ? `${x(round).toFixed(1)},${(y(value) + shift).toFixed(1)}` : "").filter(Boolean);
    const classes = [styleOf(id, named)[0], id === ME ? "mine" : "", byId.get(id)?.removed ? "gone" : ""];
    return ["polyline", { class: classes.join(" ").trim(), "stroke-dasharray": byId.get(id)?.removed ? "" : styleOf(id, named)[1], points: at.join(" ") }];
  });
}
/** Returns the names at the ends of the lines, moved apart so that all can be read. */
function lineEnds(lines, named, { x, y }) {
  const last = lines[named[0]].length - 1;
  const labels = named.map(id => ({ id, at: y(lines[id][last]), to: 0 })).sort((a, b) => a.at - b.at || named.indexOf(a.id) - named.indexOf(b.id));
  let free = 14;
  for (const label of labels) {
    label.to = Math.max(label.at, free);
    free = label.to + 20;
  }
  let floor = BOTTOM;
  for (const label of [...labels].reverse()) {
    label.to = Math.min(label.to, floor);
    floor = label.to - 20;
  }
  return labels.flatMap(({ id, at, to }) => [
    ["line", { class: "leader", x1: x(last) + 3, y1: at, x2: RIGHT + 18, y2: to }],
    ["line", { class: styleOf(id, named)[0], "stroke-width": 4, "stroke-dasharray": styleOf(id, named)[1], x1: RIGHT + 18, y1: to, x2: RIGHT + 36, y2: to }],
    ["text", { class: "end", x: RIGHT + 40, y: to + 6 }, label(id)],
  ]);
}
/** Returns the class and the dashes of a player. It keeps its colour; named players of the same colour differ in dashes. */
function styleOf(id, named) {
  if (!named.includes(id)) return ["other", ""];
  const colour = other => number(other) % COLOURS;
  const before = named.slice(0, named.indexOf(id)).filter(other => colour(other) === colour(id));
  return [`c${colour(id)}`, DASHES[before.length % DASHES.length]];
}
/** Gives an SVG element its parts: [tag, attributes, text]. */
function fillChart(svg, parts) {
  parts.forEach(([tag, attributes, text], n) => {
    let element = svg.children[n];
    if (element?.tagName !== tag) {
      const created = document.createElementNS("http://www.w3.org/2000/svg", tag);
      if (element) element.replaceWith(created); else svg.append(created);
      element = created;
    }
    for (const key in attributes) setAttribute(element, key, attributes[key]);
    if (text !== undefined) setText(element, text);
  });
  while (svg.children.length > parts.length) svg.lastElementChild.remove();
}

// --------------------------------------------------------------------------------- pictures of the means and of luck

/** Returns true if pairs meet more than once, as in a practice: then means say more than single results. */
const isRepeated = () => league.total_matches > players().length * (players().length - 1) / 2;

/** Returns the players whose means are shown: the user's own in a practice, or all. */
function comparedPlayers() {
  const own = players().filter(agent => league.league.practice?.own.includes(agent.display_name));
  return (own.length > 0 ? own : players()).map(agent => agent.id);
}
/** Returns the opponents against whom they are judged: all others, or all if there are no others. */
function judgingRivals() {
  const compared = comparedPlayers(), others = players().map(agent => agent.id).filter(id => !compared.includes(id));
  return others.length > 0 ? others : compared;
}
/** Returns the points of a player in its matches against these opponents. */
const valuesAgainst = (id, opponents) => opponents.flatMap(other => values.get(`${id} ${other}`) ?? []);

/** Returns the points of each match by player, `P01`, and by pair, `P01 P02`: expected points if the game draws numbers. */
function valuesOfMatches() {
  const found = new Map();
  for (const match of played()) {
    for (const id of rivals(match)) {
      const value = drawsNumbers() ? expectedPoints(match, id) : match.score[id];
      for (const key of value === undefined ? [] : [id, `${id} ${rival(match, id)}`]) {
        if (!found.has(key)) found.set(key, []);
        found.get(key).push(value);
      }
    }
  }
  return found;
}

/** Returns the mean of some numbers, and its standard error. */
function sample(numbers = []) {
  const n = numbers.length, mean = numbers.reduce((sum, value) => sum + value, 0) / Math.max(1, n);
  const squares = numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { count: n, mean, error: n > 1 ? Math.sqrt(squares / (n - 1) / n) : 0 };
}

/** Returns the points per match with which players are compared: those of a coin, or else of the average player. */
function reference() {
  if (drawsNumbers()) return { points: sample(Object.values(league.worth).map(both => both[0])).mean, name: "a coin" };
  return { points: sample(players().flatMap(agent => values.get(agent.id) ?? [])).mean, name: "the average player" };
}

/**
 * Draws a row for each player: its name, a bar between two values, a dot, perhaps a ring, and a text. A vertical line goes
 * through all rows at `line.at`.
 */
function drawRows(svg, rows, line) {
  const all = [...rows.flatMap(row => [row.from, row.to]), ...line ? [line.at] : []];
  const low = Math.min(...all), wide = Math.max(...all) - low || 1;
  const x = value => (200 + 350 * (value - low) / wide).toFixed(1);
  const top = line ? 42 : 18, end = top + rows.length * 26;
  setAttribute(svg, "viewBox", `0 0 640 ${end}`);
  const parts = line ? [["line", { class: "zero", x1: x(line.at), x2: x(line.at), y1: 24, y2: end }],
    ["text", { class: "", x: x(line.at), y: 16, "text-anchor": "middle" }, line.text]] : [];
  rows.forEach((row, n) => {
    const y = top + n * 26;
    parts.push(
      ["text", { class: row.id === ME ? "end own" : "end", x: 186, y: y + 6, "text-anchor": "end" }, row.against ? `against ${label(row.against, 11)}` : label(row.id)],
      ["line", { class: `bar ${row.side}`, x1: x(row.from), x2: x(row.to), y1: y, y2: y }],
      ["circle", { class: `dot ${row.side}`, cx: x(row.dot), cy: y, r: 7 }],
      ["circle", { class: "ring", cx: x(row.ring ?? row.dot), cy: y, r: row.ring === undefined ? 0 : 6 }],
      ["text", { class: "end", x: 636, y: y + 6, "text-anchor": "end" }, row.text],
    );
  });
  fillChart(svg, parts);
}

/** Draws the mean of each player of a practice with its error, the best first. */
function drawMeans() {
  const isShown = isRepeated() && league.status !== "waiting";
  show($("means"), isShown);
  if (!isShown) return;
  const { points: middle, name: who } = reference();
  const meanRow = (id, opponents, against) => {
    const { mean, error } = sample(valuesAgainst(id, opponents));
    const side = Math.abs(mean - middle) <= 2 * error ? "like" : mean > middle ? "more" : "less";
    return { id, against, from: mean - 2 * error, to: mean + 2 * error, dot: mean, text: mean.toFixed(2), side };
  };
  const compared = comparedPlayers(), opponents = judgingRivals();
  const rows = compared.map(id => meanRow(id, opponents)).sort((a, b) => b.dot - a.dot);
  // A single player of one's own has another row for each opponent, as in the terminal.
  const byOpponent = compared.length === 1 ? opponents.map(other => meanRow(compared[0], [other], other)) : [];
  drawRows($("means-chart"), [...rows, ...byOpponent], { at: middle, text: `${who}: ${middle.toFixed(2)}` });
  setText($("h-means"), drawsNumbers() ? "Expected points per match" : "Points per match");
  const named = side => list(rows.filter(row => row.side === side).map(row => name(row.id)));
  const sides = [["more", "More than"], ["like", "Like"], ["less", "Less than"]].filter(([side]) => named(side));
  setText($("means-words"), `${sides.map(([side, words]) => `${words} ${who}: ${named(side)}.`).join(" ")} `
    + "A bar is two standard errors long to each side: where it crosses the line, luck alone can do this.");
}

/** Draws what the choices of each player were worth, and what the draws made of it. */
function drawLuck(svg, rows) {
  drawRows(svg, rows.map(({ player_id: id, points: dot }) => {
    const luck = luckOf(id), ring = dot - luck;
    return { id, from: Math.min(ring, dot), to: Math.max(ring, dot), ring, dot, text: signed(luck), side: luck < 0 ? "less" : "more" };
  }));
}
const signed = number => `${number > 0 ? "+" : ""}${points(number)}`;
const hasLuck = () => isOver() && drawsNumbers();
/** Returns the points that a player got beyond its expected points, in the matches in which a number was drawn. */
function luckOf(id) {
  const drawn = played().filter(match => match.drawn_number && rivals(match).includes(id));
  return drawn.reduce((sum, match) => sum + match.score[id] - expectedPoints(match, id), 0);
}

// ------------------------------------------------------------------------------------------------- technical losses

/** Returns the technical losses of players: one entry for each player and reason, the most frequent first. */
function losses(ids) {
  const found = new Map();
  for (const match of played().filter(isLost)) {
    for (const id of ids.filter(id => rivals(match).includes(id) && lostTechnically(match, id))) {
      const text = explanation(match, id);
      if (/by the operator/.test(match.reason ?? "")) continue;
      const key = `${id} ${text}`;
      if (!found.has(key)) found.set(key, { id, text, matches: [] });
      found.get(key).matches.push(match);
    }
  }
  return [...found.values()].sort((a, b) => b.matches.length - a.matches.length);
}
/** Returns the explanation of a result for one player; empty if the number and the choices explain it. */
function explanation(match, id) {
  if (isLost(match) && !lostTechnically(match, id)) return "";
  return isLost(match) && !match.winner ? ownReason(match, id) : reason(match);
}
/** Returns the reason for one player if both lost. The reason of the match has both, with a semicolon between them. */
function ownReason(match, id) {
  const parts = (match.reason ?? "").replace(/ - nobody wins$/, "").split(/; (?=P\d+ )/);
  return (parts.find(part => part.startsWith(`${id} `)) ?? parts.join("; ")).replace(new RegExp(`^${id} `), "");
}
/** Writes a line about losses: the player, their number, the reason, and links to the matches. */
function writeLoss(item, { id, text, matches }, withName) {
  if (item.children.length !== 2) item.replaceChildren(make("span"), make("span"));
  const often = matches.length === 1 ? "once" : `${matches.length} times`;
  setText(item.firstElementChild, withName ? `${name(id, true)}, ${often}: ${text} ` : `${often}: ${text} `);
  fill(item.lastElementChild, matches.slice(0, 12), () => make("span"), (span, match) => {
    link(span, match.match_id, traceOf(match), traceLabel(match));
    if (!traceOf(match)) setText(span, `${match.match_id} `);
  });
}
function drawFailures() {
  const found = losses(players().map(agent => agent.id));
  fill($("failures"), found.slice(0, 40), () => make("li"), (item, loss) => writeLoss(item, loss, true));
  const removed = players().filter(agent => agent.removed).map(agent => name(agent.id, true));
  const loses = isOver() ? "Removed by the operator, and lost without playing from then on" : "Removed by the operator, and loses without playing until restored";
  setText($("gone"), removed.length ? `${loses}: ${removed.join(", ")}` : "");
  show($("failed"), found.length > 0 || removed.length > 0);
}

// ------------------------------------------------------------------------------------------------- the cross table

function drawCross() {
  show($("meetings"), league.status !== "waiting" && league.standings.length > 0);
  setText($("h-cross"), isRepeated() ? "Who does well against whom" : "Who met whom");
  setText($("cross-open").firstElementChild, isRepeated() ? "The heat map" : "The cross table");
  if (isRepeated() && !$("cross-open").dataset.opened) {
    $("cross-open").dataset.opened = "yes";
    $("cross-open").open = league.standings.length <= MAX_DETAILED;
  }
  if (!$("cross-open").open || league.status === "waiting") return; // with a hundred players it has ten thousand cells
  const order = league.standings.map(row => row.player_id), many = order.length > MAX_DETAILED;
  const rows = isRepeated() ? comparedPlayers() : order;
  const others = rows.length < order.length ? order.filter(id => !rows.includes(id)) : order;
  const writeCell = isRepeated() ? heatCells() : crossCells(many);
  setText($("key"), isRepeated() ? heatKey() : "A row shows a player's results, in the order of the table: W won, D drew, L lost, T lost technically, "
    + `W* won by that.${many ? "" : ` With it ${drawsNumbers() ? "the number drawn and " : ""}both choices, its own first.`}`);
  const table = $("cross");
  setClass(table, isRepeated() ? "heat" : many ? "many" : "");
  const head = (id, n) => isRepeated() && !many ? sanitize(label(id)) : n + 1;
  const columns = others.map((id, n) => ({ head: head(id, n), title: sanitize(name(id)), write: (cell, row) => writeCell(cell, row, id) }));
  const who = { head: "Player", classes: "name", write: (cell, id) => nameLink(cell, id) };
  const place = { head: "#", classes: "place", value: id => order.indexOf(id) + 1 };
  fillTable(table, "Results: a row and a column for each player", [place, who, ...columns], order.filter(id => rows.includes(id)), id => id);
}
/** Returns a function that writes a cell of the cross table: the results of the row's player against the column's. */
function crossCells(many) {
  const met = new Map();
  for (const match of allMatches()) {
    for (const id of rivals(match)) met.set(`${id} ${rival(match, id)}`, match);
  }
  return (cell, id, other) => crossCell(cell, id, other, met.get(`${id} ${other}`), many);
}
function crossCell(cell, id, other, match, many) {
  const isDone = Boolean(match?.ending), [letter, classes] = isDone ? resultLetter(match, id) : ["", ""];
  setClass(cell, id === other ? "self" : classes);
  const content = isDone ? `${id} ${match.match_id} ${letter}` : "";
  if ((cell.dataset.content ?? "") === content) return;
  cell.dataset.content = content;
  cell.title = isDone ? sanitize(`${match.match_id}: ${sentence(match)}`) : "";
  if (!isDone) return cell.replaceChildren();
  const span = make("span"), details = make("small");
  link(span, letter, traceOf(match), `${letter}: ${traceLabel(match)}`);
  span.querySelector("a")?.setAttribute("tabindex", -1); // the keyboard opens matches in the schedule
  const chosen = isByTurns(match) ? "" : [id, other].map(who => choice(match, who) || "–").join(":");
  setText(details, [match.drawn_number, chosen].filter(Boolean).join(" · "));
  cell.replaceChildren(span, ...many ? [] : [details]);
}

/** Returns a function that writes a cell of the heat map: the mean of the row's player against the column's. */
function heatCells() {
  const { points: middle } = reference();
  const best = drawsNumbers() ? Math.max(...Object.values(league.worth).flat()) : league.league.scoring.win_points;
  return (cell, id, other) => {
    const { count: matches, mean, error } = sample(values.get(`${id} ${other}`));
    const share = matches ? Math.min(1, Math.abs(mean - middle) / (best - middle)) : 0;
    setText(cell, matches ? mean.toFixed(2) : "");
    setClass(cell, id === other ? "self" : mean > middle ? "above" : "below");
    cell.style.setProperty("--share", `${Math.round(100 * share)}%`);
    cell.title = matches ? sanitize(`${name(id)} against ${name(other)}: ${mean.toFixed(2)} ± ${error.toFixed(2)} in ${count(matches, "match")}`) : "";
  };
}
function heatKey() {
  const { points: middle, name: who } = reference();
  return `A cell shows what the player of its row got in a match against the player of its column, on average${drawsNumbers() ? " and before the draw" : ""}: `
    + `green is more than ${who} gets (${middle.toFixed(2)}), orange is less.`;
}

// ------------------------------------------------------------------------------------------------------ the schedule

function drawSchedule() {
  show($("plan"), league.status !== "waiting");
  if (league.status === "waiting") return;
  const rounds = league.rounds.length > MAX_ROUNDS ? lastRounds() : league.rounds;
  const left = rounds.length < league.rounds.length ? `Ten of ${league.rounds.length} rounds: results.csv has all. ` : "";
  setText($("how"), left + (IS_REPORT
    ? "What was said in a match: league trace R1M1, on the manager's machine."
    : "A match that is over opens: what was said in it, message by message."));
  fill($("rounds"), rounds, newRound, (details, round) => {
    const done = round.matches.filter(match => match.ending).length;
    setText(details.firstElementChild, `Round ${round.round_id}: ${done} of ${count(round.matches.length, "match")} over`);
    openInTurn(details, round.round_id);
    if (details.open) writeRound(details, round);
  });
}
/** Returns the ten rounds up to the open one. */
function lastRounds() {
  const end = Math.max(10, isOver() ? roundsOver() : league.current_round);
  return league.rounds.slice(end - 10, end);
}
function newRound() {
  const details = make("details", make("summary"), make("p"), make("table"));
  details.children[1].className = "soft";
  details.addEventListener("toggle", drawSchedule);
  return details;
}
/** Opens a round once, when it is the open round, and closes it afterwards; a short schedule is open from the start. */
function openInTurn(details, round) {
  const isShort = league.rounds.length <= 3;
  const isTurn = isShort || isRunning() && league.current_round === round;
  if (isTurn && !details.dataset.opened) {
    details.dataset.opened = "yes";
    details.open = true;
  } else if (!isTurn && details.dataset.opened === "yes") {
    details.dataset.opened = "was";
    details.open = false;
  }
}
function writeRound(details, { round_id: round, matches }) {
  const busy = new Set(matches.flatMap(rivals));
  const idle = players().filter(agent => !busy.has(agent.id)).map(agent => name(agent.id));
  setText(details.children[1], idle.length ? `Rests: ${list(idle)}` : "");
  fillTable(details.children[2], `Matches of round ${round}`, [
    { head: "Match", classes: "id", write: (cell, match) => link(cell, match.match_id, traceOf(match), traceLabel(match)) },
    { head: "What", classes: "why", value: sentence },
    ...Object.keys(league.positions).length ? [{ head: "Board", classes: "board", write: putBoard }] : [],
    { head: "Status", classes: "id", value: match => matchStatus(match, round), marks: match => matchStatus(match, round) === "in play" ? "playing" : "" },
  ], matches);
}

// ------------------------------------------------------------------------------------------ agents, rules and files

function drawAgents() {
  show($("people"), league.agents.length > 0 && league.status !== "waiting");
  const reach = agent => agent.reachable === null ? "not asked yet" : agent.reachable ? "answers" : `does not answer: it ${agent.trouble}`;
  const columns = [
    { head: "Name", classes: "name", write: (cell, agent) => nameLink(cell, agent.id) },
    { head: "Id", classes: "id", value: agent => agent.id },
    ...drawsNumbers() ? [{ head: "Chose even : odd", classes: "n", value: agent => agent.choices ? `${agent.choices.even} : ${agent.choices.odd}` : "" }] : [],
    { head: "Answers in", classes: "n", value: agent => agent.answers_in_ms === undefined ? "" : `${agent.answers_in_ms} ms` },
  ];
  if (!isOver()) {
    columns.push({ head: "Reachable", classes: "why", value: reach, marks: agent => agent.reachable === false ? "failed" : "" });
    columns.push({ head: "State", classes: "id broad", value: agent => agent.removed ? "removed" : agent.state.toLowerCase() });
  }
  if (league.agents.some(agent => agent.endpoint)) columns.push({ head: "Endpoint", classes: "id broad", value: agent => agent.endpoint ?? "" });
  fillTable($("agents"), "Referees and players", columns, league.agents, agent => agent.id);
}

const TIES = { wins: "more wins", head_to_head: "points in the matches among those who are equal", draws: "fewer draws" };
function drawRules() {
  const { win_points: win, draw_points: draw, loss_points: loss, technical_loss_points: technical, tiebreakers } = league.league.scoring;
  const ties = tiebreakers.map(tie => TIES[tie] ?? tie);
  setText($("rules"), `${league.league.game}: ${count(win, "point")} for a win, ${draw} for a draw, ${loss} for a loss, ${technical} for a technical loss. `
    + `Players with equal points are ordered by ${list([...ties, "id"])}.`);
  const times = played().map(match => match.recorded_at).sort();
  const days = [times[0], times.at(-1)].filter(Boolean).map(time => new Date(time).toLocaleDateString(undefined, { dateStyle: "long" }));
  setText($("played-on"), days.length ? `Played on ${list([...new Set(days)])}.` : "");
  show($("get-report"), !IS_REPORT);
  show($("keep"), league.status !== "waiting");
}

// ------------------------------------------------------------------------------------------------------ one player

function drawPlayer(id) {
  const row = league.standings.find(row => row.player_id === id), agent = byId.get(id);
  setText($("player-name"), agent ? name(id, true) : `${id} is no player of this league`);
  const facts = !row || !agent ? [] : [
    ["Rank", `${rankOf(row)} of ${league.standings.length}`], ["Points", row.points], ...drawsNumbers() ? [["Expected", expected(id)], ["Luck", signed(luckOf(id))]] : [],
    ["Won, drew, lost", `${row.wins}, ${row.draws}, ${row.losses}`], ["Lost technically", technical(id)],
    ...drawsNumbers() ? [["Chose even, odd", agent.choices ? `${agent.choices.even}, ${agent.choices.odd}` : "–"]] : [],
    ["Answers in", agent.answers_in_ms === undefined ? "–" : `${agent.answers_in_ms} ms`],
  ];
  fill($("player-facts"), facts, () => make("div", make("dt"), make("dd")), (box, [head, value]) => {
    setText(box.firstElementChild, head);
    setText(box.lastElementChild, value);
  });
  const found = losses([id]);
  show($("player-losses"), found.length > 0);
  fill($("player-reasons"), found, () => make("li"), (item, loss) => writeLoss(item, loss, false));
  const rows = league.rounds.flatMap(round => round.matches.filter(match => rivals(match).includes(id)).map(match => ({ match, round: round.round_id })));
  fillTable($("player-matches"), `The matches of ${name(id)}`, [
    { head: "Match", classes: "id", write: (cell, { match }) => link(cell, match.match_id, traceOf(match), traceLabel(match)) },
    { head: "Rival", classes: "name", write: (cell, { match }) => nameLink(cell, rival(match, id)) },
    { head: "Result", classes: "result", value: ({ match, round }) => match.ending ? resultLetter(match, id)[0] : matchStatus(match, round), marks: ({ match }) => match.ending ? resultLetter(match, id)[1] : "" },
    { head: "Chose", classes: "id", value: ({ match }) => choice(match, id) },
    { head: "Rival chose", classes: "id broad", value: ({ match }) => choice(match, rival(match, id)) },
    ...drawsNumbers() ? [{ head: "Number", classes: "n broad", value: ({ match }) => match.drawn_number ?? "" }] : [],
    { head: "Points", classes: "n", value: ({ match }) => match.score?.[id] ?? "" },
    ...drawsNumbers() ? [{ head: "Expected", classes: "n broad", value: ({ match }) => points(expectedPoints(match, id)) }] : [],
    { head: "Why", classes: "why broad", value: ({ match }) => explanation(match, id) },
  ], rows);
}

// ------------------------------------------------------------------------------------------------------ the wall

function drawWall() {
  drawWallTable();
  drawPodium();
  drawLatest(); // sets the sizes of both lists
  drawPairs();
}

/**
 * Returns the largest size of letters, up to `max`, with which a number of lines fit into a box, and the number of columns.
 * Each line is `tall` letters high, and each column at least `wide` letters.
 */
function fitLetters(box, lines, tall, wide, max) {
  let best = { size: 0, columns: 1 };
  for (let columns = 1; columns <= 6; columns += 1) {
    const high = box.clientHeight / Math.ceil(lines / columns) / tall;
    const broad = box.clientWidth / columns / wide;
    const size = Math.min(high, broad, max);
    if (size > best.size) best = { size, columns };
  }
  return best;
}

function drawWallTable() {
  const rows = league.standings, box = $("wall-table");
  const max = Math.max(24, innerHeight / 16);
  const { size, columns } = fitLetters(box, Math.max(1, rows.length), 1.42, 18, max);
  box.style.fontSize = `${Math.floor(size * 10) / 10}px`;
  const high = Math.ceil(rows.length / columns);
  const rowHeight = Math.floor(Math.min(box.clientHeight / high - 1, size * 2.2));
  const chunks = Array.from({ length: columns }, (_, n) => rows.slice(n * high, (n + 1) * high)).filter(chunk => chunk.length);
  const hasRoom = box.clientWidth / columns / size > 21;
  fill(box, chunks, () => make("table", make("tbody")), (table, chunk) => {
    fill(table.tBodies[0], chunk, () => wallRow(), (tr, row) => {
      const [arrow, way] = placeChange(row);
      tr.style.height = `${rowHeight}px`;
      const hasChanged = Date.now() - changedAt.get(row.player_id) < 2000;
      setClass(tr, `${row.player_id === ME ? "me" : ""}${hasChanged ? " changed" : ""}`.trim());
      setText(tr.cells[0], rankOf(row));
      setText(tr.cells[1], arrow);
      setClass(tr.cells[1], `move ${way}`);
      link(tr.cells[2].firstElementChild, label(row.player_id, 64), `#${row.player_id}`);
      setText(tr.cells[3], `${row.wins}-${row.draws}-${row.losses}`);
      show(tr.cells[3], hasRoom);
      setText(tr.cells[4], row.points);
    });
  });
}
function wallRow() {
  const tr = make("tr", make("td"), make("td"), make("th", make("bdi")), make("td"), make("td"));
  ["rank", "move", "", "record", "points"].forEach((classes, n) => setClass(tr.cells[n], classes));
  tr.cells[2].scope = "row";
  return tr;
}

function drawPodium() {
  show($("podium"), isOver());
  if (!isOver()) return;
  const first = league.standings.slice(0, Math.max(3, champions().length));
  const items = [...first.slice(0, 5).map(row => [`${rankOf(row)}  ${name(row.player_id)}, ${count(row.points, "point")}`, ""])];
  fill($("podium-list"), items, () => make("li"), (item, [text, classes]) => {
    setText(item, text);
    setClass(item, classes);
  });
}

function drawPairs() {
  const round = league.rounds[league.current_round - 1];
  const isShown = !isOver() && Boolean(round);
  show($("pairs"), isShown);
  if (!isShown) return;
  setText($("h-pairs"), `Round ${round.round_id}: who plays whom`);
  const box = $("pairs-list");
  const { size, columns } = fitLetters(box, round.matches.length, 1.36, 17, Math.max(20, innerHeight / 20));
  box.style.fontSize = `${Math.floor(size * 10) / 10}px`;
  box.style.columnCount = columns;
  fill(box, round.matches, () => make("div"), (line, match) => {
    const [a, b] = rivals(match);
    setClass(line, match.ending ? "pair over" : "pair");
    if (!match.ending) return setText(line, `${name(a)} – ${name(b)}`);
    const winner = match.winner;
    const parts = [a, b].map(id => {
      const part = make(id === winner ? "b" : "span");
      setText(part, name(id));
      return part;
    });
    const score = `${match.score[a]}:${match.score[b]}`;
    if (line.dataset.content === `${match.match_id}${score}`) return;
    line.dataset.content = `${match.match_id}${score}`;
    line.replaceChildren(parts[0], ` ${score} `, parts[1]);
  });
}

/** Writes the results of the newest round with a result, which stay until the next round has one. */
function drawLatest() {
  // The results of a removed player stand before the round is played.
  const isPlayed = match => match.ending && !/removed by the operator/.test(match.reason ?? "");
  const round = league.rounds.findLast(round => round.matches.some(isPlayed));
  show($("latest"), Boolean(round) && !hasLuck());
  show($("wall-luck"), hasLuck());
  if (hasLuck()) return drawLuck($("wall-luck-chart"), league.standings.filter((row, n) => n < 12 || row.player_id === ME));
  if (!round) return;
  const newest = round.matches.filter(match => match.ending).sort((a, b) => a.recorded_at < b.recorded_at ? 1 : -1).slice(0, MAX_RESULTS);
  setText($("h-latest"), `Results of round ${round.round_id}`);
  $("latest").style.flexGrow = Math.min(round.matches.length, MAX_RESULTS) + 1; // as much room as all its lines need
  $("pairs").style.flexGrow = round.matches.length + 1;
  const { size, columns } = fitLetters($("latest-list"), Math.min(round.matches.length, MAX_RESULTS), 1.36, 22, Math.max(20, innerHeight / 24));
  $("latest-list").style.fontSize = `${Math.floor(size * 10) / 10}px`;
  $("latest-list").style.columnCount = columns;
  fill($("latest-list"), newest, () => make("li"), (item, match) => setText(item, sentence(match).replace(": the number was ", ", ")));
}

// ------------------------------------------------------------------------------------------------- views

/** Chooses the view that the address names. A match opens over the current view. */
function chooseView() {
  const requested = location.hash.slice(1);
  if (requested === "wall" || requested === "league" || /^P\d+$/.test(requested)) view = requested;
  else if (!requested) view = !IS_REPORT && innerWidth >= WALL_WIDTH && !isRepeated() ? "wall" : "league";
}

function draw() {
  const isPlayer = /^P\d+$/.test(view);
  const isLobby = league.status === "waiting", isWall = view === "wall";
  setClass(document.body, isWall ? isLobby ? "lobby" : "wall" : "");
  show($("wall-view"), isWall && !isLobby);
  show($("league-view"), view === "league" || isWall && isLobby);
  show($("player-view"), isPlayer);
  drawHead();
  if (isWall && !isLobby) return drawWall();
  if (isPlayer) {
    drawTable();
    return drawPlayer(view);
  }
  drawChampion();
  drawTable();
  drawChart();
  drawMeans();
  show($("gaps"), drawsNumbers() && league.status !== "waiting");
  if (drawsNumbers()) drawLuck($("luck-chart"), league.standings);
  drawFailures();
  drawCross();
  drawSchedule();
  drawAgents();
  drawRules();
  drawLobby(); // the last, since it measures the room that is left
}

/** Updates the league. A newer document is complete, except that it has only the rounds that have changed. */
function update(newest) {
  for (const { player_id: id, played: matches } of league ? newest.standings : []) {
    if (league.standings.some(row => row.player_id === id && row.played < matches)) changedAt.set(id, Date.now());
  }
  const rounds = new Map(league?.version ? league.rounds.map(round => [round.round_id, round]) : []);
  newest.rounds.forEach(round => rounds.set(round.round_id, round));
  const current = [...rounds.values()].filter(round => round.round_id <= newest.total_rounds); // a new league may have fewer
  league = { ...newest, rounds: current.sort((a, b) => a.round_id - b.round_id) };
  if (league.now) clockDifference = Date.parse(league.now) - Date.now();
  byId = new Map(league.agents.map(agent => [agent.id, agent]));
  pointsBeforeRound = pointsBefore();
  values = isRepeated() ? valuesOfMatches() : new Map();
}

// ------------------------------------------------------------------------------------------------- the messages of a match

/** Returns the rows of a diagram as sentences, for screen readers. */
function describeRows(diagram) {
  const [head, ...rows] = diagram.split("\n"), lanes = [];
  for (let at = 10; at < head.length; at += 10) lanes.push(head.slice(at, at + 10).trim());
  const lane = at => lanes[Math.floor((at - 11) / 10)], end = 2 + 10 * lanes.length;
  return rows.map(row => {
    const arrow = /\|[<x]?[-.]+[>x]?\|/.exec(row.slice(0, end)), label = row.slice(end).trim();
    if (!arrow) return /^ *\|/.test(row) ? label : row.trim();
    const ends = [lane(arrow.index), lane(arrow.index + arrow[0].length - 1)];
    const [from, to] = "<x".includes(arrow[0][1]) ? ends.reverse() : ends;
    return `After ${row.slice(0, 8).trim()} ms, ${from} to ${to}: ${label}${arrow[0].includes("x") ? ", which failed" : ""}`;
  });
}

/** Returns if it succeeded, and the diagram of a match: from the report itself, or from the manager. */
async function loadDiagram(id) {
  if (IS_REPORT) return [true, league.traces?.[id] ?? ""];
  const answer = await fetch(`trace/${id}`, { cache: "no-store" }).catch(() => null);
  return answer ? [answer.ok, await answer.text()] : [false, "The manager does not answer."];
}

/** Opens the match that the address names, for instance R1M1. */
async function openMatch() {
  const id = location.hash.slice(1), dialog = $("talk");
  const match = /^R\d+M\d+$/.test(id) ? allMatches().find(match => match.match_id === id) : undefined;
  if (!match || !traceOf(match)) return dialog.close();
  setText($("h-talk"), `What was said in ${id}`);
  setText($("talk-result"), sentence(match));
  show($("talk-board"), putBoard($("talk-board"), match));
  setText($("diagram"), "Reading the logs …");
  $("messages").replaceChildren();
  if (!dialog.open) dialog.showModal();
  const [ok, diagram] = await loadDiagram(id);
  if (location.hash !== `#${id}`) return;
  const rows = ok ? describeRows(diagram) : [diagram];
  $("diagram").textContent = diagram.split("\n").map(sanitize).join("\n");
  fill($("messages"), rows, () => make("li"), setText);
}
/** Returns from a match to the view below it. */
function closeMatch() {
  if (/^#R\d+M\d+$/.test(location.hash)) history.replaceState(null, "", `${location.pathname}${location.search}#${view}`);
}

// ------------------------------------------------------------------------------------------------- polling the manager

let failures = 0; // requests without an answer, one after the other

/** Asks the manager for changes since our version. */
async function poll() {
  try {
    const limit = AbortSignal.timeout(5000);
    const since = league.status === "waiting" ? 0 : league.version; // a lobby has no rounds yet
    const answer = await fetch(`league.json?since=${since}`, { cache: "no-store", signal: limit });
    const newest = await answer.json();
    if (failures > 0) {
      failures = 0;
      drawNotice();
    }
    if (newest.version !== league.version) {
      update(newest);
      draw();
    }
  } catch {
    failures += 1;
    drawNotice();
  }
  setTimeout(poll, document.hidden ? 5000 : failures > 3 ? 3000 : 1000);
}

$("chart-table").addEventListener("toggle", drawChart);
$("cross-open").addEventListener("toggle", drawCross);
$("copy").addEventListener("click", () => copyCommand("command"));
$("copy-windows").addEventListener("click", () => copyCommand("command-windows"));
$("print").addEventListener("click", () => print());
$("close").addEventListener("click", () => $("talk").close());
$("talk").addEventListener("close", closeMatch);
addEventListener("hashchange", () => { chooseView(); draw(); openMatch(); });
addEventListener("resize", draw);
addEventListener("beforeprint", () => { // on paper everything is open
  document.querySelectorAll("#rounds details, #cross-open").forEach(details => { details.open = true; });
  draw();
});

update(DATA);
chooseView();
draw();
openMatch();
if (!IS_REPORT) {
  setInterval(drawNow, 500);
  setTimeout(poll, 1000);
}
