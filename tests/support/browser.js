// What a person sees of a page. `person.faults()` returns a sentence for each thing that is wrong; the names of the page
// itself stay free.
window.person = (() => {
  const WALL = () => location.hash === "#wall" && innerWidth >= 960; // it does not scroll

  let shift = 0; // how much has jumped since it was asked last, in parts of the window
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) shift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });

  // An animation without an end runs once here: it would be drawn sixty times a second, in each window.
  const once = new CSSStyleSheet();
  once.replaceSync("*, ::before, ::after { animation-iteration-count: 1 !important }");
  document.adoptedStyleSheets.push(once);

  /** Waits until nothing moves. */
  async function standsStill() {
    await Promise.all(document.getAnimations().map(one => one.finished.catch(() => {})));
  }

  /** Returns the part of a box that its ancestors do not cut off, and if a reader can scroll to the rest. */
  function clipped(box, element) {
    let { left, right, top, bottom } = box;
    let scrolls = false;
    for (let parent = element; parent !== document.documentElement; parent = parent.parentElement) {
      const { overflowX, overflowY, clipPath } = getComputedStyle(parent);
      if (clipPath !== "none") return undefined; // only for those who hear the page
      if (overflowX === "visible") continue;
      scrolls ||= /auto|scroll/.test(overflowX + overflowY);
      const frame = parent.getBoundingClientRect();
      [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
      [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
    }
    return { left, right, top, bottom, scrolls };
  }

  /** Returns each text on the page with its box; with an open dialog those in the dialog. */
  function texts() {
    const found = [];
    const root = document.querySelector("dialog[open]") ?? document.body;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const element = node.parentElement;
      if (!node.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const whole of range.getClientRects()) {
        const box = clipped(whole, element);
        if (box && whole.width > 0) found.push({ text: node.data.trim().slice(0, 40), element, whole, box });
      }
    }
    return found;
  }

  function outside({ text, box, whole }) {
    if (!box.scrolls && (whole.left < -1 || box.right > innerWidth + 1)) return `outside of the window: ${text}`;
    if (!box.scrolls && whole.bottom - whole.top - (box.bottom - box.top) > 3) return `cut off: ${text}`;
  }

  function overlaps(all) {
    const found = [];
    all.forEach(({ text, box, element }, n) => {
      for (const other of all.slice(n + 1)) {
        if (other.element === element) continue;
        const width = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const height = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        if (width > 3 && height > 3) found.push(`${text} lies over ${other.text}`);
      }
    });
    return found;
  }

  async function faults() {
    await standsStill();
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.documentElement;
    const all = texts();
    const found = [...all.map(outside).filter(Boolean), ...overlaps(all)];
    if (scrollWidth > clientWidth) found.push(`${scrollWidth - clientWidth} pixels wider than the window`);
    if (WALL() && scrollHeight > clientHeight) found.push("the wall is higher than the window");
    if (shift > 0.1) found.push(`it jumps: ${shift.toFixed(2)}`);
    shift = 0;
    if (window.axe) {
      const { violations } = await axe.run({ resultTypes: ["violations"] });
      for (const { id, nodes } of violations) found.push(`axe: ${id} at ${nodes[0].target}`);
    }
    return [...new Set(found)].slice(0, 20);
  }

  /** Returns those names of which a person sees no box, a part of it, or a covered one. */
  async function misses(names) {
    await standsStill();
    const isSeen = ({ element, box }) => {
      if (box.right - box.left < 8 || box.bottom - box.top < 8) return false;
      if (element.scrollWidth > element.clientWidth && element.clientWidth > 0) return false; // it ends in "…"
      if (!WALL()) element.scrollIntoView({ block: "center" });
      const { left, top, width, height } = element.getBoundingClientRect();
      const hit = document.elementFromPoint(left + width / 2, top + height / 2);
      return hit !== null && (element.contains(hit) || hit.contains(element));
    };
    const all = texts();
    return names.split(", ").filter(name => !all.some(one => one.text.includes(name.slice(0, 40)) && isSeen(one)));
  }

  /** Returns the texts of some elements. */
  const says = selector => [...document.querySelectorAll(selector)].map(one => one.innerText.replace(/\s+/g, " ").trim());

  const sorted = selector => says(selector).sort();
  const counts = selector => document.querySelectorAll(selector).length;

  /** Returns how many messages of a trace have no arrow. */
  async function undrawn(path) {
    const text = await (await fetch(path)).text();
    return text.match(/\|[<x]?-+[>x]?\|/g).length - counts(".arrow");
  }

  /** Returns how high some elements stand: 1 is the highest. */
  function steps(selector) {
    const tops = [...document.querySelectorAll(selector)].map(one => Math.round(one.getBoundingClientRect().top));
    const heights = [...new Set(tops)].sort((a, b) => a - b);
    return tops.map(top => heights.indexOf(top) + 1).join(" ");
  }

  /** Lets the next request for this path meet a busy manager. */
  function busy(path) {
    const { fetch } = window;
    window.fetch = (url, options) => {
      if (!url.includes(path)) return fetch(url, options);
      window.fetch = fetch;
      return Promise.resolve(new Response("", { status: 503 }));
    };
  }

  const clicks = selector => document.querySelector(selector).click();

  return { faults, misses, says, sorted, counts, undrawn, steps, busy, clicks };
})();
