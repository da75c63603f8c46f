/** The table of backends: state and reason, load, and the states of the last hour. */
import { post } from "../api.js";
import { html, useState } from "../html.js";
import { Mark } from "../table.js";
import { age, amount, clockTime, markOf } from "../words.js";

/** @typedef {import("../rows.d.ts").Backend} Backend */

/** @param {{ backends: readonly Backend[], now: number }} props */
export function Backends({ backends, now }) {
  return html`<section aria-labelledby="backends-title">
    <h2 id="backends-title">Backends <span class="count">${backends.length}</span></h2>
    <table class="backends">
      <thead>
        <tr>
          <th scope="col">backend</th><th scope="col">state</th><th scope="col">why</th>
          <th scope="col" class="number">PING p99</th><th scope="col">the last hour</th>
          <th scope="col" class="number">watches</th><th scope="col" class="number">requests</th>
          <th scope="col" class="number">connections</th><th scope="col"><span class="hidden">more</span></th>
        </tr>
      </thead>
      <tbody>
        ${backends.map((backend) => html`<${OneBackend} key=${backend.name} backend=${backend} now=${now} />`)}
      </tbody>
    </table>
    ${backends.length === 0 && html`<p class="empty">No backends</p>`}
  </section>`;
}

/** @param {{ backend: Backend, now: number }} props */
function OneBackend({ backend, now }) {
  const [isOpen, setOpen] = useState(false);
  const { name, version, state, sinceAgeMs, reason, pingP99Ms, requests, upstreamConnections, isDrained } =
    backend;
  const open = upstreamConnections.reduce((sum, row) => sum + row.open, 0);
  return html`<tr>
      <th scope="row" title=${backend.address}>${name}${version !== "" && html` <span class="age">${version}</span>`}</th>
      <td><${Mark} mark=${markOf(state)}>${state} <span class="age">${age(sinceAgeMs)}</span><//>${
        isDrained && html` <span class="age">drained</span>`
      }</td>
      <td class="reason">${reason}${backend.stalledResources.map((resource) => html` <b>${resource} stalled</b>`)}</td>
      <td class="number">${pingP99Ms === 0 ? "–" : `${pingP99Ms.toFixed(1)} ms`}</td>
      <td><${Ribbon} backend=${backend} now=${now} /></td>
      <td class="number">${amount(requests.watches)}</td>
      <td class="number">${amount(requests.plain + requests.longRunning)}</td>
      <td class="number">${open}</td>
      <td>
        <button type="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}
          aria-label=${`Why ${name} is ${state}`}>why?</button>
        <${Drain} name=${name} isDrained=${isDrained} />
      </td>
    </tr>
    ${isOpen && html`<tr><td colspan="9"><${History} backend=${backend} /></td></tr>`}`;
}

/** @param {{ backend: Backend, now: number }} props */
function Ribbon({ backend, now }) {
  const segments = ribbonOf(backend, now);
  const label = `${backend.name}, the last hour: ${segments.map(({ state }) => state).join(", ")}`;
  return html`<span class="ribbon" role="img" aria-label=${label}>
    ${segments.map(
      ({ state, percent, text }) =>
        html`<span class=${markOf(state).tone} style=${{ width: `${percent}%` }} title=${text}></span>`,
    )}
  </span>`;
}

/** @param {{ backend: Backend }} props */
function History({ backend: { history, certificates, suspectMs } }) {
  return html`<div class="history">
    <p>
      A PING unanswered for ${age(suspectMs)} makes it suspect.
      ${certificates.map(({ purpose, leftMs }) => html` ${purpose} certificate: ${age(leftMs)} left.`)}
    </p>
    <ol>
      ${history
        .toReversed()
        .slice(0, 12)
        .map(
          ({ at, from, to, detector, reason }) => html`<li>
            <span class="age">${clockTime(at)}</span> ${from} → <${Mark} mark=${markOf(to)}>${to}<//>
            ${detector}: ${reason}
          </li>`,
        )}
    </ol>
    ${history.length === 0 && html`<p class="empty">No state changes</p>`}
  </div>`;
}

/**
 * The button that starts or ends a backend's drain. A second click is needed, because the first may hit the wrong row.
 * @param {{ name: string, isDrained: boolean }} props
 */
function Drain({ name, isDrained }) {
  const [isAsked, setAsked] = useState(false);
  const [outcome, setOutcome] = useState({ text: "", isGood: true });
  const verb = isDrained ? "undrain" : "drain";
  const run = () => {
    setAsked(false);
    void post(`backends/${encodeURIComponent(name)}/${verb}`).then(
      (done) => setOutcome({ text: done.outcome, isGood: true }),
      (error) => setOutcome({ text: String(error?.message ?? error), isGood: false }),
    );
  };
  if (isAsked)
    return html`<span class="asked">
      <button type="button" onClick=${run}>${verb} ${name}</button>
      <button type="button" onClick=${() => setAsked(false)}>no</button>
    </span>`;
  return html`<button type="button" onClick=${() => setAsked(true)} aria-label=${`${verb} ${name}`}>${verb}</button>
    <span role="status" class=${outcome.isGood ? "done" : "done bad"} title=${outcome.text}>${outcome.text}</span>`;
}

const hourMs = 3_600_000;

/**
 * Returns the states of the last hour, each with its share of the hour in per cent. The state before the first known
 * change is the `from` of that change.
 * @param {Pick<import("../rows.d.ts").Backend, "state" | "history">} backend
 * @param {number} now milliseconds since 1970
 */
export function ribbonOf({ state, history }, now) {
  const from = now - hourMs;
  const changes = history.map((change) => ({ ...change, ms: Date.parse(change.at) }));
  const first = changes.find(({ ms }) => ms > from);
  /** @type {{ state: string, percent: number, text: string }[]} */
  const segments = [];
  let begun = from;
  let current = { state: first?.from ?? state, reason: "" };
  const close = (/** @type {number} */ end) => {
    const percent = ((end - begun) / hourMs) * 100;
    const text = current.reason === "" ? current.state : `${current.state}: ${current.reason}`;
    if (percent > 0) segments.push({ state: current.state, percent, text });
  };
  for (const { ms, to, reason } of changes) {
    if (ms > from) {
      close(Math.min(ms, now));
      begun = Math.min(ms, now);
    }
    if (ms > from || first === undefined) current = { state: to, reason };
  }
  close(now);
  return segments;
}
