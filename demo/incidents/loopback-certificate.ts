/** Incident 003: the certificate for an apiserver's connections to itself expires after a year, without a warning. */
import { wallClock } from "../../src/base/clock.ts";
import { brokenOf, type Outcome, whenReported } from "./outcome.ts";
import type { Contender, Scene } from "./scene.ts";
import type { Wishes } from "./setting.ts";

const lookMs = 8_000;
const leftDays = 20;

export const wishes: Wishes = {
  loopback: ({ authority }) =>
    authority.issue({
      name: "apiserver-loopback-client",
      notAfter: wallClock.wall() + leftDays * 86_400_000,
    }),
};

export async function play(scene: Scene): Promise<Outcome> {
  scene.begin();
  scene.report("apiserver-2", `has run for a year: its loopback certificate has ${leftDays} days left`);
  const reported = await scene.found("loopback-certificate-expiring");
  const [theirs, ours] = await Promise.all([asked(scene, "naive proxy"), asked(scene, "watchkeeper")]);
  scene.report("naive proxy", `its checks and its clients see nothing: /readyz said ok ${theirs}`);
  return {
    rows: [
      { what: "/readyz: ok", without: theirs, with: ours },
      {
        what: "the operator is told",
        without: scene.naiveWords === 0 ? "not before the outage" : "by its checks",
        with: reported === undefined ? "not" : `${whenReported(reported)}, ${leftDays} days before`,
      },
    ],
    broken: brokenOf({
      "the operator was not told": reported !== undefined,
      "the wrong backend was named": reported?.backend === "apiserver-2",
    }),
  };
}

async function asked(scene: Scene, side: Contender): Promise<string> {
  const client = scene.client(side);
  let count = 0;
  let answered = 0;
  while (scene.ms < lookMs) {
    count += 1;
    if ((await client.ask("GET /readyz")) === 200) answered += 1;
    await scene.pause(200);
  }
  return `${answered} of ${count} times`;
}
