/** Until when every certificate is valid, the first to end first. */
import { html } from "./html.js";
import { Mark } from "./table.js";
import { age, markOf } from "./words.js";

/**
 * @param {{ certificates: readonly import("./rows.d.ts").CertificateRow[] }} props
 */
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
        }) => html`<li key=${`${purpose} ${name}`} title=${notAfter}>
          <${Mark} mark=${markOf(level)}>${name} ${purpose}<//>
          <span class="age">${leftMs <= 0 ? "ended" : age(leftMs)}</span>
        </li>`,
      )}
    </ul>
    ${certificates.length === 0 && html`<p class="empty">None is known yet</p>`}
  </section>`;
}
