import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { Journal } from "../../../../src/events/journal.ts";
import { EventRing } from "../../../../src/ops/admin/events/event-ring.ts";
import { EventStreams } from "../../../../src/ops/admin/events/event-stream.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { type Admin, startApi } from "../../../../src/ops/admin/server/server.ts";
import { tap } from "../../../../src/ops/cli/client/tap.ts";
import { KeptScreen } from "../../../support/api-server.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/client/tap");
let api: Admin;
let journal: Journal;
let ring: EventRing;

async function serve(port: number): Promise<void> {
  const events = new EventStreams(ring, wallClock);
  const started = await startApi({
    host: "127.0.0.1",
    port,
    journal: new Journal(wallClock),
    routes: () => undefined,
    events,
  });
  if (started instanceof Failure) throw new Error(started.message);
  api = started;
}

test.before.each(async () => {
  journal = new Journal(wallClock);
  ring = new EventRing(journal, timesOf(wallClock));
  await serve(0);
});

test.after.each(() => api.stop());

const opened = (name: string): void =>
  journal.write({ kind: "upstream_connection.opened", backend: "a", connection: name });

/** Writes entries until the screen shows one, because the time at which `tap` subscribes is unknown. */
async function shownIn(screen: KeptScreen, word: string): Promise<void> {
  const look = async (): Promise<void> => {
    while (!screen.out.includes(word)) {
      opened(word);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  await within(20_000, word, look());
}

test("each entry is a line, with nothing in it that a terminal obeys, until its time is over", async () => {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: api.address });
  const ended = tap(["upstream_connection.", "--for", "3"], screen);
  await shownIn(screen, "one");
  journal.write({ kind: "drain.started" });
  opened("a\x1b[2Jb");
  assert.is(await within(20_000, "its end", ended), 0);
  assert.match(screen.out, /^\d\d:\d\d:\d\d\.\d{3} upstream_connection\.opened backend=a connection=one$/m);
  assert.match(screen.out, '"a\\\\u{1b}[2Jb"');
  assert.not.match(screen.out, "drain.started");
});

test("-o json leaves nothing that a terminal obeys", async () => {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: api.address });
  const ended = tap(["upstream_connection.", "--for", "2", "-o", "json"], screen);
  await shownIn(screen, "one");
  opened("a\u009b2Jb");
  assert.is(await within(20_000, "its end", ended), 0);
  assert.match(screen.out, '"a\\u009b2Jb"');
});

test("when the proxy is away for a moment it goes on where it was", async () => {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: api.address });
  const port = Number(api.address.split(":").at(-1));
  const ended = tap(["--for", "8", "-o", "json"], screen);
  await shownIn(screen, "before");
  await api.stop();
  opened("meanwhile");
  await serve(port);
  await within(20_000, "its end", ended);
  const connections = screen.out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).connection);
  assert.ok(connections.includes("meanwhile"));
  assert.is(connections.filter((name) => name === "meanwhile").length, 1);
});

test("no server there is 3 at once, and a wrong word 2", async () => {
  assert.is(await tap(["--admin", "127.0.0.1:1"], new KeptScreen()), 3);
  assert.is(await tap(["--for", "soon"], new KeptScreen()), 2);
  assert.is(await tap(["a", "b"], new KeptScreen()), 2);
});

test.run();
