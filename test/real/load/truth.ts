/**
 * The changes of the objects in some namespaces, in etcd's order, with which every watch through the proxy is compared.
 * The version of an event is the version of its change, so events and changes are compared by type, key and version.
 * The label "side" of an object changes between two values. A watch that selects one of them receives an ADDED or
 * DELETED event when an object enters or leaves its selection.
 */
import { follow, stored } from "../rig/etcd.ts";

export type Fact = {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** resource/namespace/name */
  readonly key: string;
  readonly version: number;
  readonly at: number;
  /** The object's label "side" before the change, and after it. "" if there is none. */
  readonly was: string;
  readonly is: string;
};

/**
 * Returns the label "side" from etcd's protobuf encoding, in which a map entry is the key and the value, each with its
 * length.
 */
function sideIn(value: Buffer): string {
  const at = value.indexOf("\n\x04side\x12\x01", 0, "latin1");
  return at < 0 ? "" : String.fromCharCode(value[at + 8] ?? 0);
}

/** Returns the event of this change for a watch that selects this side. Undefined if that watch gets no event. */
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

  /** The latest version of any object. */
  get last(): number {
    return this.facts.at(-1)?.version ?? 0;
  }

  /**
   * Returns the changes after version `from` of keys that begin with `prefix` and contain `contains`. If `side` is
   * given, returns the events that a watch for this side must deliver.
   */
  of(prefix: string, contains = "", from = 0, side = ""): Fact[] {
    const facts = this.facts.filter(
      ({ key, version }) => version > from && key.startsWith(prefix) && key.includes(contains),
    );
    return side === "" ? facts : facts.flatMap((fact) => seenFrom(side, fact) ?? []);
  }

  /** Returns the names of the objects that now exist in etcd. */
  async names(prefix: string): Promise<string[]> {
    const keys = [...(await stored(this.#etcdUrl, `/registry/${prefix}`)).keys()];
    return keys.map((key) => key.slice(`/registry/${prefix}`.length)).toSorted();
  }

  stop(): void {
    this.#stop();
  }
}
