/** Runs the story (the scripted demonstration) of an incident, and records its output. */

import type { Outcome } from "../../demo/incidents/outcome.ts";
import { Scene } from "../../demo/incidents/scene.ts";
import type { Settings, Wishes } from "../../demo/incidents/setting.ts";
import { Failure } from "../../src/base/failure.ts";
import { within } from "./within.ts";

export type Story = { readonly play: (scene: Scene) => Promise<Outcome | Failure>; readonly wishes: Wishes };

export async function storyOf(
  { play, wishes }: Story,
  settings?: Settings,
): Promise<{
  readonly said: string;
  readonly broken: readonly string[];
  /** Returns both sides of a comparison row: without and with the proxy. */
  readonly row: (what: string) => { readonly without: string; readonly with: string };
}> {
  const lines: string[] = [];
  const scene = await Scene.start(wishes, (line) => lines.push(line), settings);
  if (scene instanceof Failure) throw new Error(scene.message);
  const outcome = await within(60_000, "the story", play(scene));
  await within(20_000, "its end", scene.stop());
  if (outcome instanceof Failure) throw new Error(outcome.message);
  const row = (what: string): { readonly without: string; readonly with: string } => {
    const found = outcome.rows.find((one) => one.what.includes(what));
    if (found === undefined) throw new Error(`No row ${what}: ${JSON.stringify(outcome.rows)}`);
    return found;
  };
  return { said: lines.join("\n"), broken: outcome.broken, row };
}
