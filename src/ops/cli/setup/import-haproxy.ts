/** Reads the servers from a haproxy.cfg, and notes each line, and each option of a line, that is not imported. */
import { parseAddress } from "../../../base/address.ts";
import { Failure } from "../../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { refused } from "../commands/options.ts";
import type { NamedBackend } from "../deploy/shape-config.ts";
import { type Group, type Note, nameOf, urlOf } from "./imported.ts";

type Line = { readonly at: string; readonly words: readonly string[] };
type Section = {
  readonly at: string;
  readonly kind: string;
  readonly name: string;
  readonly lines: Line[];
};

/**
 * Values from lines that haproxy.cfg may repeat, although watchkeeper can use only one of each kind. `bind`: the line
 * with the listener's address.
 */
type Used = { readonly bind: Line | undefined; readonly address?: string; readonly caFile?: string };

/** An option of a `server`, `default-server` or `bind` line, with its value if it has one. */
type Option = { readonly name: string; readonly value: string };

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

const oneListener = "the generated configuration has one listener, with the address of the first bind line";

/** What watchkeeper does, or what the operator should do, where an option of a `server` line is not imported. */
const serverOptions = new Map([
  ["backup", "watchkeeper uses this apiserver like the others"],
  ["weight", "weights from 1 to 256 of a server line are imported"],
  ["disabled", "watchkeeper uses this apiserver: remove it if it should get no clients"],
  ["maxconn", "watchkeeper does not limit the connections to one apiserver"],
  ["send-proxy", "set clusters[0].proxyProtocol: {version: V1}"],
  ["send-proxy-v2", "set clusters[0].proxyProtocol: {version: V2}"],
  ["ssl", "with --mode HTTP, watchkeeper connects to apiservers with TLS"],
  ["verify", "watchkeeper verifies certificates of apiservers with clusters[0].tls.caFile"],
  ["ca-file", "the generated configuration has one CA file for all apiservers"],
  ["sni", "set clusters[0].tls.serverName"],
  ["port", "watchkeeper sends probes to the port of the server"],
  ["slowstart", "the share of an apiserver that has returned grows to its full share within 30 s"],
]);

/** What the operator should do where an option of a `bind` line is not imported. */
const bindOptions = new Map([
  ["ssl", "import with --mode HTTP, and set listeners[0].tls"],
  ["crt", "set listeners[0].tls.certFile and keyFile"],
  ["ca-file", "set listeners[0].tls.clientCAFile"],
  ["accept-proxy", "set listeners[0].proxyProtocol"],
]);

/** Options that need no note, because they only tune HAProxy's checks, which PINGs and probes replace. */
const checkOptions = new Set("check check-ssl check-sni inter fastinter downinter rise fall".split(" "));

/** Options that are followed by a value. The value of an option that is missing here gets a note of its own. */
const optionsWithValue = new Set(
  (
    "addr agent-addr agent-inter agent-port agent-send alpn backlog ca-file ca-sign-file check-alpn check-proto check-sni " +
    "ciphers ciphersuites cookie crl-file crt crt-list curves downinter ecdhe error-limit fall fastinter group id init-addr inter " +
    "interface level log-proto maxconn maxqueue max-reuse minconn mode mss name namespace nice npn observe on-error " +
    "on-marked-down on-marked-up pool-low-conn pool-max-conn pool-purge-delay port process proto proxy-v2-options redir " +
    "resolve-net resolve-opts resolve-prefer resolvers rise sigalgs slowstart sni socks4 source ssl-max-ver ssl-min-ver " +
    "tcp-ut thread track uid user usesrc verify verifyhost weight ws"
  ).split(" "),
);

/** Number of words before the first option of a line. */
const headOf: ReadonlyMap<string, number> = new Map([
  ["server", 3],
  ["default-server", 1],
  ["bind", 2],
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
    const used = { ...boundOf(fronts), ...caOf(section) };
    const read = [...sections.filter(({ kind }) => kind === "defaults"), ...fronts, section];
    const notes = sections.flatMap((one) => (read.includes(one) ? notesOf(one, used) : sectionNote(one)));
    const { address, caFile } = used;
    groups.push({
      name: section.name,
      backends,
      ...(address === undefined ? {} : { address }),
      ...(caFile === undefined ? {} : { caFile }),
      notes,
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
    if (sectionKinds.has(first)) sections.push({ at, kind: first, name, lines: [] });
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

/** Returns the first `bind` line, and its address if watchkeeper accepts it, such as `*:8443` or `10.0.0.1:8443`. */
function boundOf(fronts: readonly Section[]): Used {
  const bind = fronts.flatMap(({ lines }) => lines).find(({ words }) => words[0] === "bind");
  const [, host = "", port = ""] = /^(?:ipv[46]@)?([^,/@]*):(\d+)$/.exec(bind?.words[1] ?? "") ?? [];
  const address = `${host === "*" || host === "::" ? "" : host}:${port}`;
  return parseAddress(address) === undefined ? { bind } : { bind, address };
}

function caOf({ lines }: Section): { caFile?: string } {
  const words = lines.flatMap((line) => (line.words[0] === "bind" ? [] : line.words));
  const caFile = words[words.indexOf("ca-file") + 1];
  return words.includes("ca-file") && caFile !== undefined ? { caFile } : {};
}

/** Returns one note for a section of which no line is imported; none if the section is empty. */
function sectionNote({ at, kind, name, lines }: Section): Note[] {
  const why = kind === "global" ? ": its lines concern only the haproxy process" : "";
  const text = `the section ${quote(`${kind} ${name}`.trim())} was not imported${why}`;
  return lines.length === 0 ? [] : [{ at, text }];
}

function notesOf({ lines }: Section, used: Used): Note[] {
  return lines.flatMap((written) => {
    const { at, words } = written;
    const [first = "", second = ""] = words;
    const line = words.join(" ");
    if (first === "bind" && written !== used.bind)
      return [{ at, text: `${quote(line)} was not imported: ${oneListener}` }];
    const lost = lostOf(words, used);
    if (lost.length > 0) return [{ at, text: lost.join("; ") }];
    const why = unneeded.find(([begins]) => line.startsWith(begins))?.[1];
    if (why !== undefined) return [{ at, text: `${quote(line)} is not needed: ${why}` }];
    if (understood.has(first) || understood.has(`${first} ${second}`)) return [];
    return [{ at, text: `${quote(line)} was not imported` }];
  });
}

/** Returns a text for each part of a `server`, `default-server` or `bind` line that is not imported. */
function lostOf(words: readonly string[], used: Used): string[] {
  const [first = "", name] = words;
  const owner = first === "default-server" ? first : `${first} ${quote(name)}`;
  const hasNoAddress = first === "bind" && used.address === undefined;
  const texts = first === "bind" ? bindOptions : serverOptions;
  const lost = optionsOf(words).filter((option) => !isUsed(first, option, words, used));
  return [
    ...(hasNoAddress ? [`the address of ${owner} was not imported: set listeners[0].address`] : []),
    ...lost.map((option) => {
      const why = texts.get(option.name);
      const written = quote(`${option.name} ${option.value}`.trim());
      return `${written} of ${owner} was not imported${why === undefined ? "" : `: ${why}`}`;
    }),
  ];
}

/** True if watchkeeper imports the option, does without it, or behaves in the same way. */
function isUsed(first: string, { name, value }: Option, words: readonly string[], used: Used): boolean {
  if (first === "bind") return false;
  if (name === "weight") return first === "server" && "weight" in weightOf(words);
  if (name === "ca-file") return value === used.caFile;
  return checkOptions.has(name) || (name === "verify" && value === "required");
}

/** Returns the options of a `server`, `default-server` or `bind` line; none for other lines. */
function optionsOf(words: readonly string[]): Option[] {
  const options: Option[] = [];
  let at = headOf.get(words[0] ?? "") ?? words.length;
  while (at < words.length) {
    const name = words[at] ?? "";
    const value = optionsWithValue.has(name) ? (words[at + 1] ?? "") : "";
    options.push({ name, value });
    at += value === "" ? 1 : 2;
  }
  return options;
}
