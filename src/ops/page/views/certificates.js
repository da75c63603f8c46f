/** The list of certificates, sorted by expiry. */
import { html } from "../html.js";
import { Mark } from "../table.js";
import { age, markOf } from "../words.js";

/** @param {{ certificates: readonly import("../data/rows.d.ts").CertificateRow[] }} props */
export function Certificates({ certificates }) {
  return html`<section aria-labelledby="certificates-title">
    <h2 id="certificates-title">Certificates</h2>
    <ul class="certificates">
      ${certificates.map(
        ({
          purpose,
          name,
          notAfter,
          leftMs,
          level,
          refused,
        }) => html`<li key=${`${purpose} ${name}`} title=${refused || notAfter}>
          <${Mark} mark=${markOf(refused === "" ? level : "refused")}>
            ${name} ${purpose}${refused === "" ? "" : ": new files refused"}
          <//>
          <span class="age">${leftOf(leftMs)}</span>
        </li>`,
      )}
    </ul>
    ${certificates.length === 0 && html`<p class="empty">No certificates</p>`}
  </section>`;
}

/** @param {number | null} leftMs */
function leftOf(leftMs) {
  if (leftMs === null) return "no valid one";
  return leftMs <= 0 ? "ended" : age(leftMs);
}
