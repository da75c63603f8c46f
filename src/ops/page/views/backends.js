/** The head of a backend's lane (lanes.js): its state and the reason, connections, and buttons "why?" and "drain". */
import { isElsewhere, post } from "../data/api.js";
import { html, useState } from "../html.js";
import { Mark } from "../table.js";
import { age, amount, clockTime, counted, markOf } from "../words.js";

/** @typedef {import("../data/rows.d.ts").Backend} Backend */

/**
 * `backend` is undefined if the backend was removed during the last hour.
 * @param {{ name: string, backend: Backend | undefined }} props
 */
export function BackendHead({ name, backend }) {
  const [isOpen, setOpen] = useState(false);
  if (backend === undefined)
    return html`<div class="head"><h3>${name}</h3> <span class="age">removed</span></div>`;
  const {
    version,
    address,
    state,
    sinceAgeMs,
    reason,
    stalledResources,
    unreachableAPIs,
    isDrained,
    shield,
  } = backend;
  return html`<div class="head">
      <h3 title=${address}>${name}</h3>
      <${Mark} mark=${markOf(state)}>${state} <span class="age">${age(sinceAgeMs)}</span><//>
      ${isDrained && html`<span class="age">drained</span>`}
      <span class="reason">${reason}${stalledResources.map((resource) => html` <b>${resource} stalled</b>`)}${unreachableAPIs.map((api) => html` <b>${api} unreachable</b>`)}${shield.cap > 0 && html` <b>lists limited, ${String(shield.waiting)} wait</b>`}</span>
      <span class="facts age">${factsOf(backend)}${version !== "" && ` · ${version}`}</span>
      <span class="buttons">
        <button type="button" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}
          aria-label=${`Why ${name} is ${state}`}>why?</button>
        <${Drain} name=${name} isDrained=${isDrained} />
      </span>
    </div>
    ${isOpen && html`<${History} backend=${backend} />`}`;
}

/**
 * The head of a backend's lane while the page shows a moment in the past.
 * @param {{ name: string, piece: { state: string, text: string }, hasRoom: boolean }} props `hasRoom`: true if this head
 * must be as high as BackendHead, so that the lanes do not move under the mouse
 */
export function PastHead({ name, piece: { state, text }, hasRoom }) {
  const reason = text.startsWith(`${state}: `) ? text.slice(state.length + 2) : "";
  return html`<div class=${hasRoom ? "head past" : "head"}>
    <h3>${name}</h3>
    <${Mark} mark=${markOf(state)}>${state}<//>
    <span class="reason">${reason}</span>
  </div>`;
}

/**
 * Returns a summary of the backend's load: "268 watches, 5 requests, 2 connections, PING 0.8 ms".
 * @param {Pick<Backend, "requests" | "upstreamConnections" | "pingP99Ms" | "load">} backend
 */
export function factsOf({ requests, upstreamConnections, pingP99Ms, load }) {
  return [
    counted(requests.watches, ["watch", "watches"]),
    counted(requests.plain + requests.longRunning, ["request", "requests"]),
    counted(
      upstreamConnections.reduce((sum, { open }) => sum + open, 0),
      ["connection", "connections"],
    ),
    ...(pingP99Ms === 0 ? [] : [`PING ${pingP99Ms.toFixed(1)} ms`]),
    ...(load.capacity === 1 ? [] : [`slow: gets ${Math.round(load.capacity * 100)} % of its share`]),
  ].join(", ");
}

/** @param {{ backend: Backend }} props */
function History({ backend: { history, certificates, suspectMs, load } }) {
  return html`<div class="history">
    <p>
      A PING unanswered for ${age(suspectMs)} makes it suspect. Load: ${amount(load.streams)}; reads take ${load.getMs} ms, lists ${load.listMs} ms${
        load.utilization < 0 ? "" : `; utilization ${Math.round(load.utilization * 100)} %`
      }.
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
  if (isElsewhere()) return null;
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
