/** Incident 001: after a DELETED event with an old version, a reflector replays the history again and again. */
import { mapOf, textOf } from "../objects/json.ts";
import { brokenOf, type Outcome, whenReported } from "./outcome.ts";
import type { Contender, Scene } from "./scene.ts";
import type { Wishes } from "./setting.ts";

const configmaps = "/api/v1/namespaces/default/configmaps";
const agent = "looping-operator/v2";
const watchMs = 150;
const afterMs = 3_000;

export const wishes: Wishes = { tellsOldVersions: true };

export async function play(scene: Scene): Promise<Outcome> {
  const writer = scene.client("watchkeeper", { fields: { "user-agent": "kubectl/v1" } });
  await writer.ask(`POST ${configmaps}`, { metadata: { name: "a" } });
  const { metadata } = mapOf((await writer.read(`GET ${configmaps}`)).body);
  const from = textOf(mapOf(metadata)["resourceVersion"]);
  const ours = await Loop.begin(scene, "watchkeeper", from);
  const theirs = await Loop.begin(scene, "naive proxy", from);
  scene.begin();
  for (const name of ["b", "c"]) await writer.ask(`POST ${configmaps}`, { metadata: { name } });
  scene.report("apiserver", `deletes a configmap, and reports it with ${scene.setting.oldVersion}`);
  await writer.ask(`DELETE ${configmaps}/b`);
  const back = await scene.found("version-regression");
  scene.report(
    "operator",
    "its watch ends as usual; it restarts from the old version and gets the event again",
  );
  for (const loop of [ours, theirs]) loop.goOn();
  const reported = await scene.found("watch-replay-loop");
  await scene.pause(afterMs);
  const isSilent = scene.naiveWords === 0;
  return {
    rows: [
      { what: "times the operator replayed history", without: `${theirs.count}`, with: `${ours.count}` },
      {
        what: "the event is told, with its apiserver",
        without: isSilent ? "never" : "no",
        with: whenReported(back),
      },
      {
        what: "the loop is told, with its client",
        without: isSilent ? "never" : "no",
        with: reported === undefined ? "never" : `${whenReported(reported)}: ${reported.subject}`,
      },
    ],
    broken: brokenOf({
      "the event was not told": back !== undefined,
      "the loop was not told": reported !== undefined,
      "the client was not named": reported?.subject.includes(agent) === true,
    }),
  };
}

/** A reflector (client-go's list and watch loop) that opens its watch again and again from an old version. */
class Loop {
  readonly #scene: Scene;
  readonly #side: Contender;
  readonly #from: string;
  /** Number of times that the reflector has received the same events again. */
  count = 0;

  private constructor(scene: Scene, side: Contender, from: string) {
    this.#scene = scene;
    this.#side = side;
    this.#from = from;
  }

  /** Opens the loop's first watch. The events of this watch are correct until a DELETED event with an old version. */
  static async begin(scene: Scene, side: Contender, from: string): Promise<Loop> {
    await scene.client(side, { fields: { "user-agent": agent } }).watch(pathFrom(from));
    return new Loop(scene, side, from);
  }

  goOn(): void {
    void this.#again();
  }

  async #again(): Promise<void> {
    const client = this.#scene.client(this.#side, { fields: { "user-agent": agent } });
    for (;;) {
      const watch = await client.watch(pathFrom(this.#from));
      await this.#scene.pause(watchMs);
      await watch.end();
      if (watch.events.length > 0) this.count += 1;
    }
  }
}

function pathFrom(version: string): string {
  return `${configmaps}?watch=1&resourceVersion=${version}`;
}
