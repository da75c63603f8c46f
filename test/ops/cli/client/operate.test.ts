import { suite } from "uvu";
import * as assert from "uvu/assert";
import { operate } from "../../../../src/ops/cli/client/operate.ts";
import { KeptScreen } from "../../../support/api-server.ts";
import { startProxy, type TestProxy } from "../../../support/proxy.ts";

const test = suite("ops/cli/client/operate");
let proxy: TestProxy;

test.before(async () => {
  proxy = await startProxy({ backends: 2 });
  for (let tries = 0; tries < 400 && !(await states()).every((state) => state === "ready"); tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 25));
});

test.after(() => proxy.stop());

type Row = { readonly state: string; readonly isDrained: boolean };

async function rows(): Promise<readonly Row[]> {
  const answer = await fetch(`http://${proxy.running.apiAddress}/api/v1/backends`);
  const list = (await answer.json()) as { readonly items: readonly Row[] };
  return list.items;
}

async function states(): Promise<readonly string[]> {
  return (await rows()).map(({ state }) => state);
}

async function asked(name: "drain" | "undrain" | "move" | "reload", ...args: string[]) {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: proxy.running.apiAddress });
  return Object.assign(screen, { code: await operate(name, args, screen) });
}

test("a backend is let go and taken back, and the log says by which user and why", async () => {
  const { code, out } = await asked("drain", "a", "--reason", "kernel update");
  assert.equal([code, out], [0, "a is draining: no new requests; its watches move gradually\n"]);
  assert.equal(await states(), ["draining", "ready"]);
  assert.equal(
    (await rows()).map(({ isDrained }) => isDrained),
    [true, false],
  );
  const last = await asked("drain", "b");
  assert.is(last.code, 1);
  assert.match(last.complaints, "no other backend is ready");
  assert.is((await asked("undrain", "a")).code, 0);
  assert.equal(await states(), ["ready", "ready"]);
  const told = proxy.entries.filter((entry) => entry.kind === "operation.done");
  assert.equal(
    told.map(({ operation, target, reason }) => [operation, target, reason]),
    [
      ["drain", "a", "kernel update"],
      ["undrain", "a", ""],
    ],
  );
  assert.match(told[0]?.by ?? "", /^\w+ \(watchkeeper CLI\) at 127\.0\.0\.1$/);
});

test("what is not there is 1, a word too few or too many is 2, no server to ask is 3", async () => {
  assert.is((await asked("drain", "c")).code, 1);
  assert.is((await asked("move", "no-such-id")).code, 1);
  assert.match((await asked("drain")).complaints, /^Missing BACKEND\n/);
  assert.match((await asked("move")).complaints, /^Missing AUDIT-ID\n/);
  assert.match((await asked("reload")).complaints, "No configuration file to reload");
  for (const wrong of [
    await asked("drain"),
    await asked("drain", "a", "b"),
    await asked("move"),
    await asked("reload", "a"),
  ])
    assert.is(wrong.code, 2);
  assert.is(await operate("drain", ["a", "--admin", "127.0.0.1:1"], new KeptScreen()), 3);
});

test.run();
