/** The active incidents. A click on one shows its evidence: detector, measured value and threshold. */
import { pathAtReplica } from "../data/api.js";
import { html } from "../html.js";
import { hashOf } from "../route.js";
import { Mark } from "../table.js";
import { age, amount, clockTime, counted, markOf } from "../words.js";

/** @typedef {import("../data/rows.d.ts").Incident} Incident */

/** @param {{ incidents: readonly Incident[] }} props `incidents`: the active incidents */
export function Incidents({ incidents }) {
  return html`<section id="incidents" aria-labelledby="incidents-title" aria-live="polite">
    <h2 id="incidents-title">Active incidents <span class="count">${incidents.length}</span></h2>
    ${incidents.length === 0 && html`<p class="empty">No active incidents.</p>`}
    ${incidents.map((incident) => html`<${OneIncident} key=${incident.id} incident=${incident} />`)}
  </section>`;
}

/** @param {{ incident: Incident }} props */
function OneIncident({ incident }) {
  const { id, kind, severity, summary, durationMs } = incident;
  return html`<details class=${`incident ${severity}`} id=${`incident-${id}`}>
    <summary>
      <${Mark} mark=${markOf(severity)}>#${id} ${kind}<//>
      <span class="summary">${summary}</span>
      <span class="impacts">${impactOf(incident)}</span>
      <span class="age" title="since its start">${age(durationMs)}</span>
    </summary>
    <p>
      Began ${clockTime(incident.startedAt)}, detected ${age(incident.detectionMs)} later. ${affectedOf(incident)} ${causedBy(incident)}
      <a href=${hashOf({ tab: "incidents", id: String(id) })}>Replay</a>
    </p>
    <${EvidenceRows} incident=${incident} />
    <${Lines} incident=${incident} />
  </details>`;
}

/**
 * Returns a sentence with the affected clients; "": none is known.
 * @param {Pick<Incident, "affected">} incident
 */
export function affectedOf({ affected }) {
  return clientsIn("Affected", affected);
}

/**
 * Returns a sentence with the clients that cause the incident; "": no client does.
 * @param {Pick<Incident, "causedBy">} incident
 */
export function causedBy({ causedBy: clients }) {
  return clientsIn("Caused by", clients);
}

/**
 * @param {string} title
 * @param {Incident["affected"]} clients
 */
function clientsIn(title, { count, names }) {
  const more = count > names.length ? ` and ${amount(count - names.length)} more` : "";
  return count === 0 ? "" : `${title}: ${names.join(", ")}${more}.`;
}

/**
 * The nouns of each impact: singular and plural.
 * @type {ReadonlyMap<keyof Incident["impact"], readonly [one: string, several: string]>}
 */
const impacts = new Map([
  ["watchesMoved", ["watch moved", "watches moved"]],
  ["watchesEnded", ["watch ended", "watches ended"]],
  ["tunnelsEnded", ["tunnel ended", "tunnels ended"]],
  ["requestsFailed", ["request failed", "requests failed"]],
]);

/**
 * Returns the effect on clients: "131 watches moved, 3 tunnels ended".
 * @param {Pick<Incident, "impact">} incident
 */
export function impactOf({ impact }) {
  return Array.from(impacts, ([name, words]) => ({ count: impact[name], words }))
    .filter(({ count }) => count > 0)
    .map(({ count, words }) => counted(count, words))
    .join(", ");
}

/** @param {{ incident: Incident }} props */
function EvidenceRows({ incident: { evidence, evidenceOmitted } }) {
  return html`<table class="evidence">
    <thead>
      <tr>
        <th scope="col">when</th><th scope="col">detector</th><th scope="col" class="number">value</th>
        <th scope="col" class="number">threshold</th><th scope="col">finding</th>
      </tr>
    </thead>
    <tbody>
      ${evidence.map(
        ({ at, detector, value, threshold, unit, text, auditId, repeats }) => html`<tr>
          <td>${clockTime(at)}</td><td>${detector}</td>
          <td class="number">${unit === "" ? "" : `${Math.round(value)} ${unit}`}</td>
          <td class="number">${unit === "" ? "" : `${Math.round(threshold)} ${unit}`}</td>
          <td>${repeated(text, repeats)} ${auditId !== "" && html`<code>${auditId}</code>`}</td>
        </tr>`,
      )}
    </tbody>
  </table>
  ${evidenceOmitted > 0 && html`<p class="empty">${amount(evidenceOmitted)} rows in between are not shown.</p>`}`;
}

/**
 * @param {string} text
 * @param {number} repeats number of equal findings that are not shown
 */
export function repeated(text, repeats) {
  return repeats === 0
    ? text
    : `${text} (${counted(repeats, ["equal finding", "equal findings"])} since the row above)`;
}

/**
 * Lines to copy, each with a button: a Prometheus query and a command.
 * @param {{ incident: Incident }} props
 */
export function Lines({ incident }) {
  return html`<p class="lines">
    ${linesOf(incident).map(
      (line) => html`<span><code>${line}</code>
        <button type="button" onClick=${() => navigator.clipboard.writeText(line)} aria-label=${`Copy ${line}`}>copy</button>
      </span>`,
    )}
  </p>`;
}

/**
 * Returns the lines to copy: a Prometheus query for the backend, and the command that shows the whole incident.
 * @param {Pick<Incident, "id" | "backend">} incident
 */
export function linesOf({ id, backend }) {
  const one = `curl -s http://${location.host}${pathAtReplica(`/api/v1/incidents/${id}`)}`;
  return backend === "" ? [one] : [`watchkeeper_backend_state{backend="${backend}"}`, one];
}
