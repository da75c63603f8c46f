import { get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { Journal } from "../../../../src/events/journal.ts";
import { EventRing } from "../../../../src/ops/admin/events/event-ring.ts";
import { EventStreams } from "../../../../src/ops/admin/events/event-stream.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { type Admin, startApi } from "../../../../src/ops/admin/server/server.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/events/event-stream");
let api: Admin;
let journal: Journal;
let streams: EventStreams;

test.before.each(async () => {
  journal = new Journal(wallClock);
  streams = new EventStreams(new EventRing(journal, timesOf(wallClock)), wallClock);
  const started = await startApi({
    host: "127.0.0.1",
    port: 0,
    journal,
    routes: () => undefined,
    events: streams,
  });
  if (started instanceof Failure) throw new Error(started.message);
  api = started;
});

test.after.each(() => api.stop());

class Listener {
  text = "";
  readonly response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.response = response;
    response.on("error", () => {});
    response.on("data", (chunk: Buffer) => {
      this.text += chunk.toString();
    });
  }

  async heard(word: string): Promise<void> {
    const look = async (): Promise<void> => {
      while (!this.text.includes(word)) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await within(10_000, word, look());
  }

  /** The last event's id, which a browser would send as Last-Event-ID when it reconnects. */
  get lastId(): string {
    return [...this.text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] ?? "";
  }

  async leave(): Promise<void> {
    const before = streams.size;
    this.response.destroy();
    const look = async (): Promise<void> => {
      while (streams.size >= before) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await within(10_000, "the stream's end", look());
  }
}

function listen(query = "", lastId = "", host = api.address): Promise<Listener> {
  const headers = { host, ...(lastId === "" ? {} : { "last-event-id": lastId }) };
  const options = { agent: false, headers };
  const answered = new Promise<Listener>((resolve, reject) => {
    get(`http://${api.address}/api/v1/events${query}`, options, (response) =>
      resolve(new Listener(response)),
    ).on("error", reject);
  });
  return within(10_000, "the stream", answered);
}

const opened = (name: string): void => journal.write({ kind: "backend.added", backend: name });

test("an event that is written arrives at once, as the kind that it is", async () => {
  const one = await listen();
  assert.is(one.response.headers["content-type"], "text/event-stream; charset=utf-8");
  await one.heard("from now on");
  opened("first");
  await one.heard('"backend":"first"');
  assert.match(
    one.text,
    /\nid: \d+-\d+\nevent: backend\.added\ndata: \{"at":"[^"]+","kind":"backend\.added"/,
  );
  await one.leave();
});

test("a client that was away gets what came meanwhile, once; one that was away for too long is told of the gap", async () => {
  const one = await listen();
  await one.heard("from now on");
  opened("first");
  await one.heard("first");
  await one.leave();
  opened("second");
  const again = await listen("", one.lastId);
  await again.heard("second");
  assert.not.match(again.text, '"first"');
  assert.not.match(again.text, "event: gap");
  for (let count = 0; count <= adminLimits.eventsKept; count += 1) opened("more");
  const late = await listen("", one.lastId);
  await late.heard("event: gap");
  await again.leave();
  await late.leave();
});

test("kinds may be asked for by their beginning", async () => {
  const one = await listen("?kind=drain.");
  await one.heard("from now on");
  opened("unwanted");
  journal.write({ kind: "drain.started" });
  await one.heard("drain.started");
  assert.not.match(one.text, "unwanted");
  await one.leave();
});

test("so many listen and no more, and another host's page not at all (A56)", async () => {
  const all = await Promise.all(Array.from({ length: adminLimits.eventStreams }, () => listen()));
  assert.is((await listen()).response.statusCode, 503);
  for (const one of all) await one.leave();
  const one = await listen();
  assert.is(one.response.statusCode, 200);
  await one.leave();
  assert.is((await listen("", "", "evil.example")).response.statusCode, 421);
});

test("the idle sockets of others end no event stream (A56)", async () => {
  const one = await listen();
  await one.heard("from now on");
  const port = Number(api.address.split(":").at(-1));
  const idle = Array.from({ length: 3 * adminLimits.adminSockets }, () => connect(port, "127.0.0.1"));
  for (const socket of idle) socket.on("error", () => {});
  const ended = (): number => idle.filter((socket) => socket.destroyed || socket.readableEnded).length;
  for (const socket of idle) socket.resume();
  const look = async (): Promise<void> => {
    while (ended() < 2 * adminLimits.adminSockets) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await within(20_000, "the end of the oldest idle sockets", look());
  opened("after");
  await one.heard('"backend":"after"');
  for (const socket of idle) socket.destroy();
  await one.leave();
});

test("a client that reads nothing is disconnected, and costs a MiB at most", async () => {
  const one = await listen();
  await one.heard("from now on");
  one.response.pause();
  assert.is(streams.size, 1);
  const text = "x".repeat(500);
  for (let count = 0; count < 60_000 && streams.size > 0; count += 1) {
    opened(text);
    if (count % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.is(streams.size, 0);
});

test.run();
