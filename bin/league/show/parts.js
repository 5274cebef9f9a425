"use strict";
// The parts of the pages: of the league (page.js) and of a player by hand (by_hand.html).
//
// A view is a function from the newest document to a tree of elements, which it makes anew each
// time. `morph` then writes only the differences into the page, so nothing flickers and a reader
// keeps the place. Texts of other people become text nodes and attributes, never HTML.

const $ = id => document.getElementById(id);
const DATA = JSON.parse($("data")?.textContent ?? "{}");
const IS_REPORT = !("now" in DATA); // only a live page has a time

let league; // the newest document
let byId; // its agents, by their ids

// Control characters, and those that change the direction of writing. The marks U+2066 to U+2069
// stay: they only set a text apart from its line.
const HARMFUL = /(?![\n\u2066-\u2069])[\p{C}\p{Zl}\p{Zp}]/gu;
const sanitize = text => String(text).replace(HARMFUL, "\ufffd");

/** Returns `1 match` or `2 matches`. */
const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : noun === "match" ? "es" : "s"}`;

/**
 * Returns an element, as in `h("p.soft", { title: "…" }, "text", child)`: a tag with classes, then
 * attributes, texts and children in any order. An attribute like `--hue` is a property of the
 * style. `false` and `undefined` are left out, so `condition && child` can stand anywhere.
 */
function h(tag, ...parts) {
  const [type, ...classes] = tag.split(".");
  const space = ["svg", "polyline", "line"].includes(type) ? "2000/svg" : "1999/xhtml";
  const element = document.createElementNS(`http://www.w3.org/${space}`, type);
  if (classes.length > 0) element.setAttribute("class", classes.join(" ").trim());

  for (const part of parts.flat(Infinity)) {
    if (part === undefined || part === false) continue;
    if (part instanceof Node) {
      element.append(part);
    } else if (typeof part !== "object") {
      element.append(sanitize(part));
    } else {
      for (const [key, value] of Object.entries(part)) {
        if (value === undefined || value === false) continue;
        if (key.startsWith("--")) element.style.setProperty(key, value);
        else element.setAttribute(key, sanitize(value));
      }
    }
  }
  return element;
}

const section = (title, ...parts) => h("section", h("h2", title), parts);
const wide = (title, ...parts) => h("section.wide", h("h2", title), parts);
const soft = (...parts) => h("p.soft", parts);

/** Makes an old node of the page like a new one. Another view is not compared, but replaced. */
function morph(old, made) {
  if (old.nodeName !== made.nodeName || old.dataset?.scene !== made.dataset?.scene) {
    old.replaceWith(made);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }

  for (const { name } of [...old.attributes]) {
    const isOfReader = name === "open"; // the reader has opened it
    if (!made.hasAttribute(name) && !isOfReader) old.removeAttribute(name);
  }
  for (const { name, value } of made.attributes) {
    if (old.getAttribute(name) === value) continue;
    // The policy of the page forbids a style as an attribute, but not as a property.
    if (name === "style") old.style.cssText = value;
    else old.setAttribute(name, value);
  }

  const children = [...made.childNodes];
  while (old.childNodes.length > children.length) old.lastChild.remove();
  children.forEach((child, n) => {
    if (old.childNodes[n]) morph(old.childNodes[n], child);
    else old.append(child);
  });
}

// ---------------------------------------------------------------------------- players and matches

const players = () => league.agents.filter(agent => agent.kind === "player");
const rivals = match => [match.player_A_id, match.player_B_id];
const rival = (match, id) => rivals(match).find(other => other !== id);
const isOver = () => league.status === "completed";
const isLost = match => match.ending === "TECHNICAL_LOSS";
const failed = (match, id) => isLost(match) && match.winner !== id;

/** Returns the name of an agent, with its id if another player has the same name. */
function called(id) {
  const own = byId.get(id)?.display_name ?? id;
  return league.sharedNames.has(own) ? `${own} (${id})` : own;
}

/** Returns it for a sentence: a name that is written from right to left stays apart from it. */
const name = id => `\u2068${called(id).replace(/[\u2066-\u2069]/g, "")}\u2069`;

/** Takes a document as the newest one. */
function take(newest) {
  league = newest;
  byId = new Map(league.agents.map(agent => [agent.id, agent]));
  const names = players().map(agent => agent.display_name);
  league.sharedNames = new Set(names.filter((name, n) => names.indexOf(name) !== n));
}

/** Returns how a match ended for a player: its class and its letter. */
function outcome(match, id) {
  if (!match.ending) return ["", ""];
  if (failed(match, id)) return ["failed", "T"];
  if (!match.winner) return ["draw", "D"];
  return match.winner === id ? ["won", "W"] : ["lost", "L"];
}

/** Returns the choice of a player; empty in a game by turns. */
function choice(match, id) {
  if (match.match_id in league.positions) return "";
  return match.choices?.[id] ?? match.moves?.find(move => move.player_id === id)?.move ?? "";
}

/** Returns why a player lost technically. If both did, a semicolon stands between the reasons. */
function reason(match, id) {
  const text = (match.reason ?? "").replace(/ - (\w+ wins by default|nobody wins)$/, "");
  const parts = text.split(/; (?=P\d+ )/);
  const own = parts.find(part => part.startsWith(`${id} `));
  return own ? own.slice(id.length + 1) : text;
}

/** Returns a match as a sentence. */
function sentence(match) {
  const [a, b] = rivals(match).map(name);
  const losers = rivals(match).filter(id => failed(match, id));
  if (losers.length > 0) {
    return losers.map(id => `${name(id)} lost technically: ${reason(match, id)}`).join("; ");
  }
  if (match.winner) return `${name(match.winner)} beat ${name(rival(match, match.winner))}`;
  return match.ending ? `${a} and ${b} drew` : `${a} – ${b}`;
}

/** Returns the address of what was said in a match; a report has it of some matches only. */
function traceOf(match) {
  const { match_id: id, referee_id: referee } = match;
  const isPlayed = match.ending && referee && referee !== "league_manager";
  return (IS_REPORT ? league.traces?.[id] : isPlayed) ? `#${id}` : undefined;
}

/** Returns the number of a player, from 0. */
const place = id => parseInt(id.replace(/\D/g, ""), 10) - 1;
/** Returns the colour of a player. Twelve players have twelve colours, neighbours far apart. */
const hue = id => ({ "--hue": (place(id) * 150) % 360 });

/** Returns a player's letter in its colour. Each twelve players have another shape. */
function badge(id) {
  const own = byId.get(id)?.display_name ?? id;
  const letter = own.match(/\p{L}/u)?.[0] ?? "?";
  const shape = `shape${Math.floor(place(id) / 12) % 3}`;
  return h(`i.badge.${shape}`, { "aria-hidden": true, ...hue(id) }, letter.toUpperCase());
}

/**
 * Returns a match as a row: a player at each end, their choices as chips, and the number in a
 * circle between them. A chip is filled if it has named the number's parity.
 */
function meeting(match, first = match.player_A_id) {
  const { drawn_number: number, ending } = match;
  const parity = number ? ["even", "odd"][number % 2] : "none";

  const [[a, chipA], [b, chipB]] = [first, rival(match, first)].map(id => {
    const [how] = outcome(match, id);
    const chose = how === "failed" ? how : choice(match, id) || how;
    const right = chose === parity ? "right" : "";
    const player = h(`span.${how}`, badge(id), h("bdi", called(id)));
    return [player, h(`b.chip.${chose}.${right}`, chose)];
  });

  const isBusy = match.status === "assigned" && !ending && !league.next_at && !isOver();
  const sign = isLost(match) ? "!" : ending && "–";
  const circle = h(`b.number.${ending ? parity : "open"}`, number ?? sign);
  const attributes = { href: traceOf(match), title: sentence(match) };
  return h(`a.meeting.${isBusy ? "busy" : ""}`, attributes, a, chipA, circle, chipB, b);
}

/** Returns matches as a list. `first` is the player at the left, if it is the same in all. */
function meetings(matches, first) {
  return h("ol.meetings", matches.map(match => h("li", meeting(match, first))));
}

/** Returns a position of tic-tac-toe as a board. `cell` makes a free square. */
function board(position, cell = () => h("b")) {
  const squares = position.split(/\s+/);
  if (squares.length !== 9) return h("pre", position);
  const made = squares.map(square => (/\d/.test(square) ? cell(square) : h(`b.${square}`, square)));
  return h("div.board", made);
}
