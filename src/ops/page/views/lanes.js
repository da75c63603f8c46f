/**
 * One lane for the incidents, one for each backend and one for the process, all on the same time axis. A cursor shows
 * the values of one moment. The mouse moves it, and the keyboard moves it with the slider below the lanes.
 */

import { endOf, indexAt } from "../data/recorded.js";
import { html, useMemo, useState } from "../html.js";
import { usePaced } from "../paced.js";
import { hashOf } from "../route.js";
import { amount, clockTime, markOf } from "../words.js";
import { BackendHead, PastHead } from "./backends.js";
import { Band, stateAt, statesOf } from "./states.js";
import { Strip, topOf } from "./strip.js";

/** @typedef {import("../data/rows.d.ts").Backend} Backend */
/** @typedef {import("../data/rows.d.ts").Incident} Incident */
/** @typedef {import("../data/rows.d.ts").Recorded} Recorded */
/** @typedef {{ series: string, tone: string }} Line */
/** @typedef {{ title: string, lines: readonly Line[], least: number, per?: number }} Chart */

/**
 * The charts of each backend. To show another series, add an entry. `least`: minimum for the top of the chart's scale.
 * All backends have the same scale. `per`: number by which the shown values are divided; default: 1. A chart is omitted
 * if its values in the shown time are 0 or missing at all backends.
 * @type {readonly Chart[]}
 */
const backendCharts = [
  { title: "requests/s", least: 1, lines: [{ series: "requests", tone: "plain" }] },
  {
    title: "p50, p99 ms",
    least: 10,
    lines: [
      { series: "p50Ms", tone: "faint" },
      { series: "p99Ms", tone: "plain" },
    ],
  },
  {
    title: "429, 5xx /s",
    least: 1,
    lines: [
      { series: "tooManyRequests", tone: "warn" },
      { series: "serverErrors", tone: "bad" },
    ],
  },
  { title: "watch delay ms", least: 10, lines: [{ series: "watchDelayMs", tone: "plain" }] },
  { title: "load", least: 10, lines: [{ series: "load", tone: "plain" }] },
  { title: "watches", least: 1, lines: [{ series: "watches", tone: "plain" }] },
  {
    title: "moved out, in",
    least: 1,
    lines: [
      { series: "movedOut", tone: "faint" },
      { series: "movedIn", tone: "plain" },
    ],
  },
];

/** @type {readonly Chart[]} */
const processCharts = [
  {
    title: "requests, failed /s",
    least: 1,
    lines: [
      { series: "requests", tone: "plain" },
      { series: "failures", tone: "bad" },
    ],
  },
  { title: "watch events/s", least: 1, lines: [{ series: "watchEvents", tone: "plain" }] },
  { title: "CPU, % of a core", least: 100, per: 10, lines: [{ series: "cpuMs", tone: "plain" }] },
  { title: "event loop late, ms", least: 10, lines: [{ series: "eventLoopDelayMs", tone: "plain" }] },
];

/**
 * `from` and `to`: the time axis, in ms since 1970. `at`: the moment that is shown. `pinned`: the moment that the user
 * has chosen; undefined: the user has chosen none, so the end of the axis is shown. `onPin`: called with a chosen
 * moment.
 * @param {{
 *   recorded: Recorded,
 *   backends: readonly Backend[],
 *   incidents: readonly Incident[],
 *   now: number,
 *   from: number,
 *   to: number,
 *   pinned: number | undefined,
 *   stepMs: number,
 *   onPin: (ms: number | undefined) => void,
 *   onHover: (ms: number | undefined) => void,
 *   at: number,
 *   isReplay?: boolean,
 * }} props `isReplay`: true if the lanes show the past only, without the present state and its buttons
 */
export function Lanes({
  recorded,
  backends,
  incidents,
  now,
  from,
  to,
  pinned,
  stepMs,
  onPin,
  onHover,
  at,
  isReplay = false,
}) {
  const names = [...new Set([...backends.map(({ name }) => name), ...recorded.backends.keys()])].toSorted();
  const axis = useMemo(() => axisOf(recorded, from, to), [recorded, from, to]);
  return html`<div class="lanes" onPointerMove=${(/** @type {PointerEvent} */ event) => onHover(timeAt(event, from, to))}
      onPointerLeave=${() => onHover(undefined)}>
    <${IncidentLane} incidents=${incidents} now=${Math.min(to, now)} from=${from} to=${to} />
    ${names.map((name, turn) => {
      const backend = backends.find((one) => one.name === name);
      return html`<${BackendLane} key=${name} name=${name} backend=${backend} axis=${axis} turn=${turn}
        now=${now} at=${at} isPresent=${!isReplay && at >= to} hasRoom=${!isReplay} />`;
    })}
    <${ProcessLane} axis=${axis} turn=${names.length} at=${at} />
    <div class="cursor" style=${{ "--at": String((at - from) / (to - from)) }} hidden=${at >= to} aria-hidden="true"></div>
    <${Axis} from=${from} to=${to} pinned=${pinned} at=${at} stepMs=${stepMs} onPin=${onPin} mayReset=${!isReplay} />
  </div>`;
}

/** @typedef {ReturnType<typeof axisOf>} TimeAxis */

/**
 * Returns what the lanes draw between the times `from` and `to`. An hour of 20 backends has 100,000 values, so each
 * lane is drawn in a separate frame (`usePaced`).
 * @param {Recorded} recorded
 * @param {number} from
 * @param {number} to
 */
function axisOf(recorded, from, to) {
  return { recorded, from, to, window: windowOf(recorded, from, to) };
}

/**
 * `turn`: position of the lane, from 0. `isPresent`: true if the lane's head shows the present state, with buttons.
 * `hasRoom`: true if a head that shows a moment in the past must be as high as one that shows the present.
 * @param {{
 *   name: string,
 *   backend: Backend | undefined,
 *   axis: TimeAxis,
 *   turn: number,
 *   now: number,
 *   at: number,
 *   isPresent: boolean,
 *   hasRoom: boolean,
 * }} props
 */
function BackendLane({ name, backend, axis, turn, now, at, isPresent, hasRoom }) {
  const shown = usePaced(axis, turn);
  const { recorded, from, to } = shown ?? axis;
  const pieces = useMemo(
    () => statesOf(backend, recorded, { name, from, to: Math.min(to, now) }),
    [backend, recorded, from, to, now],
  );
  const band = useMemo(
    () => html`<${Band} label=${`${name}, states`} pieces=${pieces} from=${from} to=${to} />`,
    [pieces],
  );
  return html`<div class="lane" role="group" aria-label=${name}>
    ${isPresent ? html`<${BackendHead} name=${name} backend=${backend} />` : html`<${PastHead} name=${name} piece=${stateAt(pieces, at)} hasRoom=${hasRoom} />`}
    ${
      shown !== undefined &&
      html`<${Row} title="state" value="">${band}<//>
        <${Charts} charts=${backendCharts} axis=${shown} at=${at} columns=${shown.window.backends.get(name) ?? noColumns} isShared />`
    }
  </div>`;
}

/** @param {{ axis: TimeAxis, turn: number, at: number }} props */
function ProcessLane({ axis, turn, at }) {
  const shown = usePaced(axis, turn);
  return html`<div class="lane" role="group" aria-label="this process">
    <div class="head"><h3>watchkeeper</h3> <span class="age">this process</span></div>
    ${shown !== undefined && html`<${Charts} charts=${processCharts} axis=${shown} at=${at} columns=${shown.window.process} />`}
  </div>`;
}

/** @type {import("../data/rows.d.ts").Columns} */
const noColumns = {};

/**
 * Returns, for the time between `from` and `to`: the values of all columns, the titles of the backends' charts that
 * have values, and the top of each chart's scale.
 * @param {Recorded} recorded
 * @param {number} from
 * @param {number} to
 */
function windowOf(recorded, from, to) {
  const start = Math.max(0, Math.floor((from - recorded.startedMs) / recorded.stepMs) - recorded.first);
  const count = Math.round((to - from) / recorded.stepMs);
  const before = Math.max(
    0,
    Math.round((recorded.startedMs + recorded.first * recorded.stepMs - from) / recorded.stepMs),
  );
  /** @type {(number | null)[]} */
  const empty = Array.from({ length: Math.min(before, count) }, () => null);
  const cut = (/** @type {import("../data/rows.d.ts").Columns} */ columns) =>
    Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [
        name,
        empty.concat(values.slice(start, start + count - empty.length)),
      ]),
    );
  const backends = new Map([...recorded.backends].map(([name, columns]) => [name, cut(columns)]));
  const shown = new Set(
    backendCharts
      .filter(({ lines }) =>
        [...backends.values()].some((columns) =>
          lines.some(({ series }) => hasValues(columns[series] ?? [])),
        ),
      )
      .map(({ title }) => title),
  );
  const tops = new Map(
    backendCharts.map(({ title, lines, least }) => {
      const all = [...backends.values()].flatMap((columns) =>
        lines.map(({ series }) => columns[series] ?? []),
      );
      return [title, topOf(all, least)];
    }),
  );
  // A step's index in a cut column is its index in the recorded column minus the returned `start`.
  return { start: start - empty.length, count, backends, process: cut(recorded.process), tops, shown };
}

/** @param {import("../data/rows.d.ts").Values} values */
function hasValues(values) {
  return values.some((value) => value !== null && value > 0);
}

/**
 * @param {{
 *   charts: readonly Chart[],
 *   axis: TimeAxis,
 *   at: number,
 *   columns: import("../data/rows.d.ts").Columns,
 *   isShared?: boolean,
 * }} props `isShared`: true if all backends have the same charts with the same scales
 */
function Charts({ charts, axis, at, columns, isShared = false }) {
  const { recorded, window } = axis;
  const index = indexAt(recorded, at) - window.start;
  const drawn = useMemo(
    () =>
      charts.flatMap((chart) => {
        const lines = chart.lines.map(({ series, tone }) => ({ values: columns[series] ?? [], tone }));
        const isShown = isShared && window.shown.has(chart.title);
        if (!isShown && !lines.some(({ values }) => hasValues(values))) return [];
        const all = lines.map(({ values }) => values);
        const { title, least, per = 1 } = chart;
        const top = (isShared ? window.tops.get(title) : undefined) ?? topOf(all, least * per);
        // Kept in `useMemo`: if the element is the same as before, Preact does not compare its contents, which saves
        // time while the mouse moves.
        const strip = html`<${Strip} lines=${lines} top=${top} span=${window.count} />`;
        return [{ title, per, top: amount(top / per), all, strip }];
      }),
    [axis, columns],
  );
  return drawn.map(({ title, per, top, all, strip }) => {
    const words = figuresOf(
      all.map((values) => values[index] ?? null),
      per,
    );
    return html`<${Row} key=${title} title=${title} value=${words} top=${top}>${strip}<//>`;
  });
}

/**
 * @param {readonly (number | null)[]} values
 * @param {number} per
 */
function figuresOf(values, per) {
  return values.every((value) => value === null)
    ? "–"
    : values.map((value) => figure(value, per)).join(" · ");
}

/**
 * @param {number | null} value
 * @param {number} per
 */
function figure(value, per) {
  if (value === null) return "–";
  const number = value / per;
  return number < 10 && !Number.isInteger(number) ? number.toFixed(1) : amount(number);
}

/** @param {{ title: string, value: string, top?: string, children?: unknown }} props */
function Row({ title, value, top = "", children }) {
  return html`<div class="row">
    <span class="title">${title}</span>
    <span class="plot">${children}</span>
    <span class="value">${value}${top !== "" && html` <span class="age" title="top of the scale">of ${top}</span>`}</span>
  </div>`;
}

const maxRows = 4;
/** Share of the time axis that the label of an incident takes. */
const labelShare = 0.16;

/**
 * Assigns each incident to the first row in which neither its bar nor its label overlaps an earlier incident. Incidents
 * beyond the last row are omitted.
 * @param {readonly Incident[]} incidents
 * @param {{ now: number, from: number, to: number }} axis an active incident lasts until `now`
 */
export function placed(incidents, { now, from, to }) {
  /** @type {number[]} */
  const ends = [];
  const label = (to - from) * labelShare;
  return incidents
    .map((incident) => ({
      incident,
      begin: Math.max(from, Date.parse(incident.startedAt)),
      end: Math.min(to, incident.endedAt === null ? now : Date.parse(incident.endedAt)),
    }))
    .filter(({ begin, end }) => end >= from && begin <= to && end >= begin)
    .toSorted((a, b) => a.begin - b.begin)
    .flatMap((bar) => {
      // At the right edge, the label ends where the bar ends, so that the label stays inside the lane.
      const isLate = bar.begin + label > to;
      const first = isLate ? Math.min(bar.begin, bar.end - label) : bar.begin;
      const free = ends.findIndex((end) => end < first);
      const row = free < 0 ? ends.length : free;
      ends[row] = Math.max(bar.end, first + label);
      return row < maxRows ? [{ ...bar, row, isLate }] : [];
    });
}

/** @param {{ incidents: readonly Incident[], now: number, from: number, to: number }} props */
function IncidentLane({ incidents, now, from, to }) {
  const bars = placed(incidents, { now, from, to });
  const rows = Math.max(1, ...bars.map(({ row }) => row + 1));
  const share = (/** @type {number} */ ms) => `${((ms / (to - from)) * 100).toFixed(3)}%`;
  return html`<div class="row incidents-row">
    <span class="title">incidents</span>
    <span class="plot" style=${{ height: `${rows * 22}px` }}>
      ${bars.length === 0 && html`<span class="empty">none</span>`}
      ${bars.map(
        ({ incident: { id, kind, severity, summary }, begin, end, row, isLate }) => html`<a key=${id}
          class=${`bar ${markOf(severity).tone} ${isLate ? "late" : ""}`} href=${hashOf({ tab: "incidents", id: String(id) })} title=${summary}
          style=${{ left: share(begin - from), width: share(end - begin), top: `${row * 22}px` }}>
          <span><span aria-hidden="true">${markOf(severity).sign} </span>#${id} <span class="kind">${kind}</span></span>
        </a>`,
      )}
    </span>
    <span class="value"></span>
  </div>`;
}

/**
 * Returns the time under the mouse; undefined: the mouse is not over the charts.
 * @param {PointerEvent} event
 * @param {number} from
 * @param {number} to
 */
function timeAt(event, from, to) {
  const lanes = event.currentTarget;
  const plot = lanes instanceof Element ? lanes.querySelector(".axis .plot") : null;
  // While the mouse is over the head of a lane, the lanes show the present, so that the head's buttons stay.
  const isOverPlot = event.target instanceof Element && event.target.closest(".plot") !== null;
  if (plot === null || !isOverPlot || event.pointerType === "touch") return undefined;
  const { left, width } = plot.getBoundingClientRect();
  const share = (event.clientX - left) / width;
  return share < 0 || share > 1 ? undefined : from + share * (to - from);
}

/**
 * @param {{ from: number, to: number, pinned: number | undefined, at: number, stepMs: number, onPin: (ms: number | undefined) => void, mayReset: boolean }} props
 */
function Axis({ from, to, pinned, at, stepMs, onPin, mayReset }) {
  const steps = Math.round((to - from) / stepMs);
  const value = Math.round(((pinned ?? to) - from) / stepMs);
  const moved = (/** @type {InputEvent & { currentTarget: HTMLInputElement }} */ event) => {
    const step = Number(event.currentTarget.value);
    onPin(step >= steps ? undefined : from + step * stepMs);
  };
  const ticks = Array.from({ length: 5 }, (_, tick) => from + ((to - from) * tick) / 4);
  return html`<div class="row axis">
    <label class="title" for="moment">time</label>
    <span class="plot">
      <input id="moment" type="range" min="0" max=${steps} step="1" value=${value} onInput=${moved}
        aria-valuetext=${clockTime(new Date(at).toISOString())} />
      <span class="ticks" aria-hidden="true">${ticks.map((ms) => html`<span>${clockTime(new Date(ms).toISOString()).slice(0, 8)}</span>`)}</span>
    </span>
    <span class="value">
      ${clockTime(new Date(at).toISOString()).slice(0, 8)}
      ${mayReset && pinned !== undefined && html` <button type="button" onClick=${() => onPin(undefined)}>now</button>`}
    </span>
  </div>`;
}

const ranges = /** @type {const} */ ([
  ["5m", 300_000],
  ["15m", 900_000],
  ["1h", 3_600_000],
]);

/**
 * Returns the shortest range that covers the whole life of the process, else the longest.
 * @param {number} ageMs
 */
function usualRange(ageMs) {
  return (ranges.find(([, span]) => ageMs <= span) ?? ranges[2])[0];
}

/**
 * The lanes of the last 5, 15 or 60 minutes, as the user chooses. `t` in `params` is the chosen moment.
 * @param {{
 *   recorded: Recorded,
 *   backends: readonly Backend[],
 *   incidents: readonly Incident[],
 *   now: number,
 *   params: Readonly<Record<string, string>>,
 *   onParams: (params: Readonly<Record<string, string>>) => void,
 *   onMoment: (ms: number | undefined) => void,
 *   moment: number | undefined,
 * }} props
 */
export function LastHour({ recorded, backends, incidents, now, params, onParams, onMoment, moment }) {
  // The axis includes the step that has not ended yet. For this step, there are states and incidents, but no values.
  const to = endOf(recorded) + recorded.stepMs;
  const chosen = params["range"] ?? usualRange(to - recorded.startedMs);
  const [, span] = ranges.find(([name]) => name === chosen) ?? ranges[2];
  const pinned = momentIn(params, to - span, to);
  const pin = (/** @type {number | undefined} */ ms) =>
    onParams({ t: ms === undefined ? "" : new Date(ms).toISOString() });
  return html`<section aria-labelledby="lanes-title">
    <div class="section-head">
      <h2 id="lanes-title">Backends <span class="count">${backends.length}</span></h2>
      <div class="choice" role="group" aria-label="time range">
        ${ranges.map(
          ([name]) => html`<button type="button" aria-pressed=${String(name === chosen)}
            onClick=${() => onParams({ range: name, t: "" })}>${name}</button>`,
        )}
      </div>
    </div>
    <${Lanes} recorded=${recorded} backends=${backends} incidents=${incidents} now=${now} from=${to - span} to=${to}
      pinned=${pinned} stepMs=${recorded.stepMs} onPin=${pin} onHover=${onMoment} at=${moment ?? to} />
  </section>`;
}

/**
 * Returns the moment that the browser's address contains; undefined: it contains none, or one outside of the time axis.
 * @param {Readonly<Record<string, string>>} params
 * @param {number} from
 * @param {number} to
 */
export function momentIn(params, from, to) {
  const ms = Date.parse(params["t"] ?? "");
  return ms >= from && ms <= to ? ms : undefined;
}

/** @returns {readonly [number | undefined, (ms: number | undefined) => void]} */
export function useHover() {
  return useState(/** @type {number | undefined} */ (undefined));
}
