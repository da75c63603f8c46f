/**
 * A file's values against config/schema: defaults filled in, every deviation as a problem. What a value must be is
 * said in the schema alone; here is only how it is told.
 */
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import schema from "../config/schema/watchkeeper.v1alpha1.json" with { type: "json" };
import { isHost, isNetwork, parseAddress, parseBackendUrl } from "./address.ts";
import { parseDuration } from "./duration.ts";
import { didYouMean, type Problem, quote } from "./problem.ts";
import { fieldOf, pointerTo, type YamlDocument } from "./yaml-document.ts";

/** What the schema vouches for: the file's own shape, durations still as text. */
export type Written = {
  readonly metadata: { readonly name: string };
  readonly listeners: readonly WrittenListener[];
  readonly upstream: {
    readonly backends?: readonly { readonly name: string; readonly url: string }[];
    readonly discovery?: WrittenDiscovery;
    readonly tls?: WrittenUpstreamTls;
    readonly lanes: { readonly streams: number; readonly warm: number };
    readonly sharing: "lanes" | "none";
    readonly proxyProtocol: "off" | "v1" | "v2";
  };
  readonly watches: {
    readonly bookmarks: "always" | "as-asked";
    readonly timeTravelGuard: "observe" | "enforce" | "off";
  };
  readonly health: {
    readonly ping: { readonly interval: string; readonly suspectAfter: string; readonly deadAfter: string };
    readonly probe: { readonly path: string; readonly interval: string; readonly timeout: string };
    readonly keepalive: { readonly idle: string; readonly interval: string; readonly count: number };
  };
  readonly drain: { readonly readyDelay: string; readonly timeout: string };
  readonly admin: { readonly address: string; readonly metricsAddress: string };
  readonly logging: { readonly format: "json" | "text"; readonly accessLog: "off" | "errors" | "all" };
};

export type WrittenPair = {
  readonly certFile: string;
  readonly keyFile: string;
  readonly reloadInterval: string;
};

export type WrittenUpstreamTls = {
  readonly caFile: string;
  readonly reloadInterval: string;
  readonly serverName?: string;
  readonly frontProxy?: WrittenPair & {
    readonly usernameHeaders: readonly string[];
    readonly uidHeaders: readonly string[];
    readonly groupHeaders: readonly string[];
    readonly extraHeadersPrefix: readonly string[];
  };
  readonly impersonator?: WrittenPair;
};

export type WrittenDiscovery = {
  readonly from: "dns" | "file" | "endpointslice" | "leases";
  readonly interval: string;
  readonly name?: string;
  readonly port?: number;
  readonly file?: string;
  readonly kubeconfigFile?: string;
  readonly fallback?: { readonly name: string; readonly url: string };
};

export type WrittenHost = {
  readonly names: readonly string[];
  readonly tls: WrittenPair & { readonly clientCAFile?: string };
  readonly identity: { readonly clientCerts: "reject" | "front-proxy" | "impersonate" | "lend" };
};

export type WrittenListener = {
  readonly name: string;
  readonly address: string;
  readonly mode: "http" | "passthrough";
  readonly routes?: readonly {
    readonly serverNames?: readonly string[];
    readonly backends: readonly string[];
  }[];
  readonly tls?: WrittenHost["tls"];
  readonly identity: WrittenHost["identity"];
  readonly hosts: readonly WrittenHost[];
  readonly trustedForwarders: readonly string[];
  readonly proxyProtocol: ProxyProtocolConfig;
  readonly connectionsPerSource: number;
};

/** Whether a PROXY header is read, and whose; `trusted` are CIDRs. */
export type ProxyProtocolConfig = {
  readonly mode: "off" | "accept" | "require";
  readonly trusted: readonly string[];
};

const ajv = new Ajv2020({ allErrors: true, useDefaults: true, verbose: true });
ajv.addFormat("address", (text: string) => parseAddress(text) !== undefined);
ajv.addFormat("origin", (text: string) => parseBackendUrl(text) !== undefined);
ajv.addFormat("network", isNetwork);
ajv.addFormat("host", isHost);
ajv.addKeyword({
  keyword: "between",
  type: "string",
  schemaType: "array",
  validate: ([from = "", to = ""]: readonly string[], text: string) => {
    const ms = parseDuration(text);
    return ms === undefined || (ms >= (parseDuration(from) ?? 0) && ms <= (parseDuration(to) ?? Infinity));
  },
});
const validate = ajv.compile<Written>(schema);

/** Fills the defaults into `document.value` itself. */
export function checkSchema(document: YamlDocument): Written | readonly Problem[] {
  const { value } = document;
  if (validate(value)) return value;
  const errors = validate.errors ?? [];
  // Of a file that is no configuration of ours at all, every other key would be unknown: one line says more.
  const foreign = errors.filter((error) => isAboutKind(error));
  return (foreign.length > 0 ? foreign : errors)
    .map((error) => problemOf(error, document))
    .toSorted(inReadingOrder);
}

function inReadingOrder(one: Problem, other: Problem): number {
  const [line = 0, column = 0] = one.at.split(":").slice(-2).map(Number);
  const [otherLine = 0, otherColumn = 0] = other.at.split(":").slice(-2).map(Number);
  return line - otherLine || column - otherColumn;
}

function isAboutKind({ instancePath, keyword, params }: ErrorObject): boolean {
  if (instancePath === "/apiVersion" || instancePath === "/kind") return true;
  if (instancePath !== "") return false;
  return keyword === "type" || ["apiVersion", "kind"].includes(String(params["missingProperty"]));
}

function problemOf(error: ErrorObject, document: YamlDocument): Problem {
  const { instancePath, keyword, params, parentSchema, data } = error;
  if (keyword === "additionalProperties") {
    const key = String(params["additionalProperty"]);
    const meant = didYouMean(key, Object.keys(parentSchema?.["properties"] ?? {}));
    const at = document.keyPositionOf(pointerTo(instancePath, key));
    return { at, field: fieldOf(instancePath), message: `unknown field ${quote(key)}${meant}` };
  }
  if (keyword === "required") {
    const field = fieldOf(pointerTo(instancePath, String(params["missingProperty"])));
    return { at: document.positionOf(instancePath), field, message: "is missing" };
  }
  const say = demands[keyword] ?? demandOfPackage;
  const message = data === null ? "is empty: fill it in or remove its key" : `must ${say(error)}`;
  return { at: document.positionOf(instancePath), field: fieldOf(instancePath), message };
}

type Demand = (error: ErrorObject) => string;

const demandTitle: Demand = ({ parentSchema, data }) => `be ${parentSchema?.["title"]}, is ${quote(data)}`;

/** Counts and numbers: the package's own words, "be <= 250" or "NOT have fewer than 1 items". */
const demandOfPackage: Demand = ({ message = "", data }) =>
  message.replace(/^must /, "") + (typeof data === "number" ? `, is ${data}` : "");

/** What follows "must", by the schema's keyword. */
const demands: Readonly<Record<string, Demand>> = {
  pattern: demandTitle,
  format: demandTitle,
  const: ({ params, data }) => `be ${quote(params["allowedValue"])}, is ${quote(data)}`,
  between: ({ parentSchema, data }) =>
    `be between ${parentSchema?.["between"].join(" and ")}, is ${quote(data)}`,
  type: ({ params, data }) => `be ${nouns[String(params["type"])]}, is ${quote(data)}`,
  enum: ({ params, data }) => {
    const allowed: readonly string[] = params["allowedValues"];
    const list = allowed.map((value) => quote(value)).join(", ");
    return `be ${allowed.length > 1 ? "one of " : ""}${list}, is ${quote(data)}${didYouMean(String(data), allowed)}`;
  },
};

const nouns: Readonly<Record<string, string>> = {
  object: "a map of fields",
  array: "a list",
  integer: "a whole number",
  string: "text",
};
