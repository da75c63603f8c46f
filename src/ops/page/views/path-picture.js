/**
 * A picture of the path: clients by kind, this proxy, and the backends. The width of a band shows its number of open
 * requests, and its colour the state of the backend. While watches move, dots travel from the old backend to the new
 * one.
 */
import { html, useEffect, useRef, useState } from "../html.js";
import { amount, clockTime, counted, markOf } from "../words.js";

/** @typedef {import("../data/rows.d.ts").Recorded} Recorded */
/** @typedef {{ name: string, streams: number }} Source */
/** @typedef {{ name: string, state: string, streams: number, movedIn: number, movedOut: number }} Target */

/** The kinds of clients, in the order of the picture, with their labels. */
const kinds = new Map([
  ["control-plane", "control plane"],
  ["node", "nodes"],
  ["controller", "controllers"],
  ["kubectl", "kubectl"],
  ["other", "others"],
]);

/**
 * Returns the streams of one step by kind of client and by backend. Kinds without streams are omitted.
 * @param {Recorded} recorded
 * @param {number} index of the step
 * @param {(backend: string) => string} stateOf
 * @returns {{ sources: readonly Source[], targets: readonly Target[] }}
 */
export function streamsAt({ backends }, index, stateOf) {
  const valueOf = (
    /** @type {import("../data/rows.d.ts").Columns} */ columns,
    /** @type {string} */ series,
  ) => columns[series]?.[index] ?? 0;
  const all = [...backends].filter(([, columns]) => (columns["state"]?.[index] ?? null) !== null);
  const sources = Array.from(kinds, ([kind, name]) => ({
    name,
    streams: all.reduce((sum, [, columns]) => sum + valueOf(columns, `streams-${kind}`), 0),
  })).filter(({ streams }) => streams > 0);
  const targets = all.map(([name, columns]) => ({
    name,
    state: stateOf(name),
    streams: [...kinds.keys()].reduce((sum, kind) => sum + valueOf(columns, `streams-${kind}`), 0),
    movedIn: valueOf(columns, "movedIn"),
    movedOut: valueOf(columns, "movedOut"),
  }));
  return { sources, targets: targets.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
}

const rowHeight = 38;
const pad = 10;
const boxWidth = 108;
const minBand = 1.5;
/** Maximum width of one stream, in pixels. */
const mostPixels = 3;

/**
 * Places a band for each number of streams, one below another and centred, with room for a label beside each. `outer`:
 * the vertical middle of the band at its label. `inner`: the vertical middle where the band meets the proxy.
 * @param {readonly number[]} streams
 * @param {number} height
 * @param {number} perPixel
 */
export function placedBands(streams, height, perPixel) {
  const widths = streams.map((count) => Math.max(minBand, count / perPixel));
  const heights = widths.map((width) => Math.max(rowHeight, width + 8));
  const total = heights.reduce((sum, one) => sum + one, 0);
  const thickness = widths.reduce((sum, one) => sum + one, 0);
  let outer = (height - total) / 2;
  let inner = (height - thickness) / 2;
  return widths.map((width, at) => {
    const band = { width, outer: outer + (heights[at] ?? 0) / 2, inner: inner + width / 2 };
    outer += heights[at] ?? 0;
    inner += width;
    return band;
  });
}

/**
 * Returns where the parts of the picture are, in pixels. `left` and `right`: the bands of sources and targets.
 * @param {{ sources: readonly Source[], targets: readonly Target[] }} streams
 * @param {number} width
 */
function layoutOf({ sources, targets }, width) {
  // The sum over the sources and the sum over the targets may differ: a backend's number of open requests is current,
  // but the numbers for the clients are those of the last step.
  const total = Math.max(
    ...[sources, targets].map((all) => all.reduce((sum, { streams }) => sum + streams, 0)),
  );
  const height = rowHeight * Math.max(3, sources.length, targets.length) + 2 * pad;
  // Together, the bands take less than half of the height, so that each label has its row.
  const perPixel = Math.max(1 / mostPixels, total / (height * 0.42));
  const left = placedBands(
    sources.map(({ streams }) => streams),
    height,
    perPixel,
  );
  const right = placedBands(
    targets.map(({ streams }) => streams),
    height,
    perPixel,
  );
  const thickness = [left, right].map((bands) => bands.reduce((sum, band) => sum + band.width, 0) + 12);
  const boxHeight = Math.max(rowHeight, ...thickness);
  const isNarrow = width < 560;
  const sideWidth = isNarrow ? 96 : 130;
  const box = { x: (width - boxWidth) / 2, y: (height - boxHeight) / 2, width: boxWidth, height: boxHeight };
  return { width, height, left, right, box, isNarrow, from: sideWidth, to: width - sideWidth };
}

/** @typedef {ReturnType<typeof layoutOf>} Layout */

/**
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 */
function curve(x0, y0, x1, y1) {
  const middle = (x0 + x1) / 2;
  return `M${x0} ${y0.toFixed(1)}C${middle} ${y0.toFixed(1)} ${middle} ${y1.toFixed(1)} ${x1} ${y1.toFixed(1)}`;
}

const noBand = { width: 0, outer: 0, inner: 0 };

/**
 * `backends`: the current backends, whose numbers of open requests are newer than those of the step; [] if the picture
 * shows a moment in the past.
 * @param {{
 *   recorded: Recorded,
 *   index: number,
 *   stateOf: (backend: string) => string,
 *   backends?: readonly import("../data/rows.d.ts").Backend[],
 * }} props
 */
export function PathPicture({ recorded, index, stateOf, backends = [] }) {
  const [place, width] = useWidth();
  const step = streamsAt(recorded, index, stateOf);
  const targets = step.targets.map((target) => {
    const now = backends.find(({ name }) => name === target.name)?.requests;
    return now === undefined ? target : { ...target, streams: now.watches + now.plain + now.longRunning };
  });
  const streams = { sources: step.sources, targets };
  const total = targets.reduce((sum, one) => sum + one.streams, 0);
  const moves = movesOf(targets);
  const begun = clockTime(
    new Date(recorded.startedMs + (recorded.first + index) * recorded.stepMs).toISOString(),
  ).slice(0, 8);
  return html`<section aria-labelledby="path-title">
    <h2 id="path-title">Path <span class="count">${counted(total, ["open request", "open requests"])}</span></h2>
    <div class="path" ref=${place}>
      ${width > 0 && html`<${Picture} streams=${streams} moves=${moves} layout=${layoutOf(streams, width)} step=${index} />`}
      ${moves.map(
        ({ from, to, count }) => html`<p class="moves" key=${`${from} ${to}`}>
          ${counted(count, ["watch", "watches"])} moved from ${from} to ${to}, ${begun}
        </p>`,
      )}
    </div>
  </section>`;
}

/**
 * @param {{
 *   streams: { sources: readonly Source[], targets: readonly Target[] },
 *   moves: ReturnType<typeof movesOf>,
 *   layout: Layout,
 *   step: number,
 * }} props
 */
function Picture({ streams, moves, layout, step }) {
  const { sources, targets } = streams;
  const { width, height, left, box } = layout;
  const indexOf = (/** @type {string} */ backend) => targets.findIndex(({ name }) => name === backend);
  return html`<svg width=${width} height=${height} role="img" aria-label=${pathInWords(streams)}>
    ${sources.map(({ name, streams: count }, at) => {
      const band = left[at] ?? noBand;
      return html`<g key=${name}>
        <path class="band-line calm" d=${curve(layout.from, band.outer, box.x, band.inner)} stroke-width=${band.width} />
        <text x=${layout.from - 10} y=${band.outer - 3} text-anchor="end">${name}</text>
        <text class="faint" x=${layout.from - 10} y=${band.outer + 13} text-anchor="end">${amount(count)}</text>
      </g>`;
    })}
    ${targets.map((target, at) => html`<${TargetBand} key=${target.name} target=${target} at=${at} layout=${layout} />`)}
    <rect class="box" x=${box.x} y=${box.y} width=${box.width} height=${box.height} rx="4" />
    <text x=${width / 2} y=${height / 2 + 4} text-anchor="middle">watchkeeper</text>
    ${moves.map(({ from, to }) => {
      const path = `${bandOf(layout, indexOf(from), true)} ${bandOf(layout, indexOf(to), false)}`;
      return html`<${Dots} key=${`${from} ${to} ${step}`} path=${path} />`;
    })}
  </svg>`;
}

/** @param {{ target: Target, at: number, layout: Layout }} props */
function TargetBand({ target: { name, state, streams }, at, layout }) {
  const band = layout.right[at] ?? noBand;
  const { sign, tone } = markOf(state);
  const x = layout.to + 10;
  return html`<g>
    <path class=${`band-line ${tone}`} d=${bandOf(layout, at, false)} stroke-width=${band.width}
      stroke-dasharray=${streams === 0 ? "2 5" : "none"} />
    <text x=${x} y=${band.outer - 3}>${clip(name, layout.isNarrow ? 12 : 18)}<title>${name}</title></text>
    <text class=${tone} x=${x} y=${band.outer + 13}>${sign} ${state} ${amount(streams)}</text>
  </g>`;
}

/**
 * Returns the SVG path of the band between the proxy and a backend.
 * @param {Layout} layout
 * @param {number} at index of the backend
 * @param {boolean} isBack true if the path leads to the proxy
 */
function bandOf({ right, box, to }, at, isBack) {
  const { inner, outer } = right[at] ?? noBand;
  const proxy = box.x + box.width;
  return isBack ? curve(to, outer, proxy, inner) : curve(proxy, inner, to, outer);
}

const dots = 7;

/** Dots that travel along a path; none if the user prefers reduced motion. @param {{ path: string }} props */
function Dots({ path }) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return null;
  return Array.from(
    { length: dots },
    (_, at) => html`<circle class="dot" r="3">
      <animateMotion dur="1.8s" begin=${`${-at * (1.8 / dots)}s`} repeatCount="indefinite" path=${path} />
    </circle>`,
  );
}

/**
 * Returns the pairs of backends between which watches probably moved in the step. The history has only sums for each
 * backend, so each backend that lost watches is paired with the other backend that gained most.
 * @param {readonly Target[]} targets
 */
export function movesOf(targets) {
  const leaving = targets.filter(({ movedOut }) => movedOut > 0).toSorted((a, b) => b.movedOut - a.movedOut);
  const coming = targets.filter(({ movedIn }) => movedIn > 0).toSorted((a, b) => b.movedIn - a.movedIn);
  return leaving.flatMap(({ name: from, movedOut }) => {
    const to = coming.find(({ name }) => name !== from);
    return to === undefined ? [] : [{ from, to: to.name, count: Math.min(movedOut, to.movedIn) }];
  });
}

/** @param {{ sources: readonly Source[], targets: readonly Target[] }} streams */
export function pathInWords({ sources, targets }) {
  const clients = sources.map(({ name, streams }) => `${name} ${streams}`).join(", ") || "no clients";
  const backends =
    targets.map(({ name, state, streams }) => `${name} ${state} ${streams}`).join(", ") || "no backends";
  return `Open requests. From ${clients}. To ${backends}.`;
}

/**
 * @param {string} text
 * @param {number} most
 */
function clip(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/**
 * Returns a ref for an element, and the element's width in pixels.
 * @returns {readonly [{ current: HTMLElement | null }, number]}
 */
function useWidth() {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [place, width];
}
