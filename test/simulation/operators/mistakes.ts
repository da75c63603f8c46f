/**
 * What operators do wrong, and what they do right: each puts files in place that the proxy reads, or sets the clock.
 * Each names the entry of the journal that must follow within seconds, and the one that must follow when it is mended.
 */
import type { Entry } from "../../../src/events/journal.ts";
import type { Authority, Pair } from "../../../src/ops/pki/pki.ts";
import { badFiles } from "../../support/bad-configs.ts";
import type { Random } from "../random.ts";
import type { WholeProxy } from "./whole-proxy.ts";

/** All that the operators of a run have. */
export type Desk = {
  readonly proxy: WholeProxy;
  readonly random: Random;
  readonly config: object;
  /** The cluster's CAs and pairs, which are right. */
  readonly clients: Authority;
  readonly frontProxies: Authority;
  readonly backends: Authority;
  readonly serving: Pair;
  readonly frontProxy: Pair;
  /** A CA that has nothing to do with the cluster, and one that has expired. */
  readonly strangers: Authority;
  readonly expired: Authority;
  /** The text of the discovery file. `without`: a backend that it lacks. */
  readonly discovered: (without?: string) => string;
  /** The time in ms since 1970. */
  readonly wall: () => number;
};

export type Sign = (entry: Entry) => boolean;

export type Made = {
  /** True for the entry that names the mistake. Undefined: nothing need be told. */
  readonly named: Sign | undefined;
  readonly mend: () => void;
  /** True for the entry that says that the mistake is over. Undefined: nothing need be told. */
  readonly ended: Sign | undefined;
  /** Ms within which the proxy says that it is over; default: as long as for its name. */
  readonly endsWithinMs?: number;
};

export type Mistake = { readonly name: string; readonly begin: (desk: Desk) => Made };

function opened(incident: string, subject: string): Sign {
  return (entry) =>
    entry.kind === "incident.opened" && entry.incident === incident && entry.subject.endsWith(subject);
}

function ended(incident: string, subject: string): Sign {
  return (entry) =>
    entry.kind === "incident.ended" && entry.incident === incident && entry.subject.endsWith(subject);
}

/** A file whose content is wrong for a while. `incident`: its kind and subject. Undefined: the file is away. */
function wrongFile(
  { proxy }: Desk,
  content: Readonly<Record<string, readonly [wrong: string | undefined, right: string]>>,
  incident: readonly [kind: string, subject: string],
): Made {
  for (const [file, [wrong]] of Object.entries(content))
    if (wrong === undefined) proxy.remove(file);
    else proxy.put(file, wrong);
  return {
    named: opened(...incident),
    ended: ended(...incident),
    mend() {
      for (const [file, [, right]] of Object.entries(content)) proxy.put(file, right);
    },
  };
}

const garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const dayMs = 86_400_000;

type PairOf = (desk: Desk) => { readonly certificate: string | undefined; readonly key: string | undefined };

/** The pairs that must be refused, by listeners and at backends. `wanted`: the pair that is right. */
const uselessPairs = (wanted: (desk: Desk) => Pair): Readonly<Record<string, PairOf>> => ({
  "no certificate": (desk) => ({ ...wanted(desk), certificate: garbage }),
  "an empty key": (desk) => ({ ...wanted(desk), key: "" }),
  "another key": (desk) => ({ ...wanted(desk), key: desk.strangers.issue({ name: "x" }).key }),
  "no file": () => ({ certificate: undefined, key: undefined }),
});

const servingPairs: Readonly<Record<string, PairOf>> = {
  ...uselessPairs(({ serving }) => serving),
  expired: ({ backends, wall }) =>
    backends.issue({ name: "watchkeeper", hosts: ["localhost"], notAfter: wall() - dayMs }),
  "a client certificate": ({ clients }) =>
    clients.issue({ name: "x", hosts: ["localhost"], usage: "client" }),
  "no name": ({ backends }) => backends.issue({ name: "localhost" }),
};

const frontProxyPairs: Readonly<Record<string, PairOf>> = {
  ...uselessPairs(({ frontProxy }) => frontProxy),
  "an administrator's": ({ clients }) =>
    clients.issue({ name: "kubernetes-admin", groups: ["system:masters"], usage: "client" }),
  "a foreign CA's": ({ strangers }) => strangers.issue({ name: "front-proxy-client", usage: "client" }),
  expired: ({ frontProxies, wall }) =>
    frontProxies.issue({ name: "front-proxy-client", usage: "client", notAfter: wall() - dayMs }),
  "of a name that is not allowed": ({ frontProxies }) =>
    frontProxies.issue({ name: "mallory", usage: "client" }),
};

function pairMistakes(
  what: string,
  file: string,
  pairs: Readonly<Record<string, PairOf>>,
  right: (desk: Desk) => Pair,
  subject: string,
): readonly Mistake[] {
  return Object.entries(pairs).map(([name, wrong]) => ({
    name: `${what}: ${name}`,
    begin: (desk) => {
      const [bad, good] = [wrong(desk), right(desk)];
      return wrongFile(
        desk,
        {
          [`${file}.crt`]: [bad.certificate, good.certificate],
          [`${file}.key`]: [bad.key, good.key],
        },
        ["certificate-refused", subject],
      );
    },
  }));
}

const bundles: Readonly<Record<string, (desk: Desk) => string | undefined>> = {
  "no certificate": () => garbage,
  empty: () => "",
  "no file": () => undefined,
  expired: ({ expired }) => expired.certificate,
};

function bundleMistakes(
  what: string,
  file: string,
  wrong: Readonly<Record<string, (desk: Desk) => string | undefined>>,
  right: (desk: Desk) => string,
  subject: string,
): readonly Mistake[] {
  return Object.entries(wrong).map(([name, of]) => ({
    name: `${what}: ${name}`,
    begin: (desk) => wrongFile(desk, { [file]: [of(desk), right(desk)] }, ["certificate-refused", subject]),
  }));
}

const discoveries: Readonly<Record<string, string>> = {
  "an empty list": "[]",
  "no list": "{a: 1}",
  "lists in the list": '[[{name: a, url: "https://127.0.0.1:1"}]]',
  "lists as addresses": '[{name: a, url: ["https://127.0.0.1:1"]}]',
  "one name twice": '[{name: a, url: "https://127.0.0.1:1"}, {name: a, url: "https://127.0.0.1:2"}]',
  "no YAML": "[{name: a",
  null: "null",
  "70 backends": JSON.stringify(
    Array.from({ length: 70 }, (_none, at) => ({ name: `b-${at}`, url: `https://10.0.0.${at + 1}:6443` })),
  ),
};

const configFile = "watchkeeper.yaml";
/** So many of the mistakes are bad configurations: another YAML node at some key. */
const badFilesInAll = 16;
/** A refused certificate is tried again after a minute, if its files stay the same (`certificateRetryMs`). */
const retriedMs = 75_000;

function badConfig(desk: Desk, text: string): Made {
  return wrongFile(desk, { [configFile]: [text, JSON.stringify(desk.config)] }, [
    "config-refused",
    configFile,
  ]);
}

/** The configuration with another front-proxy pair. */
function withPair({ config }: Desk, file: string): string {
  return JSON.stringify(config).replaceAll("front-proxy.", `${file}.`);
}

const removed = "cp-3";

/** An operator sets the machine's clock back, and renews the serving certificate meanwhile. */
function clockSetBack(desk: Desk, byMs: number, isRenewed: boolean): Made {
  const { proxy, backends } = desk;
  const renewed = backends.issue({ name: "watchkeeper", hosts: ["localhost"] });
  proxy.setBackMs = byMs;
  if (isRenewed) {
    proxy.put("serving.crt", renewed.certificate);
    proxy.put("serving.key", renewed.key);
  }
  return {
    named: isRenewed ? opened("certificate-refused", "kube") : undefined,
    ended: isRenewed ? ended("certificate-refused", "kube") : undefined,
    endsWithinMs: retriedMs,
    mend() {
      proxy.setBackMs = 0;
    },
  };
}

export const mistakes: readonly Mistake[] = [
  ...Array.from({ length: badFilesInAll }, (_none, at) => ({
    name: `a bad configuration ${at + 1}`,
    begin: (desk: Desk) => {
      const [text = ""] = badFiles(desk.config, 1, desk.random.whole(0, 1_000_000));
      const made = badConfig(desk, text);
      if (desk.random.chance(0.3)) desk.proxy.reloadNow();
      return made;
    },
  })),
  { name: "a configuration that is no YAML", begin: (desk) => badConfig(desk, "a: [") },
  { name: "an empty configuration", begin: (desk) => badConfig(desk, "") },
  {
    name: "a configuration that names an administrator's pair",
    begin: (desk) => {
      const { certificate, key } = desk.clients.issue({ name: "kubernetes-admin", usage: "client" });
      desk.proxy.put("admin.crt", certificate);
      desk.proxy.put("admin.key", key);
      return badConfig(desk, withPair(desk, "admin"));
    },
  },
  {
    name: "a configuration that names a pair that is not there",
    begin: (desk) => badConfig(desk, withPair(desk, "absent")),
  },
  {
    name: "a configuration that names another CA of the backends",
    begin: (desk) => {
      desk.proxy.put("stranger.crt", desk.strangers.certificate);
      return badConfig(desk, JSON.stringify(desk.config).replaceAll("backends.crt", "stranger.crt"));
    },
  },
  ...pairMistakes("a serving pair", "serving", servingPairs, ({ serving }) => serving, "kube"),
  ...pairMistakes(
    "a front-proxy pair",
    "front-proxy",
    frontProxyPairs,
    ({ frontProxy }) => frontProxy,
    "front-proxy",
  ),
  ...bundleMistakes(
    "a CA of clients",
    "clients.crt",
    bundles,
    ({ clients }) => clients.certificate,
    "kube client CA",
  ),
  ...bundleMistakes(
    "a CA of the backends",
    "backends.crt",
    { ...bundles, "of another cluster": ({ strangers }) => strangers.certificate },
    ({ backends }) => backends.certificate,
    "backend-ca",
  ),
  ...Object.entries(discoveries).map(([name, text]) => ({
    name: `a discovery file: ${name}`,
    begin: (desk: Desk) =>
      wrongFile(desk, { "backends.yaml": [text, desk.discovered()] }, ["discovery-failed", "File"]),
  })),
  {
    name: "a removed backend",
    begin: ({ proxy, discovered }) => {
      proxy.put("backends.yaml", discovered(removed));
      return {
        named: (entry) => entry.kind === "discovery.changed" && entry.removed.includes(removed),
        ended: (entry) => entry.kind === "discovery.changed" && entry.added.includes(removed),
        mend: () => proxy.put("backends.yaml", discovered()),
      };
    },
  },
  {
    name: "a backend removed from the configuration",
    begin: (desk) => {
      const changed = (entry: Entry): boolean => entry.kind === "config.reloaded";
      desk.proxy.put(configFile, JSON.stringify(desk.config).replace(/"backends":\[[^\]]*\],/, ""));
      const mend = (): void => desk.proxy.put(configFile, JSON.stringify(desk.config));
      return { named: changed, ended: changed, mend };
    },
  },
  ...[600_000, dayMs, 400 * dayMs].map((byMs) => ({
    name: `the clock is ${byMs / 60_000} min back`,
    begin: (desk: Desk) => clockSetBack(desk, byMs, false),
  })),
  {
    name: "the clock is a day back when a certificate is renewed",
    begin: (desk) => clockSetBack(desk, dayMs, true),
  },
];
