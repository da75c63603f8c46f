/** Reads the servers from a haproxy.cfg, and notes each line that is not imported. */
import { Failure } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import type { NamedBackend } from "../deploy/shape-config.ts";
import { type Group, type Note, nameOf, refused, urlOf } from "./imported.ts";

type Line = { readonly at: string; readonly words: readonly string[] };
type Section = { readonly kind: string; readonly name: string; readonly lines: Line[] };

const sectionKinds = new Set(
  "global defaults frontend backend listen peers resolvers userlist mailers cache program ring http-errors fcgi-app".split(
    " ",
  ),
);

const unneeded: readonly (readonly [begins: string, why: string])[] = [
  ["timeout", "idle connections stay open; PING finds a silent apiserver within a second"],
  ["option httpchk", "every apiserver gets PINGs and /readyz probes by default"],
  ["http-check", "every apiserver gets PINGs and /readyz probes by default"],
  ["option ssl-hello-chk", "every apiserver gets PINGs and /readyz probes by default"],
  ["option tcp-check", "every apiserver gets PINGs and /readyz probes by default"],
  ["default-server", "every apiserver gets PINGs and /readyz probes by default"],
  ["balance", "a new client uses the less loaded of two random apiservers"],
];

/** Keywords of lines that need no note: watchkeeper imports the line, or loses nothing without it. */
const understood = new Set(["server", "mode", "bind", "default_backend", "option tcplog", "description"]);

/** Options of a `server` line that matter but are not imported, and what watchkeeper does or the operator should do. */
const serverOptions = new Map([
  ["backup", "watchkeeper uses this apiserver like the others"],
  ["weight", "weights from 1 to 256 of a server line are imported"],
  ["disabled", "watchkeeper uses this apiserver: remove it if it should get no clients"],
  ["maxconn", "watchkeeper does not limit the connections to one apiserver"],
  ["send-proxy", "set clusters[0].proxyProtocol: {version: V1}"],
  ["send-proxy-v2", "set clusters[0].proxyProtocol: {version: V2}"],
]);

/** Options of a `bind` line that matter but are not imported, and what the operator should do. */
const bindOptions = new Map([
  ["ssl", "import with --mode HTTP, and set listeners[0].tls"],
  ["accept-proxy", "set listeners[0].proxyProtocol"],
]);

const optionsOf: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map([
  ["server", serverOptions],
  ["default-server", serverOptions],
  ["bind", bindOptions],
]);

export function groupsOfHaproxy(text: string, file: string): readonly Group[] | Failure {
  const sections = sectionsOf(text, file);
  if (sections instanceof Failure) return sections;
  const groups: Group[] = [];
  for (const section of sections.filter(({ kind }) => kind === "backend" || kind === "listen")) {
    const backends = backendsOf(section);
    if (backends instanceof Failure) return backends;
    if (backends.length === 0) continue;
    const fronts =
      section.kind === "listen" ? [section] : sections.filter((one) => leadsTo(one, section.name));
    const defaults = sections.filter(({ kind }) => kind === "defaults");
    const notes = [...defaults, ...fronts, section].flatMap(notesOf);
    groups.push({
      name: section.name,
      backends,
      ...addressOf(fronts),
      ...caOf(section),
      notes: unique(notes),
    });
  }
  return groups;
}

function sectionsOf(text: string, file: string): readonly Section[] | Failure {
  const sections: Section[] = [];
  for (const [index, raw] of text.split("\n").entries()) {
    const words = raw
      .replace(/(^|\s)#.*$/, "")
      .trim()
      .split(/\s+/)
      .filter((word) => word !== "");
    const [first = "", name = ""] = words;
    const at = `${file}:${index + 1}`;
    if (first === "") continue;
    if (sectionKinds.has(first)) sections.push({ kind: first, name, lines: [] });
    else if (sections.length === 0)
      return refused(`${at}: ${quote(first)} is outside any section: this is not a haproxy.cfg`);
    else sections.at(-1)?.lines.push({ at, words });
  }
  return sections;
}

function leadsTo({ kind, lines }: Section, backend: string): boolean {
  return (
    kind === "frontend" &&
    lines.some(({ words }) => /^(default_backend|use_backend)$/.test(words[0] ?? "") && words[1] === backend)
  );
}

function backendsOf({ lines }: Section): NamedBackend[] | Failure {
  const backends: NamedBackend[] = [];
  for (const { at, words } of lines) {
    const [first, name = "", address = ""] = words;
    if (first === "server-template")
      return refused(`${at}: "server-template" finds servers by DNS: use discovery {type: DNS}`);
    if (first !== "server") continue;
    const [, host = "", port = ""] = /^(?:ipv[46]@)?(.*):(\d+)$/.exec(address) ?? [];
    const url = urlOf(host, port);
    if (url === undefined)
      return refused(
        `${at}: server ${quote(name)} has the address ${quote(address)}, which is not HOST:PORT`,
      );
    backends.push({ name: nameOf(name), url, ...weightOf(words) });
  }
  return backends;
}

/**
 * Returns the weight if it is from 1 to 256. HAProxy's weight 0 means that a server gets no new clients, for which
 * watchkeeper has no equivalent.
 */
function weightOf(words: readonly string[]): { weight?: number } {
  const weight = Number(words[words.indexOf("weight") + 1]);
  const isWeight = Number.isInteger(weight) && weight >= 1 && weight <= 256;
  return words.includes("weight") && isWeight ? { weight } : {};
}

/** Returns the address of the first `bind` line, such as `bind *:8443` or `bind 10.0.0.1:8443`. */
function addressOf(fronts: readonly Section[]): { address?: string } {
  const bound = fronts.flatMap(({ lines }) => lines).find(({ words }) => words[0] === "bind")?.words[1];
  const [, host = "", port] = /^(.*):(\d+)$/.exec(bound ?? "") ?? [];
  if (port === undefined) return {};
  return { address: `${host === "*" || host === "::" ? "" : host}:${port}` };
}

function caOf({ lines }: Section): { caFile?: string } {
  const words = lines.flatMap((line) => line.words);
  const caFile = words[words.indexOf("ca-file") + 1];
  return words.includes("ca-file") && caFile !== undefined ? { caFile } : {};
}

function notesOf({ lines }: Section): Note[] {
  return lines.flatMap(({ at, words }) => {
    const [first = "", second = ""] = words;
    const lost = lostOptions(words);
    if (lost !== "") return [{ at, text: lost }];
    const line = words.join(" ");
    const why = unneeded.find(([begins]) => line.startsWith(begins))?.[1];
    if (why !== undefined) return [{ at, text: `${quote(line)} is not needed: ${why}` }];
    if (understood.has(first) || understood.has(`${first} ${second}`)) return [];
    return [{ at, text: `${quote(line)} was not imported` }];
  });
}

/** Returns a note about those options of a `server` or `bind` line that are not imported; "": there are none. */
function lostOptions(words: readonly string[]): string {
  const [first = "", name] = words;
  const owner = first === "default-server" ? first : `${first} ${quote(name)}`;
  const options = optionsOf.get(first) ?? new Map<string, string>();
  const hasWeight = first === "server" && "weight" in weightOf(words);
  const lost = words.filter((word) => options.has(word) && !(hasWeight && word === "weight"));
  return lost
    .map((option) => `${quote(option)} of ${owner} was not imported: ${options.get(option)}`)
    .join("; ");
}

function unique(notes: readonly Note[]): Note[] {
  return [...new Map(notes.map((note) => [note.at, note])).values()];
}
