/** Adds watchkeeper as a sidecar to the workloads of a manifest. If the sidecar is there already, only updates it. */
import { isDeepStrictEqual } from "node:util";
import { type Document, isAlias, isMap, isNode, isSeq, LineCounter, parseAllDocuments, YAMLSeq } from "yaml";
import type { Failure } from "../../../base/failure.ts";
import { wordsOf } from "../../../base/failure.ts";
import { isRecord } from "../../../base/json.ts";
import { limits } from "../../../base/limits.ts";
import { quote } from "../../config/problem.ts";
import { refused } from "../commands/options.ts";
import { at, type Row, rowsAt } from "../commands/rows.ts";
import {
  type Addition,
  clientEnv,
  clientMounts,
  podVolumes,
  sidecarContainer,
  sidecarName,
} from "./sidecar-shape.ts";

/** The keys that lead to a value of a document. */
type Place = readonly (string | number)[];

const podSpecPlaces: Readonly<Record<string, Place>> = {
  Pod: ["spec"],
  Deployment: ["spec", "template", "spec"],
  StatefulSet: ["spec", "template", "spec"],
  DaemonSet: ["spec", "template", "spec"],
  ReplicaSet: ["spec", "template", "spec"],
  Job: ["spec", "template", "spec"],
  CronJob: ["spec", "jobTemplate", "spec", "template", "spec"],
};

export type Patched = {
  readonly text: string;
  readonly remarks: readonly string[];
};

/**
 * Adds the sidecar to each workload in `text`. Returns a Failure if `text` contains no workload. `file`: the file's
 * name in messages.
 */
export function addSidecar(text: string, file: string, addition: Addition): Patched | Failure {
  if (text.length > limits.manifestBytes)
    return refused(`${file}: The file is larger than ${limits.manifestBytes} bytes`);
  const lines = new LineCounter();
  const found: Found = { addition, kinds: [], remarks: [] };
  let [edited, from, isAnyPod] = ["", 0, false];
  for (const document of parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: "error",
  })) {
    const [start, , end] = document.range;
    const patch = patchOf(document, found);
    if (patch instanceof Obstacle) return patch.failure(file, lines, start);
    isAnyPod ||= patch !== undefined;
    // A document that has not changed keeps every byte.
    edited += patch?.isChanged === true ? document.toString(styleOf(text)) : text.slice(from, end);
    from = end;
  }
  if (!isAnyPod) return refused(`${file}: No document has a pod${foundIn(found.kinds)}`);
  return { text: edited + text.slice(from), remarks: found.remarks };
}

type Found = {
  readonly addition: Addition;
  /** The kinds of the documents that have no pod. */
  readonly kinds: string[];
  readonly remarks: string[];
};

/** Adds the sidecar to the document's pod. Returns undefined if the document has no pod. */
function patchOf(document: Document, { addition, kinds, remarks }: Found): PodPatch | Obstacle | undefined {
  const plain = plainOf(document);
  if (plain instanceof Obstacle) return plain;
  const kind = at(plain, "kind");
  if (typeof kind !== "string") return undefined; // The document is empty, or is no Kubernetes object.
  const place = Object.hasOwn(podSpecPlaces, kind) ? podSpecPlaces[kind] : undefined;
  if (place === undefined) {
    kinds.push(kind);
    return undefined;
  }
  const name = `${kind} ${quote(at(plain, "metadata.name") ?? "without a name")}`;
  const patch = new PodPatch(document, { name, plain, place, addition, remarks });
  return patch.apply() ?? patch;
}

/** A reason why the sidecar cannot be added, and the offset of the value that is the reason. */
class Obstacle {
  readonly #message: string;
  readonly #offset: number | undefined;

  constructor(message: string, offset?: number) {
    this.#message = message;
    this.#offset = offset;
  }

  failure(file: string, lines: LineCounter, start: number): Failure {
    const { line, col } = lines.linePos(this.#offset ?? start);
    return refused(`${file}:${Math.max(line, 1)}:${Math.max(col, 1)}: ${this.#message}`);
  }
}

/** Returns the value of a document. An alias without an anchor, or too many aliases, make it an Obstacle. */
function plainOf(document: Document): unknown {
  const [error] = document.errors;
  if (error !== undefined) return new Obstacle(`The file is not YAML: ${error.message}`, error.pos[0]);
  try {
    return document.toJS();
  } catch (reason) {
    return new Obstacle(`The file is not YAML: ${wordsOf(reason)}`);
  }
}

function foundIn(others: readonly string[]): string {
  const known = Object.keys(podSpecPlaces).join(", ");
  const list = others.includes("List") ? '; write a "List" as separate documents' : "";
  return `: found ${others.length === 0 ? "no kind" : others.join(", ")}, supported are ${known}${list}`;
}

type PodParts = {
  readonly name: string;
  /** The value of the whole document before it changes. */
  readonly plain: unknown;
  readonly place: Place;
  readonly addition: Addition;
  readonly remarks: string[];
};

type Item = Readonly<Record<string, unknown>>;

class PodPatch {
  isChanged = false;
  readonly #document: Document;
  readonly #parts: PodParts;
  readonly #obstacles: Obstacle[] = [];

  constructor(document: Document, parts: PodParts) {
    this.#document = document;
    this.#parts = parts;
  }

  apply(): Obstacle | undefined {
    const { addition, name, place, remarks } = this.#parts;
    const containers = this.#containersAfterSidecar();
    this.#check(containers);
    const [obstacle] = this.#obstacles;
    if (obstacle !== undefined) return obstacle;
    if (this.#valueAt([...place, "automountServiceAccountToken"]) === false)
      remarks.push(`${name} had no token (automountServiceAccountToken: false), and now has one`);
    // The other containers are changed first, because the insertion of the sidecar changes their indexes.
    for (const container of containers) {
      for (const env of clientEnv(addition)) this.#put([...container, "env"], env, "name");
      for (const mount of clientMounts) this.#put([...container, "volumeMounts"], mount, "mountPath");
    }
    this.#put([...place, "initContainers"], sidecarContainer(addition), "name", 0);
    for (const volume of podVolumes) this.#put([...place, "volumes"], volume, "name");
    return undefined;
  }

  #check(containers: readonly Place[]): void {
    const { place } = this.#parts;
    this.#rowsAt([...place, "volumes"]);
    if (this.#rowsAt([...place, "containers"]).length === 0) this.#refuse(place, "it has no containers");
    if (this.#valueAt([...place, "hostNetwork"]) === true)
      this.#refuse(
        [...place, "hostNetwork"],
        "hostNetwork: true, so its loopback is the node's: run one watchkeeper on the node instead",
      );
    for (const container of containers) {
      const clash = this.#clash(container);
      if (clash !== undefined) this.#refuse(container, clash);
    }
  }

  #containersAfterSidecar(): readonly Place[] {
    const { place } = this.#parts;
    const initial = this.#rowsAt([...place, "initContainers"]);
    const own = initial.findIndex((one) => one["name"] === sidecarName);
    return [
      ...initial.flatMap((_, index): Place[] => (index > own ? [[...place, "initContainers", index]] : [])),
      ...this.#rowsAt([...place, "containers"]).map((_, index): Place => [...place, "containers", index]),
    ];
  }

  #clash(container: Place): string | undefined {
    const value = this.#valueAt(container);
    const name = `container ${quote(at(value, "name") ?? "")}`;
    const mounts = this.#rowsAt([...container, "volumeMounts"]);
    const { addition } = this.#parts;
    const strange = clientMounts.find(({ mountPath, name: volume }) =>
      mounts.some((one) => one["mountPath"] === mountPath && one["name"] !== volume),
    );
    if (strange !== undefined) return `${name} mounts another volume at ${strange.mountPath}`;
    const isOurs = mounts.some((one) => one["name"] === clientMounts[0]?.name);
    const env = this.#rowsAt([...container, "env"]);
    const taken = clientEnv(addition).find((one) => env.some((other) => other["name"] === one.name));
    if (taken !== undefined && !isOurs) return `${name} sets ${taken.name} itself`;
    const ports = rowsAt(value, "ports").map((port) => port["containerPort"]);
    if (ports.includes(addition.port))
      return `${name} listens on ${addition.port} as well: choose another --port`;
    if (ports.includes(addition.metricsPort))
      return `${name} listens on ${addition.metricsPort} as well: choose another --metrics-port`;
    return undefined;
  }

  #refuse(place: Place, message: string): void {
    const node: unknown = this.#document.getIn(place, true);
    const offset = isNode(node) ? node.range?.[0] : undefined;
    this.#obstacles.push(new Obstacle(`${this.#parts.name}: ${message}`, offset));
  }

  #valueAt(place: Place): unknown {
    return place.reduce<unknown>(
      (value, key) => (isRecord(value) || Array.isArray(value) ? Reflect.get(value, key) : undefined),
      this.#parts.plain,
    );
  }

  /**
   * Returns the entries of a list that an edit may change; none if there is no list. Refuses an entry that is no map,
   * and an alias on the way to the list, because an edit would also change every other place with the same anchor.
   */
  #rowsAt(place: Place): readonly Row[] {
    for (let length = 1; length <= place.length; length++) {
      const node: unknown = this.#document.getIn(place.slice(0, length), true);
      if (!isAlias(node)) continue;
      this.#refuse(
        place,
        `it uses the alias ${quote(`*${node.source}`)} where the sidecar is added: expand it`,
      );
      return [];
    }
    const value = this.#valueAt(place) ?? [];
    if (Array.isArray(value) && value.every(isRecord)) return value;
    this.#refuse(place, `${place.at(-1)} is not a list of maps`);
    return [];
  }

  /**
   * Puts `item` into the list at `place`. Replaces the entry with the same value of `key`. If there is no such entry,
   * adds `item` as the entry `index`; default: the last.
   */
  #put(place: Place, item: Item, key: string, index = Infinity): void {
    const there: unknown = this.#document.getIn(place, true);
    // An empty list written as [] is replaced, because otherwise new items would be written between these brackets.
    const list = isSeq(there) && there.items.length > 0 ? there : new YAMLSeq(this.#document.schema);
    if (list !== there) this.#document.setIn(place, list);
    const fresh = this.#document.createNode(item);
    const old = list.items.find((one) => isMap(one) && one.get(key) === item[key]);
    if (!isMap(old)) list.items.splice(index, 0, fresh);
    else if (isDeepStrictEqual(old.toJS(this.#document), item)) return;
    else {
      fresh.commentBefore = old.commentBefore ?? null;
      list.items[list.items.indexOf(old)] = fresh;
    }
    this.isChanged = true;
  }
}

function styleOf(text: string): { lineWidth: number; indentSeq: boolean; flowCollectionPadding: boolean } {
  const [, outer = "", inner = "  "] = /^( *)[^\s#-][^\n]*:[ \t]*\r?\n( *)- /m.exec(text) ?? [];
  return {
    lineWidth: 0,
    indentSeq: inner.length > outer.length,
    flowCollectionPadding: /[{[] \S/.test(text),
  };
}
