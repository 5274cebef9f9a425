"use strict";
// The parts of which the pages are made: of the league (page.js) and of a player by hand (by_hand.html).
//
// A view is a list of parts, and a part is a tree of elements, made anew from the data each time. `morph` writes only
// the differences into the page, so nothing flickers. Texts of others become text nodes, never HTML.

const $ = id => document.getElementById(id);
const DATA = JSON.parse($("data")?.textContent ?? "{}");
const IS_REPORT = !("now" in DATA); // only a live page has a time

let league; // the newest document
let byId; // its agents, by their ids

const HARMFUL = /(?![\n\u2066-\u2069])[\p{C}\p{Zl}\p{Zp}]/gu;
const sanitize = text => String(text).replace(HARMFUL, "\ufffd");
const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : noun === "match" ? "es" : "s"}`;

/** Returns an element: `h("p.soft", { title: "…" }, "text", child)`. A key like `--hue` is a property of its style. */
function h(tag, ...parts) {
  const [type, ...classes] = tag.split(".");
  const isDrawn = /^(svg|polyline|line)$/.test(type);
  const element = document.createElementNS(`http://www.w3.org/${isDrawn ? "2000/svg" : "1999/xhtml"}`, type);
  classes.forEach(name => name && element.classList.add(name));
  for (const part of parts.flat(Infinity)) {
    if (part instanceof Node) element.append(part);
    else if (typeof part !== "object") {
      if (part !== undefined && part !== false) element.append(sanitize(part));
    } else {
      for (const [key, value] of Object.entries(part ?? {})) {
        if (key.startsWith("--")) element.style.setProperty(key, value);
        else if (value !== undefined && value !== false) element.setAttribute(key, sanitize(value));
      }
    }
  }
  return element;
}
const section = (title, ...parts) => h("section", h("h2", title), parts);
const wide = (title, ...parts) => h("section.wide", h("h2", title), parts);
const soft = (...parts) => h("p.soft", parts);

/** Makes an old element like a new one. Another scene is not compared, but replaced. */
function morph(old, made) {
  if (old.nodeName !== made.nodeName || old.dataset?.scene !== made.dataset?.scene) return old.replaceWith(made);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name) && name !== "open") old.removeAttribute(name); // the reader opens it
  for (const { name, value } of made.attributes) {
    if (name === "style") old.style.cssText = made.style.cssText; // the page may run no style of an attribute
    else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const children = [...made.childNodes];
  while (old.childNodes.length > children.length) old.lastChild.remove();
  children.forEach((child, n) => old.childNodes[n] ? morph(old.childNodes[n], child) : old.append(child));
}

// ------------------------------------------------------------------------------------------- players and matches

const players = () => league.agents.filter(agent => agent.kind === "player");
const rivals = match => [match.player_A_id, match.player_B_id];
const rival = (match, id) => rivals(match).find(other => other !== id);
const isOver = () => league.status === "completed";
const isLost = match => match.ending === "TECHNICAL_LOSS";
const failed = (match, id) => isLost(match) && match.winner !== id;

/** Returns the name of an agent, with its id if another player has the same name. */
function called(id) {
  const own = byId.get(id)?.display_name ?? id;
  const isShared = players().some(agent => agent.id !== id && agent.display_name === own);
  return isShared ? `${own} (${id})` : own;
}
/** Returns it for a sentence, between two marks that keep a name written from right to left apart. */
const name = id => `\u2068${called(id).replace(/[\u2066-\u2069]/g, "")}\u2069`;

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
/** Returns why a player lost technically. If both did, the reason has both, with a semicolon between them. */
function reason(match, id) {
  const parts = (match.reason ?? "").replace(/ - (\w+ wins by default|nobody wins)$/, "").split(/; (?=P\d+ )/);
  return (parts.find(part => part.startsWith(id)) ?? parts.join("; ")).replace(id, "").trim();
}
function sentence(match) {
  const ids = match.winner ? [match.winner, rival(match, match.winner)] : rivals(match), [a, b] = ids.map(name);
  if (!match.ending) return `${a} – ${b}`;
  if (!isLost(match)) return match.winner ? `${a} beat ${b}` : `${a} and ${b} drew`;
  return `${match.winner ? `${a} won, ${b}` : `${a} and ${b}`} lost technically: ${reason(match, ids[1])}`;
}
/** Returns the address of what was said in a match. A report has it of some matches only. */
function traceOf(match) {
  const wasPlayed = match.ending && match.referee_id && match.referee_id !== "league_manager";
  return (IS_REPORT ? league.traces?.[match.match_id] : wasPlayed) ? `#${match.match_id}` : undefined;
}

/** Returns the number of a player, from 0. Each twelve have the same colours, far apart, and another shape. */
const place = id => parseInt(id.replace(/\D/g, ""), 10) - 1;
const hue = id => ({ "--hue": place(id) * 150 % 360 });
/** Returns a player's letter in its colour. */
function badge(id) {
  const letter = [...(byId.get(id)?.display_name ?? id).replace(/^\P{L}+/u, "")][0] ?? "?";
  return h(`i.badge.shape${Math.floor(place(id) / 12) % 3}`, { "aria-hidden": true, ...hue(id) }, letter.toUpperCase());
}

/** Returns a match as a row: a player at each end, their choices as chips, and the number in a circle between them. */
function meeting(match, first = match.player_A_id) {
  const number = match.drawn_number, parity = number ? ["even", "odd"][number % 2] : "none";
  const [[a, one], [b, two]] = [first, rival(match, first)].map(id => {
    const [how] = outcome(match, id), chose = how === "failed" ? how : choice(match, id) || how;
    return [h(`span.${how}`, badge(id), h("bdi", called(id))), h(`b.chip.${chose}${chose === parity ? ".right" : ""}`, chose)];
  });
  const isBusy = !match.ending && match.status === "assigned" && !league.next_at && !isOver();
  const sign = match.ending ? isLost(match) ? "!" : "–" : "";
  return h(`a.meeting${isBusy ? ".busy" : ""}`, { href: traceOf(match), title: sentence(match) },
    a, one, h(`b.number.${match.ending ? parity : "open"}`, number ?? sign), two, b);
}
const meetings = (matches, first) => h("ol.meetings", matches.map(match => h("li", meeting(match, first))));

/** Returns a position of tic-tac-toe as a board; `cell` writes a free square. */
function board(text, cell = () => h("b")) {
  const squares = text.split(/\s+/);
  if (squares.length !== 9) return h("pre", text);
  return h("div.board", squares.map(square => /\d/.test(square) ? cell(square) : h(`b.${square}`, square)));
}
