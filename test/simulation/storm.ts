/**
 * What happens to connections, clients and backends during a run. "Errands" are operations that no client may notice.
 * "Storms" are faults.
 */

import { putFrameHeader } from "../../src/h2/core/bytes.ts";
import { h2Limits } from "../../src/h2/core/limits.ts";
import { frameHeaderBytes, frameType } from "../../src/h2/frame/frame.ts";
import { setting } from "../../src/h2/session/settings.ts";
import type { Backend } from "./backend.ts";
import type { SimulatedClient } from "./client.ts";
import type { End } from "./network.ts";
import type { Random } from "./random.ts";
import type { Scene } from "./scene.ts";

type Fault = (scene: Scene) => void;

const faults: readonly Fault[] = [
  cutConnection,
  cutConnection,
  cutInMidEvent,
  cutInMidEvent,
  swallowConnection,
  holdConnection,
  sendAway,
  crash,
  cutClient,
  endClient,
  holdClient,
  stopServing,
];

/** Schedules one to four faults at random times within `withinMs`. */
export function storm(scene: Scene, withinMs: number): void {
  const { world, random } = scene.run;
  for (let count = random.whole(1, 4); count > 0; count -= 1) {
    const fault = random.pick(faults);
    world.after(random.next() * withinMs, () => {
      scene.run.tell(() => `fate: ${fault.name}`);
      fault(scene);
    });
  }
}

const errands: readonly Fault[] = [reconfigure, drainSome, changeSettings, changeSettings];

/** In four of ten runs, schedules one operation of an operator or a peer. */
export function runErrands(scene: Scene, withinMs: number): void {
  const { world, random } = scene.run;
  if (random.chance(0.6)) return;
  const errand = random.pick(errands);
  world.after(random.next() * withinMs, () => {
    scene.run.tell(() => `errand: ${errand.name}`);
    errand(scene);
  });
}

/** Removes one backend from the configuration, and adds it again later. */
function reconfigure(scene: Scene): void {
  const names = scene.backends.map(({ name }) => name);
  const removed = scene.run.random.pick(names);
  scene.proxy.path.reconcile(names.filter((name) => name !== removed));
  scene.run.world.after(scene.run.random.size(1_000), () => scene.proxy.path.reconcile(names));
}

function drainSome(scene: Scene): void {
  for (const downstream of scene.proxy.downstreams) if (scene.run.random.chance(0.5)) downstream.drain();
}

/**
 * Lets peers change their settings within what HTTP/2 permits: stream windows become negative, HPACK tables are
 * evicted, and frames arrive that the proxy does not need.
 */
function changeSettings(scene: Scene): void {
  const { world, random } = scene.run;
  const ends = scene.backends.flatMap(({ sessions }) => [...sessions.keys()]);
  for (const { end } of scene.clients) if (end !== undefined) ends.push(end);
  for (const end of ends) {
    if (!end.hasBegun || random.chance(0.5)) continue;
    const window = random.pick([0, 1, 100, 16_384, 65_535]);
    const table = random.pick([0, 64, 1_000, 4_096]);
    end.write([rawFrame(frameType.SETTINGS, 0, settingsOf(table, window)), oddFrame(random)]);
    world.after(random.size(400), () =>
      end.write([rawFrame(frameType.SETTINGS, 0, settingsOf(4_096, h2Limits.streamWindowBytes))]),
    );
  }
}

function settingsOf(tableBytes: number, windowBytes: number): Buffer {
  const payload = Buffer.alloc(12);
  payload.writeUInt16BE(setting.HEADER_TABLE_SIZE, 0);
  payload.writeUInt32BE(tableBytes, 2);
  payload.writeUInt16BE(setting.INITIAL_WINDOW_SIZE, 6);
  payload.writeUInt32BE(windowBytes, 8);
  return payload;
}

/** A PRIORITY frame, a PING, or a frame of an unknown type. */
function oddFrame(random: Random): Buffer {
  const frames = [
    [frameType.PRIORITY, 1, 5],
    [frameType.PING, 0, 8],
    [0xfa, 3, random.size(3_000)],
  ] as const;
  const [type, stream, length] = random.pick(frames);
  return rawFrame(type, stream, Buffer.alloc(length));
}

function rawFrame(type: number, stream: number, payload: Buffer): Buffer {
  const frame = Buffer.alloc(frameHeaderBytes + payload.length);
  putFrameHeader(frame, 0, payload.length, type, 0, stream);
  payload.copy(frame, frameHeaderBytes);
  return frame;
}

function cutConnection(scene: Scene): void {
  withConnection(scene, (_backend, end) => end.destroy());
}

/** Breaks the connections of one backend while a large event is in flight on its watches. */
function cutInMidEvent(scene: Scene): void {
  const { random } = scene.run;
  scene.hasHitBackends = true;
  const { sessions } = random.pick(scene.backends);
  for (const { peer } of sessions.keys()) peer?.breakAfter(random.whole(1, 30_000));
  scene.write(40_000);
}

function swallowConnection(scene: Scene): void {
  withConnection(scene, (_backend, end) => {
    scene.network.makeHole(end);
    scene.swallowed.push(end);
  });
}

function holdConnection(scene: Scene): void {
  withConnection(scene, (_backend, end) => end.pause(scene.run.random.size(1_000)));
}

/** Sends a GOAWAY from a backend, with or without an earlier announcement. */
function sendAway(scene: Scene): void {
  const { world, random } = scene.run;
  withConnection(scene, (backend, end) => {
    const session = backend.sessions.get(end);
    if (random.chance(0.5)) session?.announceEnd();
    world.after(random.size(100), () => session?.goAway());
  });
}

/** Breaks all connections of one backend. It refuses new ones for a while. */
function crash(scene: Scene): void {
  const { world, random } = scene.run;
  const backend = random.pick(scene.backends);
  scene.hasCrashed = true;
  scene.hasHitBackends = true;
  backend.isDown = true;
  for (const end of backend.sessions.keys()) end.destroy();
  world.after(random.size(3_000), () => {
    backend.isDown = false;
  });
}

function cutClient(scene: Scene): void {
  strike(scene, (client) => client.cut());
}

function endClient(scene: Scene): void {
  strike(scene, (client) => client.goAway());
}

function holdClient(scene: Scene): void {
  strike(scene, (client) => {
    client.isRushed = true;
    client.end?.pause(scene.run.random.size(2_000));
  });
}

/**
 * Stops the proxy gracefully for its present clients: sends GOAWAY, ends their watches, and finally cuts what is left.
 */
function stopServing(scene: Scene): void {
  const { world, random } = scene.run;
  const { path, downstreams } = scene.proxy;
  for (const client of scene.clients) {
    client.isStruck = true;
    client.isRushed = true;
  }
  const present = [...downstreams];
  for (const downstream of present) downstream.drain();
  for (const exchange of path.exchanges.live)
    world.after(random.size(200), () => void exchange.letWatchEnd());
  world.after(random.size(1_000), () => {
    for (const exchange of path.exchanges.live) exchange.cut();
    for (const downstream of present) downstream.cut();
  });
}

function strike(scene: Scene, what: (client: SimulatedClient) => void): void {
  const client = scene.run.random.pick(scene.clients);
  client.isStruck = true;
  what(client);
}

function withConnection(scene: Scene, what: (backend: Backend, end: End) => void): void {
  const { random } = scene.run;
  const backend = random.pick(scene.backends);
  const ends = [...backend.sessions.keys()];
  scene.hasHitBackends = true;
  if (ends.length > 0) what(backend, random.pick(ends));
}
