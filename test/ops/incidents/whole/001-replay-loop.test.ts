/**
 * Incident 001: a DELETED event had an old resourceVersion. The client's reflector continued from this version, and
 * replayed history again and again.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { encodeOld } from "../../../../demo/incidents/embedded-setting.ts";
import { limits } from "../../../../src/base/limits.ts";
import { foundMs, Stage } from "../../../support/incident-stage.ts";

const test = suite("ops/incidents/whole/001-replay-loop");

const contentType = "application/json";
const configmaps = "/api/v1/namespaces/default/configmaps";

test("the event is told with its backend, and the client that goes round in circles with its name", async () => {
  const stage = await Stage.start({ encodingFor: () => ({ contentType, encode: encodeOld }) });
  const client = stage.caller({ "user-agent": "looping-operator/v2 (linux/amd64)" });
  const body = (name: string): object => ({ metadata: { name } });
  await client.ask(`POST ${configmaps}`, body("a"));
  const version = String(stage.store.revision);
  const watch = await client.watch(`${configmaps}?watch=1&resourceVersion=${version}`);
  await client.ask(`POST ${configmaps}`, body("b"));
  const since = performance.now();
  await client.ask(`DELETE ${configmaps}/b`);
  const back = await stage.found("version-regression", since);
  assert.ok(back.ms <= foundMs, `${back.ms} ms`);
  assert.match(back.incident.summary, /^cp-[12] sent DELETED of \/configmaps at version 1, after /);
  assert.match(back.incident.affected.names[0] ?? "", "looping-operator/v2");
  await watch.end();
  // The reflector's reaction: it reopens the watch from the old version again and again.
  for (let times = 0; times <= limits.replays; times += 1)
    await (await client.watch(`${configmaps}?watch=1&resourceVersion=${version}`)).end();
  const met = performance.now();
  const loop = await stage.found("watch-replay-loop", met);
  console.log(
    `figure: a version that went back is an incident after ${Math.round(back.ms)} ms, a loop ${Math.round(loop.ms)} ms after its threshold`,
  );
  assert.ok(loop.ms <= foundMs, `${loop.ms} ms`);
  assert.match(loop.incident.subject, "looping-operator/v2");
  assert.match(loop.incident.summary, "/configmaps");
  assert.match(
    await stage.explained(back.incident),
    /version-regression[^]*DELETED of \/configmaps at version 1/,
  );
  assert.match(
    await stage.explained(loop.incident),
    /watch-replay-loop {2}.*looping-operator\/v2[^]*MEASURED/,
  );
  assert.match(stage.logged("watch-replay-loop"), "looping-operator/v2");
  assert.match(stage.logged("version-regression"), "at version 1");
  assert.is(await stage.wrongAlerts({ alertname: "WatchkeeperWatchReplayLoop" }), undefined);
  const kinds = new Set((await stage.incidents()).map(({ kind }) => kind));
  assert.equal([...kinds].toSorted(), ["version-regression", "watch-replay-loop"], "and nothing else");
  await stage.stop();
});

test.run();
