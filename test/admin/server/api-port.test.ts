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

function scene(port: number) {
  const clock = manualClock();
  const journal = new Journal(clock);
  const told: Entry["kind"][] = [];
  journal.subscribe(({ kind }) => told.push(kind));
  return { clock, told, api: new ApiPort({ host: "127.0.0.1", port, journal, routes }, clock) };
}

function statusOf(address: string, host: string | string[]): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const port = Number(address.split(":").at(-1));
  // Two of them only in raw form.
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

for (const isLong of [false, true])
  test(`a port that another process ${isLong ? "keeps is reported once" : "has for two seconds, as a predecessor does, is not reported"}, and tried again until it is free`, async () => {
    const other = createServer();
    await new Promise<void>((resolve) => {
      other.listen(0, "127.0.0.1", resolve);
    });
    const bound = other.address();
    const { api, told, clock } = scene(typeof bound === "object" && bound !== null ? bound.port : 0);
    await api.start();
    for (let tries = 1; tries < (isLong ? adminLimits.apiFailures + 2 : 3); tries += 1) {
      clock.advance(adminLimits.apiRetryMs);
      await aMoment();
    }
    const reported = isLong ? ["listener.lost"] : [];
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

test.run();
