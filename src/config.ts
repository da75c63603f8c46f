/**
 * A configuration file → Config, or all its problems at once. Nothing here decides what to do about a bad file:
 * whoever holds the last good Config keeps it.
 */
import assert from "node:assert/strict";
import { dirname, resolve } from "node:path";
import { type Address, type BackendAddress, parseAddress, parseBackendUrl } from "./address.ts";
import type { Clock } from "./clock.ts";
import { checkRules } from "./config-rules.ts";
import { checkSchema, type Written, type WrittenListener } from "./config-schema.ts";
import { parseDuration } from "./duration.ts";
import { Failure } from "./failure.ts";
import { limits } from "./limits.ts";
import { isProblems, type Problem } from "./problem.ts";
import { readText } from "./read-text.ts";
import { watchFiles } from "./watch-files.ts";
import { fieldOf, readYaml } from "./yaml-document.ts";

/** What an operator decides. Paths are absolute, durations milliseconds, nothing is left out. */
export type Config = {
  readonly file: string;
  readonly name: string;
  readonly listeners: readonly ListenerConfig[];
  readonly upstream: {
    readonly backends: readonly BackendConfig[];
    /** Undefined only when every backend is plain http on loopback. */
    readonly tls: { readonly caFile: string; readonly serverName: string | undefined } | undefined;
    readonly lanes: { readonly streams: number; readonly warm: number };
    readonly sharing: "lanes" | "none";
  };
  readonly health: {
    readonly ping: {
      readonly intervalMs: number;
      readonly suspectAfterMs: number;
      readonly deadAfterMs: number;
    };
    readonly keepalive: { readonly idleMs: number; readonly intervalMs: number; readonly count: number };
  };
  readonly drain: { readonly readyDelayMs: number; readonly timeoutMs: number };
  readonly admin: { readonly metricsAddress: Address };
  readonly logging: { readonly format: "json" | "text"; readonly accessLog: "off" | "errors" | "all" };
};

export type ListenerConfig = {
  readonly name: string;
  readonly address: Address;
  readonly mode: "http";
  /** Undefined: plain HTTP, on loopback. */
  readonly tls: ListenerTls | undefined;
  /** CIDRs, as `networksOf` takes them. */
  readonly trustedForwarders: readonly string[];
};

export type ListenerTls = {
  readonly certFile: string;
  readonly keyFile: string;
  readonly reloadIntervalMs: number;
};

export type BackendConfig = { readonly name: string; readonly url: string } & BackendAddress;

/** `file` names the text in problems, and its directory is where relative paths start. */
export function parseConfig(text: string, file: string): Config | readonly Problem[] {
  if (text.length > limits.configBytes)
    return [problemOf(file, `is larger than ${limits.configBytes} bytes`)];
  const document = readYaml(text, file);
  if (isProblems(document)) return document;
  const written = checkSchema(document);
  if (isProblems(written)) return written.slice(0, limits.configProblems);
  const breaches = checkRules(written);
  if (breaches.length === 0) return configOf(written, file);
  return breaches.map(({ pointer, message }) => ({
    at: document.positionOf(pointer),
    field: fieldOf(pointer),
    message,
  }));
}

/** A file that cannot be read is a problem like any other. */
export function loadConfig(file: string): Config | readonly Problem[] {
  const text = readText(file, limits.configBytes);
  return text instanceof Failure ? [problemOf(file, text.message)] : parseConfig(text, file);
}

/** Loads `file` again whenever it has changed; `onChange` hears of bad files too. Returns its stop function. */
export function watchConfig(
  file: string,
  options: { readonly clock: Clock; readonly onChange: (loaded: Config | readonly Problem[]) => void },
): () => void {
  const { clock, onChange } = options;
  return watchFiles([file], { clock, intervalMs: 1000, onChange: () => onChange(loadConfig(file)) });
}

function problemOf(file: string, message: string): Problem {
  return { at: `${file}:1:1`, field: "", message };
}

function configOf(written: Written, file: string): Config {
  const { upstream, health, drain } = written;
  const pathOf = (path: string): string => resolve(dirname(file), path);
  return {
    file: resolve(file),
    name: written.metadata.name,
    listeners: written.listeners.map((listener) => listenerOf(listener, pathOf)),
    upstream: {
      backends: upstream.backends.map(({ name, url }) => ({ name, url, ...backendAddressOf(url) })),
      tls: upstream.tls && { caFile: pathOf(upstream.tls.caFile), serverName: upstream.tls.serverName },
      lanes: { ...upstream.lanes },
      sharing: upstream.sharing,
    },
    health: {
      ping: {
        intervalMs: msOf(health.ping.interval),
        suspectAfterMs: msOf(health.ping.suspectAfter),
        deadAfterMs: msOf(health.ping.deadAfter),
      },
      keepalive: {
        idleMs: msOf(health.keepalive.idle),
        intervalMs: msOf(health.keepalive.interval),
        count: health.keepalive.count,
      },
    },
    drain: { readyDelayMs: msOf(drain.readyDelay), timeoutMs: msOf(drain.timeout) },
    admin: { metricsAddress: addressOf(written.admin.metricsAddress) },
    logging: { ...written.logging },
  };
}

function listenerOf(listener: WrittenListener, pathOf: (path: string) => string): ListenerConfig {
  const { tls } = listener;
  return {
    name: listener.name,
    address: addressOf(listener.address),
    mode: listener.mode,
    tls: tls && {
      certFile: pathOf(tls.certFile),
      keyFile: pathOf(tls.keyFile),
      reloadIntervalMs: msOf(tls.reloadInterval),
    },
    trustedForwarders: listener.trustedForwarders,
  };
}

const msOf = (text: string): number => checked(parseDuration(text));
const addressOf = (text: string): Address => checked(parseAddress(text));
const backendAddressOf = (url: string): BackendAddress => checked(parseBackendUrl(url));

/** The schema's formats are the same functions, so only a mistake of ours gets here without a value. */
function checked<T>(value: T | undefined): T {
  assert(value !== undefined, "The schema let a text through that cannot be read");
  return value;
}
