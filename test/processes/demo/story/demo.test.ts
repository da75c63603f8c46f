import { statSync } from "node:fs";
import { dirname } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Demo } from "../../../../demo/story/demo.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { hasKubectl, kubectl } from "../../../support/kubectl.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/story/demo");

async function started(port?: number): Promise<Demo> {
  const demo = await within(20_000, "the demo", Demo.start(port));
  if (demo instanceof Failure) throw new Error(demo.message);
  return demo;
}

test("two demos run side by side, each on a port of its own", async () => {
  const one = await started();
  const two = await started();
  assert.is.not(one.address, two.address);
  for (const demo of [one, two]) await within(20_000, "its end", demo.stop(AbortSignal.abort()));
});

test("a port that was asked for and is taken is a failure that names it", async () => {
  const demo = await started(0);
  const port = Number(demo.address.split(":")[1]);
  const second = await within(20_000, "the second demo", Demo.start(port));
  assert.instance(second, Failure);
  assert.match(second instanceof Failure ? second.message : "", `127.0.0.1:${port}`);
  await within(20_000, "its end", demo.stop(AbortSignal.abort()));
});

test("what one client writes, another kubectl reads through the proxy", async () => {
  if (!hasKubectl) return console.log("skip: no kubectl on this machine");
  const demo = await started(0);
  const run = (line: string): Promise<string> =>
    within(20_000, line, kubectl(["--kubeconfig", demo.kubeconfig, ...line.split(" ")]));
  assert.is(await run("create configmap a --from-literal=k=v"), "configmap/a created\n");
  assert.is(await run("get configmap a -o jsonpath={.data.k}"), "v");
  await within(20_000, "its end", demo.stop(AbortSignal.abort()));
});

test("an apiserver that is killed and started again is not felt through the proxy", async () => {
  const demo = await started(0);
  const said: string[] = [];
  const { signal } = new AbortController();
  const say = (line: string): void => void said.push(line);
  const played = demo.playFaults({ faults: ["restart"], faultMs: 300, say, signal });
  assert.is(await within(30_000, "the fault", played), undefined);
  const [ours = "", naive = ""] = said.filter((line) => line.includes("  through "));
  assert.match(ours, /through watchkeeper +0 of \d+ .* 0$/);
  assert.match(naive, /through the naive proxy +\d+ of \d+ /);
  await within(20_000, "its end", demo.stop(AbortSignal.abort()));
});

test("its files are for its user only, and gone afterwards", async () => {
  const demo = await started(0);
  assert.is(statSync(demo.kubeconfig).mode & 0o777, 0o600);
  assert.is(statSync(dirname(demo.kubeconfig)).mode & 0o777, 0o700);
  await within(20_000, "its end", demo.stop(AbortSignal.abort()));
  assert.throws(() => statSync(dirname(demo.kubeconfig)), /ENOENT/);
});

test.run();
