/**
 * Takes names out of what is sent to strangers: clients, identities, pods, nodes, namespaces and locks become "client-1",
 * "pod-7", the same one everywhere in a bundle. Secrets should not be there at all; what looks like one goes too.
 */
import { isIP } from "node:net";
import { withoutSecrets } from "../../admin/events/log.ts";
import { type Row, rowOf } from "../client/rows.ts";

/** Fields that name somebody, and what of. */
const named: Readonly<Record<string, string>> = {
  client: "client",
  subject: "subject",
  pod: "pod",
  node: "node",
  namespace: "namespace",
  holder: "holder",
  from: "holder",
  to: "holder",
};

/** Of every list, the ones whose rows' own `name` is somebody's. */
const ownNames: Readonly<Record<string, string>> = { locks: "lock" };

/** With a port behind it, or beside anything else. */
const addresses = /\b\d{1,3}(?:\.\d{1,3}){3}\b/g;

/** What a word in a sentence may be made of. */
const words = /[\w.:@/-]+/g;

export class Redactor {
  readonly #aliases = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  /** All lists first: a name in one list's sentence may be a field of another's. */
  learn(list: string, rows: readonly Row[]): void {
    for (const row of rows) this.#learn(row, ownNames[list]);
  }

  /** A copy without names. `list` says whose rows they are. */
  rows(list: string, rows: readonly Row[]): readonly Row[] {
    return rows.map((row) => rowOf(this.#value(row, "", ownNames[list])));
  }

  /** Prometheus' text: the labels that name somebody. */
  metrics(text: string): string {
    const labels = /\b(namespace|holder|source|name)="((?:[^"\\]|\\.)*)"/g;
    const redacted = text.replace(labels, (_all, label: string, value: string) => {
      const kind = { source: "client", name: "lock" }[label] ?? label;
      // Certificates and listeners have names of ours.
      const isOurs = label === "name" && !this.#aliases.has(value);
      return `${label}="${isOurs || value === "" ? value : this.#alias(kind, value)}"`;
    });
    return this.#sentence(redacted);
  }

  #learn(value: unknown, own: string | undefined): void {
    if (Array.isArray(value)) return value.forEach((one) => this.#learn(one, undefined));
    for (const [name, field] of Object.entries(rowOf(value))) {
      const kind = named[name] ?? (name === "name" ? own : undefined);
      if (typeof field === "string" && kind !== undefined && !isState(name, value)) this.#name(kind, field);
      else this.#learn(field, undefined);
    }
  }

  #name(kind: string, name: string): void {
    if (name === "") return;
    this.#alias(kind, name);
    // "namespace/pod", and a holder's "pod_uuid": sentences name the parts.
    const [first = "", second] = name.split("/");
    if (second !== undefined && kind === "pod") {
      this.#alias("namespace", first);
      this.#alias("pod", second);
    }
    const mark = name.indexOf("_");
    if (kind === "holder" && mark > 0) this.#alias("pod", name.slice(0, mark));
  }

  #value(value: unknown, field: string, own: string | undefined): unknown {
    if (typeof value === "string") return this.#field(value, field, own);
    if (Array.isArray(value)) return value.map((one) => this.#value(one, field, undefined));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => {
        const key = isState(name, value) ? "" : name;
        return [name, this.#value(one, key, own)];
      }),
    );
  }

  #field(text: string, field: string, own: string | undefined): string {
    if (text === "") return "";
    // Namespaces, names and selectors stand in it, and its resource is shown beside it.
    if (field === "path") return "[redacted]";
    const kind = named[field] ?? (field === "name" ? own : undefined);
    // An incident's subject is a sentence: a backend, or a client with its watch.
    const known = this.#aliases.get(text);
    if (known !== undefined && kind !== undefined) return known;
    return this.#sentence(text);
  }

  #sentence(text: string): string {
    const plain = withoutSecrets(text).replace(words, (word) => this.#word(word));
    return plain.replace(addresses, (address) => this.#alias("client", address));
  }

  #word(word: string): string {
    const [, core = "", tail = ""] = /^(.*?)([.:,]*)$/.exec(word) ?? [];
    const known = this.#known(core);
    if (known !== undefined) return known + tail;
    if (isIP(core) !== 0) return this.#alias("client", core) + tail;
    if (!core.includes("/")) return word;
    return (
      core
        .split("/")
        .map((part) => this.#known(part) ?? part)
        .join("/") + tail
    );
  }

  /** Too short a name is a word of the language. */
  #known(word: string): string | undefined {
    return word.length < 3 ? undefined : this.#aliases.get(word);
  }

  #alias(kind: string, name: string): string {
    const known = this.#aliases.get(name);
    if (known !== undefined) return known;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const alias = `${kind}-${count}`;
    this.#aliases.set(name, alias);
    return alias;
  }
}

/** A change of a backend's state has "from" and "to" as well; an incident's subject may be a backend, whose name stays. */
function isState(name: string, row: unknown): boolean {
  const fields = rowOf(row);
  if (name === "from" || name === "to") return "detector" in fields;
  return name === "subject" && "evidence" in fields;
}
