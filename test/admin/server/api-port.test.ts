import { request } from "node:http";
import { createServer } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { adminLimits } from "../../../src/admin/http/limits.ts";
import { ApiPort } from "../../../src/admin/server/api-port.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";
import { within } from "../../support/within.ts";

const test = suite("admin/server/api-port");

const routes = (path: string) =>
  path === "/x" ? () => ({ status: 200, type: "text/plain", text: "y" }) : undefined;

function scene(port: number, isShared = false, host = "127.0.0.1") {
  const clock = manualClock();
  const journal = new Journal(clock);
  const told: Entry["kind"][] = [];
  journal.subscribe(({ kind }) => told.push(kind));
  const options = { host, port, journal, routes };
  return { clock, told, api: new ApiPort(options, clock, () => isShared) };
}

function statusOf(address: string, host: string | string[]): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const port = Number(address.split(":").at(-1));
  // Node sends two Host fields only if the header is given as a raw list.
  const headers = [host].flat().flatMap((one) => ["Host", one]);
  request({ port, host: "127.0.0.1", path: "/x", headers, agent: false }, (response) => {
    response.resume();
    resolve(response.statusCode);
  }).end();
  return within(20_000, "the answer", promise);
}

test("it answers requests whose Host is this machine, and no others (A56)", async () => {
  const { api, told } = scene(0);
  await api.start();
  assert.equal(told, ["listener.opened"]);
  assert.is(await statusOf(api.address, api.address), 200);
  assert.is(await statusOf(api.address, "localhost"), 200);
  assert.is(await statusOf(api.address, "evil.example"), 421);
  assert.is(await statusOf(api.address, [api.address, "evil.example"]), 400, "nor both");
  await api.stop();
});

const aMoment = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 50);
  });

const takers = [
  {
    name: "has for two seconds, as a predecessor does, is not reported",
    tries: 3,
    isShared: false,
    reported: [],
  },
  {
    name: "keeps is reported once",
    tries: adminLimits.apiFailures + 2,
    isShared: false,
    reported: ["listener.lost"],
  },
  {
    name: "of the same node keeps is not reported",
    tries: adminLimits.apiFailures + 2,
    isShared: true,
    reported: [],
  },
];
for (const { name, tries: most, isShared, reported } of takers)
  test(`a port that another process ${name}, and tried again until it is free`, async () => {
    const other = createServer();
    await new Promise<void>((resolve) => {
      other.listen(0, "127.0.0.1", resolve);
    });
    const bound = other.address();
    const port = typeof bound === "object" && bound !== null ? bound.port : 0;
    const { api, told, clock } = scene(port, isShared);
    await api.start();
    for (let tries = 1; tries < most; tries += 1) {
      clock.advance(adminLimits.apiRetryMs);
      await aMoment();
    }
    assert.equal([api.address, told], ["", reported]);
    await new Promise<void>((resolve) => {
      other.close(() => resolve());
    });
    for (let tries = 0; tries < 50 && api.address === ""; tries += 1) {
      clock.advance(adminLimits.apiRetryMs);
      await aMoment();
    }
    assert.equal(told, [...reported, "listener.opened"]);
    await api.stop();
  });

test("on a shared port, an address that this machine does not have is reported", async () => {
  const { api, told, clock } = scene(0, true, "192.0.2.1");
  await api.start();
  for (let tries = 1; tries < adminLimits.apiFailures + 2; tries += 1) {
    clock.advance(adminLimits.apiRetryMs);
    await aMoment();
  }
  await api.stop();
  assert.equal(told, ["listener.lost"]);
});

test.run();
