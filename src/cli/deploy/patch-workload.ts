/** Adds watchkeeper as a sidecar to the workloads of a manifest. If the sidecar is there already, only updates it. */
import { Failure } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { at, type Row, rowOf, rowsAt } from "../commands/rows.ts";
import {
  type Addition,
  clientEnv,
  clientMounts,
  podVolumes,
  sidecarContainer,
  sidecarName,
} from "./sidecar-shape.ts";
import { type EditedDocument, editYaml, type Place } from "./yaml-edit.ts";

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
  const others: string[] = [];
  const remarks: string[] = [];
  let count = 0;
  const edited = editYaml(text, (document) => {
    const kind = document.valueAt(["kind"]);
    if (typeof kind !== "string") return undefined; // The document is empty, or is no Kubernetes object.
    const place = Object.hasOwn(podSpecPlaces, kind) ? podSpecPlaces[kind] : undefined;
    if (place === undefined) {
      others.push(kind);
      return undefined;
    }
    count += 1;
    const name = `${kind} ${quote(document.valueAt(["metadata", "name"]) ?? "without a name")}`;
    return new PodPatch(document, { name, place, addition, remarks }).apply();
  });
  if (edited instanceof Failure) return new Failure(edited.code, edited.origin, `${file}: ${edited.message}`);
  if (count === 0) return refuse(`${file}: No document has a pod${foundIn(others)}`);
  return { text: edited, remarks };
}

function foundIn(others: readonly string[]): string {
  const known = Object.keys(podSpecPlaces).join(", ");
  const list = others.includes("List") ? '; write a "List" as separate documents' : "";
  return `: found ${others.length === 0 ? "no kind" : others.join(", ")}, supported are ${known}${list}`;
}

function refuse(message: string): Failure {
  return new Failure("bad-file", "client", message);
}

type PodParts = {
  readonly name: string;
  readonly place: Place;
  readonly addition: Addition;
  readonly remarks: string[];
};

class PodPatch {
  readonly #document: EditedDocument;
  readonly #parts: PodParts;

  constructor(document: EditedDocument, parts: PodParts) {
    this.#document = document;
    this.#parts = parts;
  }

  apply(): Failure | undefined {
    const obstacle = this.#obstacle();
    if (obstacle !== undefined) return refuse(`${this.#parts.name}: ${obstacle}`);
    const { addition, name, remarks, place } = this.#parts;
    if (this.#document.valueAt([...place, "automountServiceAccountToken"]) === false)
      remarks.push(`${name} had no token (automountServiceAccountToken: false), and now has one`);
    // The other containers are changed first, because the insertion of the sidecar changes their indexes.
    for (const container of this.#containersAfterSidecar()) this.#direct(container);
    const own = sidecarContainer(addition);
    this.#document.put([...place, "initContainers"], own, { key: "name", end: "first" });
    for (const volume of podVolumes)
      this.#document.put([...place, "volumes"], volume, { key: "name", end: "last" });
    return undefined;
  }

  #obstacle(): string | undefined {
    const { place } = this.#parts;
    const alias = this.#aliases()[0];
    if (alias !== undefined)
      return `it uses the alias ${quote(`*${alias}`)} where the sidecar is added: expand it`;
    if (this.#listAt([...place, "containers"]).length === 0) return "it has no containers";
    if (this.#document.valueAt([...place, "hostNetwork"]) === true)
      return "hostNetwork: true, so its loopback is the node's: run one watchkeeper on the node instead";
    return this.#containersAfterSidecar()
      .map((container) => this.#clash(container))
      .find((clash) => clash !== undefined);
  }

  #aliases(): readonly string[] {
    const { place } = this.#parts;
    const lists = ["initContainers", "containers", "volumes"].map((field): Place => [...place, field]);
    const inside = this.#containersAfterSidecar().flatMap((container) => [
      [...container, "env"],
      [...container, "volumeMounts"],
    ]);
    return [...lists, ...inside].flatMap((one) => this.#document.aliasOn(one) ?? []);
  }

  #containersAfterSidecar(): readonly Place[] {
    const { place } = this.#parts;
    const initial = this.#listAt([...place, "initContainers"]);
    const own = initial.findIndex((one) => one["name"] === sidecarName);
    return [
      ...initial.flatMap((_, index): Place[] => (index > own ? [[...place, "initContainers", index]] : [])),
      ...this.#listAt([...place, "containers"]).map((_, index): Place => [...place, "containers", index]),
    ];
  }

  #listAt(place: Place): readonly Row[] {
    const value = this.#document.valueAt(place);
    return Array.isArray(value) ? value.map(rowOf) : [];
  }

  #clash(container: Place): string | undefined {
    const value = this.#document.valueAt(container);
    const name = `container ${quote(at(value, "name") ?? "")}`;
    const mounts = rowsAt(value, "volumeMounts");
    const { addition } = this.#parts;
    const strange = clientMounts.find(({ mountPath, name: volume }) =>
      mounts.some((one) => one["mountPath"] === mountPath && one["name"] !== volume),
    );
    if (strange !== undefined) return `${name} mounts another volume at ${strange.mountPath}`;
    const isOurs = mounts.some((one) => one["name"] === clientMounts[0]?.name);
    const env = rowsAt(value, "env");
    const taken = clientEnv(addition).find((one) => env.some((other) => other["name"] === one.name));
    if (taken !== undefined && !isOurs) return `${name} sets ${taken.name} itself`;
    const ports = rowsAt(value, "ports").map((port) => port["containerPort"]);
    if (ports.includes(addition.port))
      return `${name} listens on ${addition.port} as well: choose another --port`;
    if (ports.includes(addition.metricsPort))
      return `${name} listens on ${addition.metricsPort} as well: choose another --metrics-port`;
    return undefined;
  }

  #direct(container: Place): void {
    for (const env of clientEnv(this.#parts.addition))
      this.#document.put([...container, "env"], env, { key: "name", end: "last" });
    for (const mount of clientMounts)
      this.#document.put([...container, "volumeMounts"], mount, { key: "mountPath", end: "last" });
  }
}
