/**
 * The short form of the soak: a minute of load, faults and reloads, after which all figures must be at their baseline.
 */
import { spawn } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Figures, notBack } from "../../soak/figures.ts";

const test = suite("long/soak");

const lastMs = 600_000;

const some: Figures = {
  heapBytes: 30 << 20,
  outsideBytes: 14 << 20,
  rssBytes: 200 << 20,
  timers: 20,
  sockets: 20,
  others: 26,
  connections: 9,
  streams: 1,
  sessions: 1,
  plain: 0,
  watches: 1,
  tunnels: 0,
  passages: 0,
  buffered: 0,
  contained: 0,
  uncaught: 0,
};

test("each figure that does not come back is seen, by itself", () => {
  assert.equal(notBack(some, some), []);
  for (const name of Object.keys(some) as (keyof Figures)[]) {
    const [missed, ...others] = notBack(some, { ...some, [name]: some[name] + (64 << 20) });
    assert.match(missed ?? "", name);
    assert.equal(others, []);
  }
});

test("a minute of mixed load with faults and reloads leaves nothing behind", async () => {
  const soak = spawn(process.execPath, ["test/soak/run.ts", "--minutes", "1", "--seed", "7"], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: lastMs,
  });
  let said = "";
  for (const stream of [soak.stdout, soak.stderr])
    stream.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  const code = await new Promise((resolve) => soak.once("close", resolve));
  process.stdout.write(
    `\n${said
      .split("\n")
      .filter((line) => line.startsWith("figure: "))
      .join("\n")}\n`,
  );
  assert.is(code, 0, said);
});

test.run();
