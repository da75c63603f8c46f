/** One incident, replayed second by second from its evidence: the lanes, the path and what was known at each moment. */
import { ask } from "../data/api.js";
import { usePolled } from "../data/polled.js";
import { indexAt } from "../data/recorded.js";
import { html, useEffect, useState } from "../html.js";
import { hashOf } from "../route.js";
import { Mark } from "../table.js";
import { age, clockTime, markOf } from "../words.js";
import { affectedOf, causedBy, impactOf, Lines, repeated } from "./incidents.js";
import { Lanes, momentIn, useHover } from "./lanes.js";
import { PathPicture } from "./path-picture.js";
import { stateAt, statesOf } from "./states.js";

/** @typedef {import("../data/rows.d.ts").Incident} Incident */
/** @typedef {import("../data/rows.d.ts").Backend} Backend */

const everyMs = 2_000;
const aroundMs = 30_000;
const leastMs = 120_000;
const stepMs = 1_000;
/** Milliseconds for which the replay shows each second of the incident. */
const playMs = 250;

/**
 * Returns the time axis of a replay: the incident and half a minute before and after it, but at least two minutes.
 * @param {Pick<Incident, "startedAt" | "endedAt">} incident
 * @param {number} now
 */
export function spanOf({ startedAt, endedAt }, now) {
  const end = endedAt === null ? now : Math.min(now, Date.parse(endedAt) + aroundMs);
  const to = Math.ceil(end / stepMs) * stepMs;
  return {
    from: Math.min(to - leastMs, Math.floor((Date.parse(startedAt) - aroundMs) / stepMs) * stepMs),
    to,
  };
}

/**
 * Returns what was found during the incident, oldest first: its evidence, and the state changes of all backends. A
 * state change that is also evidence appears once.
 * @param {Pick<Incident, "evidence" | "startedAt" | "endedAt" | "backend">} incident
 * @param {readonly Pick<Backend, "name" | "history">[]} backends
 */
export function findingsOf({ evidence, startedAt, endedAt, backend }, backends) {
  const changes = backends.flatMap(({ name, history }) =>
    history.map(({ at, to: state, detector, reason }) => {
      return { at, name, state, detector, measured: "", text: `${name} is ${state}: ${reason}`, auditId: "" };
    }),
  );
  const shown = evidence.map(({ at, detector, value, threshold, unit, text, auditId, repeats }) => {
    const change = changes.find((one) => one.at === at && one.name === backend);
    return {
      at,
      name: backend,
      state: change?.state ?? "",
      detector,
      measured: measuredOf(value, threshold, unit),
      text: repeated(text, repeats),
      auditId,
    };
  });
  const isShown = (/** @type {{ at: string, name: string }} */ change) =>
    shown.some(({ at, name }) => at === change.at && name === change.name);
  const from = Date.parse(startedAt);
  const to = endedAt === null ? Number.POSITIVE_INFINITY : Date.parse(endedAt);
  const others = changes.filter(
    (change) => Date.parse(change.at) >= from && Date.parse(change.at) <= to && !isShown(change),
  );
  const all = [...shown, ...others].map((finding) => ({ ...finding, ms: Date.parse(finding.at) }));
  return all.toSorted((a, b) => a.ms - b.ms);
}

/**
 * @param {number} value
 * @param {number} threshold 0: there is none
 * @param {string} unit
 */
function measuredOf(value, threshold, unit) {
  if (unit === "" || (value === 0 && threshold === 0)) return "";
  return threshold === 0
    ? ` ${Math.round(value)} ${unit}`
    : ` ${Math.round(value)} of ${Math.round(threshold)} ${unit}`;
}

/**
 * @param {{
 *   id: string,
 *   backends: readonly Backend[],
 *   recorded: import("../data/rows.d.ts").Recorded,
 *   now: number,
 *   params: Readonly<Record<string, string>>,
 *   onParams: (params: Readonly<Record<string, string>>) => void,
 * }} props
 */
export function IncidentPage({ id, backends, recorded, now, params, onParams }) {
  const { value: incident, failure } = usePolled(
    () => /** @type {Promise<Incident>} */ (ask(`/api/v1/incidents/${encodeURIComponent(id)}`)),
    everyMs,
    id,
  );
  if (incident === undefined) return html`<p class="empty">${failure === "" ? "Not read yet" : failure}</p>`;
  return html`<${Replay} incident=${incident} backends=${backends} recorded=${recorded} now=${now} params=${params} onParams=${onParams} />`;
}

/**
 * @param {{
 *   incident: Incident,
 *   backends: readonly Backend[],
 *   recorded: import("../data/rows.d.ts").Recorded,
 *   now: number,
 *   params: Readonly<Record<string, string>>,
 *   onParams: (params: Readonly<Record<string, string>>) => void,
 * }} props
 */
function Replay({ incident, backends, recorded, now, params, onParams }) {
  const [hover, setHover] = useHover();
  const [isPlaying, setPlaying] = useState(false);
  const { from, to } = spanOf(incident, now);
  // The replay opens at the second in which the incident was detected.
  const pinned = momentIn(params, from, to) ?? Math.ceil(Date.parse(incident.detectedAt) / stepMs) * stepMs;
  const at = hover ?? pinned;
  const pin = (ms = to) => onParams({ t: new Date(ms).toISOString() });
  useEffect(() => {
    if (!isPlaying) return undefined;
    const timer = setTimeout(() => {
      if (pinned + stepMs >= to) setPlaying(false);
      pin(Math.min(to, pinned + stepMs));
    }, playMs);
    return () => clearTimeout(timer);
  });
  const play = () => {
    if (!isPlaying && pinned >= to) pin(from);
    setPlaying(!isPlaying);
  };
  const stateOf = (/** @type {string} */ name) => {
    const backend = backends.find((one) => one.name === name);
    return stateAt(statesOf(backend, recorded, { name, from, to: Math.min(to, now) }), at).state;
  };
  const { kind, severity, summary, durationMs, state, detectionMs, startedAt, resolution } = incident;
  return html`<article class="replay" aria-labelledby="incident-title">
    <p><a href=${hashOf({ tab: "overview" })}>Overview</a></p>
    <h2 id="incident-title"><${Mark} mark=${markOf(severity)}>#${incident.id} ${kind}<//> <span class="age">${state}, ${age(durationMs)}</span></h2>
    <p class="lead">${summary}</p>
    <p class="age">
      ${[`Began ${clockTime(startedAt)}, detected ${age(detectionMs)} later.`, sentence(impactOf(incident)), affectedOf(incident), causedBy(incident), sentence(resolution)].join(" ")}
    </p>
    <div class="beside wide">
      <section aria-labelledby="replay-title">
        <div class="section-head">
          <h2 id="replay-title">Replay</h2>
          <button type="button" onClick=${play}>${isPlaying ? "pause" : "play"}</button>
        </div>
        <${Lanes} recorded=${recorded} backends=${backends} incidents=${[incident]} now=${now} from=${from} to=${to}
          pinned=${pinned} stepMs=${stepMs} onPin=${pin} onHover=${setHover} at=${at} isReplay />
      </section>
      <div>
        <${PathPicture} recorded=${recorded} index=${indexAt(recorded, at)} stateOf=${stateOf} />
        <${Findings} findings=${findingsOf(incident, backends)} at=${at} omitted=${incident.evidenceOmitted} />
      </div>
    </div>
    <${Lines} incident=${incident} />
  </article>`;
}

/** @param {string} text */
function sentence(text) {
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/**
 * The findings of the incident. Those after the shown moment are dimmed, and the last one before it is marked.
 * @param {{ findings: ReturnType<typeof findingsOf>, at: number, omitted: number }} props
 */
function Findings({ findings, at, omitted }) {
  const last = findings.findLastIndex(({ ms }) => ms <= at);
  return html`<section aria-labelledby="findings-title">
    <h2 id="findings-title">Evidence <span class="count">${last + 1} of ${findings.length} at ${clockTime(new Date(at).toISOString())}</span></h2>
    <ol class="findings">
      ${findings.map(
        (
          { at: when, detector, measured, state, text, auditId },
          index,
        ) => html`<li class=${index > last ? "later" : ""}
          aria-current=${index === last ? "step" : null}>
          <span class="age">${clockTime(when)}</span> ${state !== "" && html`<${Mark} mark=${markOf(state)} />`} ${text}${" "}
          <span class="age">${detector}${measured}</span> ${auditId !== "" && html`<code>${auditId}</code>`}
        </li>`,
      )}
    </ol>
    ${omitted > 0 && html`<p class="empty">${omitted} rows of evidence in between are not kept.</p>`}
  </section>`;
}
