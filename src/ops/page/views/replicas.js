/**
 * A table of the replicas, the control that chooses the replica whose data the page shows, and a warning if that
 * replica does not answer.
 */

import { problemOf } from "../data/replica.js";
import { html } from "../html.js";
import { Mark } from "../table.js";
import { age, markOf } from "../words.js";

/** @typedef {import("../data/rows.d.ts").Replica} Replica */
/** `shown`: name of the replica whose data the page shows; "": the replica that serves the page. */
/** @typedef {{ replicas: readonly Replica[], shown: string, onShow: (name: string) => void }} Choice */

/**
 * Returns the value for a replica in `Choice` (`shown`, `onShow`): its name, or "" for the replica that serves the
 * page.
 * @param {Replica} replica
 */
const valueOf = ({ name, isSelf }) => (isSelf ? "" : name);

/** @param {Replica} replica */
const labelOf = ({ name, isSelf }) => (isSelf ? `${name} (this replica)` : name);

/**
 * The control in the page's header that chooses the replica whose data the page shows. Omitted if there is only one
 * replica.
 * @param {Choice} props
 */
export function ReplicaChoice({ replicas, shown, onShow }) {
  if (replicas.length < 2 && shown === "") return null;
  const isListed = replicas.some((one) => valueOf(one) === shown);
  return html`<label>
    <span class="hidden">Replica that the page shows</span>
    <select id="replica" value=${shown}
      onChange=${(/** @type {Event & { currentTarget: HTMLSelectElement }} */ event) => onShow(event.currentTarget.value)}>
      ${replicas.map(
        (one) => html`<option value=${valueOf(one)} selected=${valueOf(one) === shown}>
          ${labelOf(one)}${one.state === "live" ? "" : `, ${one.state}`}
        </option>`,
      )}
      ${!isListed && html`<option value=${shown} selected>${shown || "this replica"}</option>`}
    </select>
  </label>`;
}

/**
 * Says that the shown replica does not answer, and offers the other replicas. The replica's last data stays visible.
 * @param {Choice} props
 */
export function LostReplica({ replicas, shown, onShow }) {
  const problem = problemOf(replicas, shown);
  const others = replicas.filter((one) => one.state === "live" && valueOf(one) !== shown);
  return html`<div role="alert" class="lost">
    ${
      problem !== "" &&
      html`<p>
        <${Mark} mark=${markOf("silent")}>${problem}<//> Show another replica:
        ${others.map(
          (one) =>
            html` <button type="button" onClick=${() => onShow(valueOf(one))}>${labelOf(one)}</button>`,
        )}
      </p>`
    }
  </div>`;
}

/** @param {Choice & { now: number }} props `now`: the proxy's time, in ms since 1970 */
export function Replicas({ replicas, shown, onShow, now }) {
  if (replicas.length < 2) return null;
  return html`<section aria-labelledby="replicas-title" class="wide">
    <h2 id="replicas-title">Replicas</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="all replicas">
      <table>
        <thead>
          <tr>
            ${["Replica", "State", "Version", "Up", "Incidents", "Address"].map(
              (title) => html`<th scope="col" class=${title === "Incidents" ? "number" : ""}>${title}</th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${replicas.map((one) => html`<${ReplicaRow} key=${one.name} replica=${one} shown=${shown} onShow=${onShow} now=${now} />`)}
        </tbody>
      </table>
    </div>
  </section>`;
}

/** @param {{ replica: Replica, now: number } & Omit<Choice, "replicas">} props */
function ReplicaRow({ replica, shown, onShow, now }) {
  const { state, version, startedAt, activeIncidents, address, lastError } = replica;
  const isShown = valueOf(replica) === shown;
  const upMs = Date.parse(startedAt) > 0 && now > 0 ? now - Date.parse(startedAt) : null;
  return html`<tr class=${isShown ? "selected" : ""}>
    <td data-label="Replica">
      ${
        isShown
          ? html`${labelOf(replica)}, shown`
          : html`<button type="button" onClick=${() => onShow(valueOf(replica))} aria-label=${`Show ${labelOf(replica)}`}>${labelOf(replica)}</button>`
      }
    </td>
    <td data-label="State">
      <${Mark} mark=${markOf(state)}>${state}<//>
      ${lastError !== "" && html` <span class="reason">${lastError}</span>`}
    </td>
    <td data-label="Version">${version || "–"}</td>
    <td data-label="Up">${state === "live" ? age(upMs) : "–"}</td>
    <td data-label="Incidents" class="number">${version === "" ? "–" : activeIncidents}</td>
    <td data-label="Address">${address || "–"}</td>
  </tr>`;
}
