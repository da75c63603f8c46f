/** The differences between the runs, as Markdown. A spec that passes directly but not through the proxy is a defect. */
import { markdown } from "../rig/table.ts";
import type { Judged, Played } from "./play.ts";

function verdict(result: Judged | undefined): string {
  if (result === undefined) return "–";
  if (result.passed) return "passed";
  return result.cost ?? "failed";
}

/**
 * Returns the specs that failed in a run through the proxy and did not fail directly, each with its message. A spec
 * that did not run directly counts too.
 */
export function defects(played: readonly Played[]): readonly string[] {
  const straight = played.find(({ mode }) => mode === "straight");
  const failsAnyway = (title: string): boolean =>
    straight !== undefined && resultOf(straight, title)?.passed === false;
  return played
    .filter(({ mode }) => mode !== "straight")
    .flatMap((one) => {
      const { mode, results } = one;
      const failed = results
        .filter(({ passed, title }) => !passed && !failsAnyway(title))
        .filter(({ cost }) => cost === undefined)
        .map(({ title, message }) => `${mode}: ${title}: ${message.slice(0, 600)}`);
      const unrun = (straight?.results ?? [])
        .filter(({ passed, title }) => passed && resultOf(one, title) === undefined)
        .map(({ title }) => `${mode}: ${title}: was not run`);
      return [...failed, ...unrun];
    });
}

export function table(played: readonly Played[]): string {
  const head = ["", ...played.map(({ mode }) => mode)];
  const passed = played.map(({ results }) => results.filter((one) => one.passed).length);
  const rows = [
    ["specs", ...played.map(({ results }) => results.length)],
    ["passed", ...passed],
    ["minutes", ...played.map(({ minutes }) => minutes.toFixed(1))],
    ["faults", ...played.map(({ faults }) => faults.length)],
    ["lists anew", ...played.map(({ reflectors }) => reflectors.listedAnew)],
    ["watches that ended in an error", ...played.map(({ reflectors }) => reflectors.warnings.length)],
  ];
  const differing = [...new Set(played.flatMap(({ results }) => results.map(({ title }) => title)))]
    .map((title) => [title, ...played.map((one) => verdict(resultOf(one, title)))])
    .filter(([, ...verdicts]) => verdicts.some((one) => one !== "passed"));
  return markdown(head, [...rows, ...differing]);
}

function resultOf({ results }: Played, title: string): Judged | undefined {
  return results.find((one) => one.title === title);
}
