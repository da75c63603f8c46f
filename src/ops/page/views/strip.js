/** Small charts without axes: lines of one series each, on the time axis of the lanes, drawn as SVG. */
import { html, useMemo } from "../html.js";

/** @typedef {import("../data/rows.d.ts").Values} Values */

const height = 100;

/**
 * Returns the path of a line: one unit of x for each value, y from 0 to 100 downwards. A gap in the values is a gap in
 * the line.
 * @param {Values} values
 * @param {number} top the value at y = 0
 */
export function pathOf(values, top) {
  let path = "";
  let isDown = false;
  for (const [x, value] of values.entries()) {
    if (value === null) {
      isDown = false;
      continue;
    }
    const y = height - (Math.min(value, top) / top) * height;
    // A value between two gaps becomes a line of length 0, which its round caps show as a dot.
    path += isDown ? `L${x} ${y.toFixed(1)}` : `M${x} ${y.toFixed(1)}h0`;
    isDown = true;
  }
  return path;
}

/**
 * Returns the largest value in the columns, or `least` if that is larger.
 * @param {readonly Values[]} columns
 * @param {number} least
 */
export function topOf(columns, least) {
  // Uses built-in functions, because they are fast even in the page's first run, before V8 has compiled the page's own
  // code.
  return Math.max(least, ...columns.map((values) => Math.max(...values.map(Number))));
}

/**
 * `lines`: drawn in this order, so that the last one is in front. `tone`: the CSS class for a line's colour. `span`:
 * number of steps on the time axis.
 * @param {{ lines: readonly { values: Values, tone: string }[], top: number, span: number }} props
 */
export function Strip({ lines, top, span }) {
  const paths = useMemo(
    () =>
      lines.map(({ values, tone }) => ({
        tone,
        path: pathOf(isState(tone) ? values.map(withoutZero) : values, top),
      })),
    [top, ...lines.map(({ values }) => values)],
  );
  return html`<svg class="strip" viewBox=${`-0.5 -4 ${Math.max(1, span)} ${height + 8}`} preserveAspectRatio="none" aria-hidden="true">
    ${paths.map(({ tone, path }) => html`<path class=${tone} d=${path} />`)}
  </svg>`;
}

/**
 * True if the tone is the colour of a bad state. A line of this colour omits zeros, because zero errors are no problem.
 * @param {string} tone
 */
function isState(tone) {
  return tone === "warn" || tone === "bad";
}

/** @param {number | null} value */
function withoutZero(value) {
  return value === 0 ? null : value;
}
