/** What an invalid secret does to a naive process that trusts it. The process runs separately, and is restarted. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { DemoClient } from "../../../../demo/story/client.ts";
import { NaiveProcess } from "../../../../demo/story/naive-process.ts";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/story/naive-process");
const { authority, serving } = await testPki();
const directory = mkdtempSync(join(tmpdir(), "naive-process-"));
test.after(() => rmSync(directory, { recursive: true }));
const name = "shop.example.test";
const [certFile, keyFile] = [join(directory, "tls.crt"), join(directory, "tls.key")];

test("it serves its hosts, ends at a bad pair, and is started again on its port until the pair is good", async () => {
  const good = authority.issue({ name, hosts: [name] });
  writeFileSync(certFile, good.certificate);
  writeFileSync(keyFile, good.key);
  const order = {
    backends: [],
    ca: authority.certificate,
    pair: serving,
    hosts: [{ name, certFile, keyFile }],
  };
  const reasons: string[] = [];
  const naive = new NaiveProcess(order, wallClock, (why) => void reasons.push(why));
  const port = await within(20_000, "its port", naive.start());
  if (port instanceof Failure) throw new Error(port.message);
  const status = async (): Promise<number> => {
    const client = new DemoClient({ port, ca: authority.certificate, serverName: name, withinMs: 1_000 });
    const answer = await client.ask("GET /livez");
    client.close();
    return answer;
  };
  assert.is(await status(), 503, "no backend, and its own certificate");
  writeFileSync(keyFile, serving.key);
  while (naive.ends < 2) await new Promise((passed) => setTimeout(passed, 20));
  assert.match(reasons[0] ?? "", /Error: .*key values mismatch/);
  writeFileSync(keyFile, good.key);
  let answer = 0;
  for (let tries = 0; tries < 100 && answer !== 503; tries += 1) {
    await new Promise((passed) => setTimeout(passed, 100));
    answer = await status();
  }
  assert.is(answer, 503, "on the same port");
  naive.stop();
});

test.run();
