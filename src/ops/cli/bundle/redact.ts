/**
 * Replaces each client, identity, pod, node, namespace and lease in a bundle by an alias such as "client-1". Also
 * replaces text that looks like a secret, although the API should contain none.
 */
import { isIP } from "node:net";
import { withoutSecrets } from "../../admin/events/log.ts";
import { type Row, rowOf } from "../commands/rows.ts";

const aliasKinds: Readonly<Record<string, string>> = {
  client: "client",
  subject: "subject",
  pod: "pod",
  node: "node",
  namespace: "namespace",
  holder: "holder",
  from: "holder",
  to: "holder",
  by: "operator",
};

/** The lists in which the field `name` is redacted, each with the kind of alias that replaces the name. */
const ownNames: Readonly<Record<string, string>> = { leases: "lease", replicas: "replica" };

const ipv4 = /\b\d{1,3}(?:\.\d{1,3}){3}\b/g;

/** Matches the parts of a limit's description that contain a name, such as "user=jane". */
const limitWords = /\b(user|group|agent|source)=([^\s,]+)/g;

const words = /[\w.:@/-]+/g;

export class Redactor {
  readonly #aliases = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  /**
   * Assigns aliases to the names in a list. Must be called for all lists before `rows`, because a list contains names
   * that belong to other lists.
   */
  learn(list: string, rows: readonly Row[]): void {
    for (const row of rows) this.#learn(row, ownNames[list]);
  }

  rows(list: string, rows: readonly Row[]): readonly Row[] {
    return rows.map((row) => rowOf(this.#value(row, "", ownNames[list])));
  }

  /** Redacts the labels that contain names. `text` is in the Prometheus text format. */
  metrics(text: string): string {
    const labels = /\b(namespace|holder|source|name)="((?:[^"\\]|\\.)*)"/g;
    const redacted = text.replace(labels, (_all, label: string, value: string) => {
      const kind = { source: "client", name: "lease" }[label] ?? label;
      // Names of certificates and listeners have no alias, because they come from watchkeeper's own configuration.
      const isOurs = label === "name" && !this.#aliases.has(value);
      return `${label}="${isOurs || value === "" ? value : this.#alias(kind, value)}"`;
    });
    return this.#sentence(redacted);
  }

  #learn(value: unknown, own: string | undefined): void {
    if (Array.isArray(value)) return value.forEach((one) => this.#learn(one, undefined));
    for (const [name, field] of Object.entries(rowOf(value))) {
      const kind = aliasKinds[name] ?? (name === "name" ? own : undefined);
      if (typeof field === "string" && kind !== undefined && !isState(name, value)) this.#name(kind, field);
      else this.#learn(field, undefined);
    }
  }

  #name(kind: string, name: string): void {
    if (name === "") return;
    this.#alias(kind, name);
    // A pod is named "namespace/pod", and the holder of a lease "pod_uuid". Each part gets an alias of its own, because
    // a text may contain only one of them.
    const [first = "", second] = name.split("/");
    if (second !== undefined && kind === "pod") {
      this.#alias("namespace", first);
      this.#alias("pod", second);
    }
    // An operator's name may have the form "alice (watchkeeper CLI) at 127.0.0.1"; only "alice" gets an alias.
    if (kind === "operator") this.#alias(kind, name.split(" ")[0] ?? "");
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
    // Redacts the whole text, because a path contains namespaces, names and selectors.
    if (field === "path") return "[redacted]";
    const kind = aliasKinds[field] ?? (field === "name" ? own : undefined);
    // A text that is no known name may be a sentence that contains names, such as an incident's subject.
    const known = this.#aliases.get(text);
    if (known !== undefined && kind !== undefined) return known;
    return this.#sentence(text);
  }

  #sentence(text: string): string {
    const unlimited = withoutSecrets(text).replace(
      limitWords,
      (_all, key: string, name: string) => `${key}=${this.#alias("subject", name)}`,
    );
    const plain = unlimited.replace(words, (word) => this.#word(word));
    return plain.replace(ipv4, (address) => this.#alias("client", address));
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

  /**
   * Returns a name's alias; undefined: none is known, or the name has only one or two characters and may be an ordinary
   * word.
   */
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

/**
 * True if the field contains no name in this row, although it does in other rows: "from" and "to" of a state change are
 * states, and the "subject" of an incident is a text of several words.
 */
function isState(name: string, row: unknown): boolean {
  const fields = rowOf(row);
  if (name === "from" || name === "to") return "detector" in fields;
  return name === "subject" && "evidence" in fields;
}
