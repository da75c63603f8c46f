/** The backends: state and reason, load, and the last hour. */

import { html, useState } from "../html.js";
import { Mark } from "../table.js";
import { age, amount, clockTime, markOf } from "../words.js";
import { Drain } from "./drain.js";
import { ribbonOf } from "./ribbon.js";

/** @typedef {import("../rows.d.ts").Backend} Backend */

/**
 * @param {{ backends: readonly Backend[], now: number }} props
 */
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

/**
 * @param {{ backend: Backend, now: number }} props
 */
function OneBackend({ backend, now }) {
  const [isOpen, setOpen] = useState(false);
  const { name, state, sinceAgeMs, reason, pingP99Ms, requests, upstreamConnections, isDrained } = backend;
  const open = upstreamConnections.reduce((sum, row) => sum + row.open, 0);
  return html`<tr>
      <th scope="row" title=${backend.address}>${name}</th>
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

/**
 * @param {{ backend: Backend, now: number }} props
 */
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

/**
 * @param {{ backend: Backend }} props
 */
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
