/** Charts of rates since the page was opened, for at most 15 minutes. All charts have one common cursor. */
import uPlot from "uplot";
import { html, useEffect, useRef } from "../html.js";

/** @typedef {import("./rates.js").Point} Point */

/** `at`: index of a line's value in a point's `values`. */
const charts = [
  {
    title: "requests a second",
    lines: [
      { at: 0, label: "all", tone: "--line" },
      { at: 1, label: "5xx", tone: "--bad" },
    ],
  },
  { title: "watch events a second", lines: [{ at: 2, label: "events", tone: "--line" }] },
  { title: "CPU of this process, % of a core", lines: [{ at: 3, label: "CPU", tone: "--line" }] },
  { title: "event loop's lateness, ms", lines: [{ at: 4, label: "late", tone: "--line" }] },
];
const height = 110;
const minAxisSeconds = 60;

/**
 * Returns the time of day: "12:05:30".
 * @param {number} seconds since 1970
 */
const timeOfDay = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 8);

/** @param {{ points: readonly Point[], theme: string }} props */
export function Charts({ points, theme }) {
  return html`<section aria-labelledby="charts-title">
    <h2 id="charts-title">Rates since this page was opened</h2>
    <div class="charts">
      ${charts.map((chart) => html`<${Chart} key=${`${chart.title} ${theme}`} chart=${chart} points=${points} />`)}
    </div>
  </section>`;
}

/** @param {{ chart: (typeof charts)[number], points: readonly Point[] }} props */
function Chart({ chart: { title, lines }, points }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | undefined} */ (undefined));
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const made = new uPlot(optionsOf(element, title, lines), dataOf(points, lines), element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(points, lines)), [points]);
  return html`<figure aria-label=${title}><figcaption>${title}</figcaption><div ref=${place}></div></figure>`;
}

/**
 * @param {HTMLElement} element
 * @param {string} title
 * @param {(typeof charts)[number]["lines"]} lines
 * @returns {uPlot.Options}
 */
function optionsOf(element, title, lines) {
  const style = getComputedStyle(element);
  const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color("--faint"),
    grid: { stroke: color("--rule"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height,
    cursor: { sync: { key: "watchkeeper" } },
    legend: { show: false },
    series: [
      {},
      ...lines.map(({ label, tone }) => ({
        label: `${title} ${label}`,
        stroke: color(tone),
        width: 1.5,
        points: { show: false },
      })),
    ],
    axes: [
      { ...axis, size: 24, space: 80, values: (_plot, splits) => splits.map(timeOfDay) },
      { ...axis, size: 44 },
    ],
    scales: {
      x: { range: (_plot, least, most) => [Math.min(least, most - minAxisSeconds), most] },
      y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] },
    },
  };
}

/**
 * @param {readonly Point[]} points
 * @param {(typeof charts)[number]["lines"]} lines
 * @returns {uPlot.AlignedData}
 */
function dataOf(points, lines) {
  return [
    points.map(({ at }) => at),
    ...lines.map(({ at: which }) => points.map(({ values }) => values[which] ?? 0)),
  ];
}
