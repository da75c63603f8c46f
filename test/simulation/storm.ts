/**
 * What may happen to connections, clients and backends while they are busy: errands, which may cost nobody anything,
 * and bad weather.
 */
import type { Backend } from "./backend.ts";
import type { SimulatedClient } from "./client.ts";
import type { End } from "./network.ts";
import type { Scene } from "./scene.ts";

type Fault = (scene: Scene) => void;

const faults: readonly Fault[] = [
  cutLane,
  cutLane,
  (scene) => withLane(scene, (_backend, end) => scene.network.makeHole(end)),
  (scene) => withLane(scene, (_backend, end) => end.pause(scene.run.random.size(1_000))),
  (scene) => withLane(scene, (backend, end) => backend.sessions.get(end)?.goAway()),
  crash,
  (scene) => strike(scene, (client) => client.cut()),
  (scene) => strike(scene, (client) => client.goAway()),
  (scene) => strike(scene, (client) => client.end?.pause(scene.run.random.size(2_000))),
];

/** Some faults at random moments of the first `withinMs`. */
export function storm(scene: Scene, withinMs: number): void {
  const { world, random } = scene.run;
  for (let count = random.whole(1, 4); count > 0; count -= 1) {
    const fault = random.pick(faults);
    world.after(random.next() * withinMs, () => {
      scene.run.tell(() => `fate: ${fault.name || String(fault)}`);
      fault(scene);
    });
  }
}

const errands: readonly Fault[] = [
  // A configuration without one of the backends, and later with it again.
  (scene) => {
    const names = scene.backends.map(({ name }) => name);
    const removed = scene.run.random.pick(names);
    scene.proxy.path.reconcile(names.filter((name) => name !== removed));
    scene.run.world.after(scene.run.random.size(1_000), () => scene.proxy.path.reconcile(names));
  },
  (scene) => {
    for (const downstream of scene.proxy.downstreams) if (scene.run.random.chance(0.5)) downstream.drain();
  },
];

/** Now and then what an operator does in the middle of work. */
export function runErrands(scene: Scene, withinMs: number): void {
  const { world, random } = scene.run;
  if (random.chance(0.6)) return;
  const errand = random.pick(errands);
  world.after(random.next() * withinMs, () => {
    scene.run.tell(() => `errand: ${String(errand)}`);
    errand(scene);
  });
}

function cutLane(scene: Scene): void {
  withLane(scene, (_backend, end) => end.destroy());
}

/** All its connections break and nobody listens, for a while. */
function crash(scene: Scene): void {
  const { world, random } = scene.run;
  const backend = random.pick(scene.backends);
  scene.hasCrashed = true;
  backend.isDown = true;
  for (const end of backend.sessions.keys()) end.destroy();
  world.after(random.size(3_000), () => {
    backend.isDown = false;
  });
}

function strike(scene: Scene, what: (client: SimulatedClient) => void): void {
  const client = scene.run.random.pick(scene.clients);
  scene.struck.add(client);
  what(client);
}

function withLane(scene: Scene, what: (backend: Backend, end: End) => void): void {
  const { random } = scene.run;
  const backend = random.pick(scene.backends);
  const ends = [...backend.sessions.keys()];
  if (ends.length > 0) what(backend, random.pick(ends));
}
