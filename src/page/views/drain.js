/** The button that drains a backend or takes it back. It asks for confirmation, in case of a click on the wrong row. */
import { post } from "../api.js";
import { html, useState } from "../html.js";

/**
 * @param {{ name: string, isDrained: boolean }} props
 */
export function Drain({ name, isDrained }) {
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
