/** One watch in detail: what it has delivered, and the latest changes of its state. */
import { ask } from "../data/api.js";
import { usePolled } from "../data/polled.js";
import { html } from "../html.js";
import { Mark } from "../table.js";
import { age, amount, clockTime, markOf, whoIs } from "../words.js";

/** @typedef {import("../data/rows.d.ts").Watch} Watch */
/** @typedef {import("../data/rows.d.ts").WatchDetail} Detail */

const everyMs = 2_000;

/**
 * Returns the milliseconds since the last event or bookmark; null if there was none.
 * @param {Pick<Watch, "lastEventAgeMs" | "lastBookmarkAgeMs">} watch
 */
export function silenceOf({ lastEventAgeMs, lastBookmarkAgeMs }) {
  if (lastEventAgeMs === null) return lastBookmarkAgeMs;
  return lastBookmarkAgeMs === null ? lastEventAgeMs : Math.min(lastEventAgeMs, lastBookmarkAgeMs);
}

/** @param {{ watch: Watch }} props */
export function State({ watch: { state, session } }) {
  return html`<${Mark} mark=${markOf(state)}>${state}${session === "" || session === "streaming" || session === state ? "" : `, ${session}`}<//>`;
}

/** @param {{ auditId: string, onClose: () => void }} props */
export function WatchPanel({ auditId, onClose }) {
  const { value: watch, failure } = usePolled(
    () => /** @type {Promise<Detail>} */ (ask(`/api/v1/watches/${encodeURIComponent(auditId)}`)),
    everyMs,
    auditId,
  );
  return html`<div class="panel" role="group" aria-label="one watch">
    <button type="button" class="close" onClick=${onClose} aria-label="Close the details">×</button>
    ${watch === undefined && html`<p class="empty">${failure === "" ? "Not read yet" : failure}</p>`}
    ${watch !== undefined && html`<${Facts} watch=${watch} /><${Life} watch=${watch} />`}
    ${watch !== undefined && failure !== "" && html`<p class="empty">${failure}</p>`}
  </div>`;
}

/** @param {{ watch: Detail }} props */
function Facts({ watch }) {
  const { resource, path, client, port, agent, backend, auditId, events, bytes, queuedBytes, moves, ageMs } =
    watch;
  const facts = [
    ["state", html`<${State} watch=${watch} />`],
    ["client", `${whoIs(watch)}, ${agent} from ${client}:${port}`],
    ["backend", backend],
    ["open", `${age(ageMs)}, ${moves} ${moves === 1 ? "move" : "moves"}`],
    [
      "silent",
      `${age(silenceOf(watch))} (event ${age(watch.lastEventAgeMs)}, bookmark ${age(watch.lastBookmarkAgeMs)})`,
    ],
    [
      "delivered",
      `${amount(events)} events, ${amount(bytes)}B${queuedBytes > 0 ? `; ${amount(queuedBytes)}B wait for the client` : ""}`,
    ],
    [
      "versions",
      `${watch.startResourceVersion || "none"} → ${watch.resourceVersion || "none"}${watch.isResumable ? "" : ", not resumable now"}`,
    ],
    ["request", html`<code>${path}</code>`],
    ["audit ID", html`<code>${auditId}</code>`],
  ];
  return html`<h3>${resource}</h3>
    <dl>${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Words for the states of a watch's upstream streams (docs/admin-api.md, "session"). */
const meanings = new Map([
  ["streaming", "continues"],
  ["hedged", "hedged: the backend is suspect, and a second stream is open elsewhere"],
  ["sentinel", "compared with a second stream at another backend"],
  ["refreshing", "asks for a bookmark"],
  ["migrating", "migrating: a second stream is about to replace the first"],
  ["resuming", "resuming at another backend"],
  ["parked", "lost its stream, waits for a backend"],
  ["ending", "is about to end"],
]);

/**
 * Returns the life of a watch, oldest first: its request, and the changes of its state that the API has kept.
 * @param {Pick<Detail, "startedAt" | "startResourceVersion" | "life">} watch
 */
export function lifeOf({ startedAt, startResourceVersion, life }) {
  const opened = { at: startedAt, state: "opened", text: "opened", version: startResourceVersion };
  const changes = life.map(({ at, state, backend, version }, index) => {
    const before = life[index - 1]?.backend;
    const moved =
      state === "streaming" && before !== undefined && before !== backend ? `, moved from ${before}` : "";
    return {
      at,
      state,
      text: `${meanings.get(state) ?? state}${moved}${backend === "" ? "" : ` (${backend})`}`,
      version,
    };
  });
  return [opened, ...changes];
}

/** @param {{ watch: Detail }} props */
function Life({ watch }) {
  const entries = lifeOf(watch);
  return html`<h3>Life <span class="count">the latest changes of its streams</span></h3>
    <ol class="timeline">
      ${entries.map(
        ({ at, state, text, version }) => html`<li>
          <span class="age">${clockTime(at)}</span> <${Mark} mark=${markOf(state)}>${text}<//>
          ${version !== "" && html` <span class="age">at version ${version}</span>`}
        </li>`,
      )}
    </ol>`;
}
