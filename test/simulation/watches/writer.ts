/**
 * Writes to the cluster all the time. Objects are created, changed, moved from one selector to another, and deleted.
 * Sometimes several of them change at one version.
 */
import type { KubeObject } from "../../../demo/objects/json.ts";
import type { Store } from "../../../demo/objects/store.ts";
import { apps, namespaces, watchedResources } from "./cast.ts";
import type { Findings } from "./findings.ts";
import type { Weather } from "./weather.ts";

const kinds: Readonly<Record<string, string>> = { configmaps: "ConfigMap", pods: "Pod", events: "Event" };

export class Writer {
  readonly #findings: Findings;
  readonly #store: Store;
  readonly #weather: Weather;
  #stop: () => void = () => {};

  constructor(findings: Findings, store: Store, weather: Weather) {
    this.#findings = findings;
    this.#store = store;
    this.#weather = weather;
  }

  /** Writes the objects that exist before the first request. */
  fill(): void {
    for (let count = 20; count > 0; count -= 1) this.#put();
  }

  start(): void {
    const { world, random } = this.#findings;
    this.#stop = world.after(random.next() * 2 * this.#weather.writeMs, () => {
      this.#write();
      this.start();
    });
  }

  stop(): void {
    this.#stop();
  }

  #write(): void {
    const { random } = this.#findings;
    if (random.chance(0.05)) return this.#expire();
    if (random.chance(0.03)) for (let count = random.whole(5, 40); count > 0; count -= 1) this.#put();
    else if (random.chance(0.2)) this.#remove();
    else this.#put();
  }

  #put(): void {
    const { random } = this.#findings;
    const resource = random.pick(watchedResources);
    const { objectBytes, largeBytes } = this.#weather;
    const bytes = random.chance(0.02) ? largeBytes : objectBytes;
    this.#store.put(
      resource,
      objectOf(kinds[resource] ?? "", random.pick(namespaces), {
        name: `c-${random.whole(1, 8)}`,
        app: random.pick([...apps, ""]),
        value: "x".repeat(bytes),
      }),
    );
  }

  #remove(): void {
    const { random } = this.#findings;
    this.#store.remove(random.pick(watchedResources), random.pick(namespaces), `c-${random.whole(1, 8)}`);
  }

  /** An etcd lease expires: all objects of the lease are deleted at one version (watch.md §5.3). */
  #expire(): void {
    const { random } = this.#findings;
    this.#store.expire(
      "events",
      this.#store.list("events").filter(() => random.chance(0.6)),
    );
  }
}

type Content = { readonly name: string; readonly app: string; readonly value: string };

function objectOf(kind: string, namespace: string, { name, app, value }: Content): KubeObject {
  const metadata = {
    name,
    namespace,
    uid: "",
    resourceVersion: "",
    creationTimestamp: "2027-01-15T08:00:00Z",
    labels: app === "" ? {} : { app },
    rest: {},
  };
  return { apiVersion: "v1", kind, metadata, fields: { data: { value } } };
}
