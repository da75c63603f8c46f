/**
 * What etcd did to the objects of some namespaces, in its own order: every watch through the proxy is held against it.
 * An event's version is the version of its change, so the two compare by type, key and version. Objects change sides
 * (a label), and a watch that selects one is told of those that come and go, as of creations and removals.
 */
import { follow, stored } from "../rig/etcd.ts";

export type Fact = {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** resource/namespace/name. */
  readonly key: string;
  readonly version: number;
  readonly at: number;
  /** On which side the object was before, and is now; "" for none. */
  readonly was: string;
  readonly is: string;
};

/** The label as etcd holds it: the second entry of a protobuf map, its key and its value each with its length. */
function sideIn(value: Buffer): string {
  const at = value.indexOf("\n\x04side\x12\x01", 0, "latin1");
  return at < 0 ? "" : String.fromCharCode(value[at + 8] ?? 0);
}

/** What a watch that selects this side is told of the change; undefined: nothing. */
function seenFrom(side: string, fact: Fact): Fact | undefined {
  const [was, is] = [fact.was === side, fact.is === side];
  if (is) return { ...fact, type: was ? "MODIFIED" : "ADDED" };
  return was ? { ...fact, type: "DELETED" } : undefined;
}

export class Truth {
  readonly facts: Fact[] = [];
  readonly #etcdUrl: string;
  #stop: () => void = () => {};

  private constructor(etcdUrl: string) {
    this.#etcdUrl = etcdUrl;
  }

  static async start(etcdUrl: string): Promise<Truth> {
    const truth = new Truth(etcdUrl);
    const sides = new Map<string, string>();
    truth.#stop = await follow(etcdUrl, "/registry/", ({ kind, key, version, createdAt, at, value }) => {
      const type = kind === "DELETE" ? "DELETED" : version === createdAt ? "ADDED" : "MODIFIED";
      const [was, is] = [sides.get(key) ?? "", kind === "DELETE" ? "" : sideIn(value)];
      if (is === "") sides.delete(key);
      else sides.set(key, is);
      truth.facts.push({ type, key: key.slice("/registry/".length), version, at, was, is });
    });
    return truth;
  }

  /** The last version of anything. */
  get last(): number {
    return this.facts.at(-1)?.version ?? 0;
  }

  /** Of the keys that begin so and contain `contains`, after version `from`; seen from one side, if any is named. */
  of(prefix: string, contains = "", from = 0, side = ""): Fact[] {
    const facts = this.facts.filter(
      ({ key, version }) => version > from && key.startsWith(prefix) && key.includes(contains),
    );
    return side === "" ? facts : facts.flatMap((fact) => seenFrom(side, fact) ?? []);
  }

  /** The names that are there now, from etcd's own table. */
  async names(prefix: string): Promise<string[]> {
    const keys = [...(await stored(this.#etcdUrl, `/registry/${prefix}`)).keys()];
    return keys.map((key) => key.slice(`/registry/${prefix}`.length)).toSorted();
  }

  stop(): void {
    this.#stop();
  }
}
