/** Declares all commands. The parser, `--help`, the completion scripts and docs/cli.md use this table. */

import { docsPage } from "../../program/docs.ts";

export type Option = {
  readonly name: string;
  readonly short?: string;
  /** Placeholder of the option's value in a usage text; default: none, which means that the option is a flag. */
  readonly value?: string;
  readonly isRequired?: boolean;
  readonly isMultiple?: boolean;
  /** The option is valid only if the command's first argument has one of these values; default: any value. */
  readonly only?: readonly string[];
  /** All valid values; default: any value is valid. */
  readonly choices?: readonly string[];
  readonly about: string;
  readonly usual?: string;
};

/** Returns an option from its usage text: "-o, --output FORMAT", "--once", or "--host NAME..." (can be repeated). */
function option(
  flags: string,
  about: string,
  usual?: string,
  rules: Pick<Option, "isRequired" | "choices" | "only"> = {},
): Option {
  const [, short, name = "", value, repeats] =
    /^(?:-(\w), )?--([\w-]+)(?: (\S+?)(\.\.\.)?)?$/.exec(flags) ?? [];
  return {
    name,
    ...(short === undefined ? {} : { short }),
    ...(value === undefined ? {} : { value }),
    ...(repeats === undefined ? {} : { isMultiple: true }),
    about,
    ...(usual === undefined ? {} : { usual }),
    ...rules,
  };
}

export type CommandSpec = {
  readonly summary: string;
  /** Placeholders of the positional arguments, such as "KIND [NAME]". */
  readonly words: string;
  /** All valid values of the first positional argument; default: any value is valid. */
  readonly choices?: readonly string[];
  /** Maps further spellings of the first positional argument to its valid values; default: none. */
  readonly aliases?: ReadonlyMap<string, string>;
  readonly options: readonly Option[];
  /** Meaning of exit code 1, such as "1: the bundle was not written". */
  readonly exits?: string;
  readonly examples?: readonly string[];
};

/** Lists that `get` prints, by their names in the API. */
export const kinds = [
  "backends",
  "watches",
  "clients",
  "leases",
  "limits",
  "certificates",
  "incidents",
  "replicas",
] as const;
export type Kind = (typeof kinds)[number];

/** Returns the name of one object of a kind, such as "backend". */
export function singularOf(kind: Kind): string {
  return kind === "watches" ? "watch" : kind.slice(0, -1);
}

export const shells = ["bash", "zsh", "fish"] as const;

export const logLevels = ["Error", "Warning", "Info", "Debug"] as const;

const admin = option(
  "--admin ADDRESS",
  "address of the JSON API: host:port or a URL",
  "$WATCHKEEPER_ADMIN, or 127.0.0.1:7480",
);
const tokenFile = option(
  "--token-file FILE",
  "bearer token, for an API with authorization",
  "$WATCHKEEPER_TOKEN_FILE, or none",
);
const caFile = option(
  "--ca-file FILE",
  "CA bundle that verifies an https:// ADDRESS",
  "$WATCHKEEPER_CA_FILE, or the system's CAs",
);
const apiOptions = [admin, tokenFile, caFile] as const;
const replica = option("--replica NAME", "replica to ask, by its name or address", "the process at --admin");
const allReplicas = option("--all-replicas", "ask all replicas that the process at --admin knows");
const replicaOptions = [replica, allReplicas] as const;
const formats = ["table", "wide", "json", "yaml", "name"] as const;
const output = option("-o, --output FORMAT", "table, wide, json, yaml or name", "table", {
  choices: formats,
});
const reason = option("--reason TEXT", "reason for the operation, which watchkeeper logs", "none");
const plainOutput = option("-o, --output FORMAT", "table or json", "table", { choices: ["table", "json"] });

const configOption = option("-c, --config FILE", "the configuration file", undefined, { isRequired: true });

export const commands = {
  demo: {
    summary: "demonstrate watchkeeper with embedded apiservers; needs no cluster",
    words: "",
    options: [
      option("--port N", "port on which the demo's proxy listens", "8443, or any free port"),
      option("--once", "exit after the last fault of the demo"),
      option("--faults LIST", "faults to inject, separated by commas: hole, freeze, restart, or none", "all"),
    ],
    exits: "1: the demo could not run, or a fault affected the client behind watchkeeper",
  },
  incident: {
    summary: "replay one of five incidents, with clients behind watchkeeper and behind a naive proxy",
    words: "000|001|002|003|004",
    choices: ["000", "001", "002", "003", "004"],
    options: [],
    exits: "1: watchkeeper did not behave as the page of the incident says, or the replay could not run",
    examples: ["watchkeeper incident 004"],
  },
  run: {
    summary: "serve clients according to a configuration file",
    words: "",
    options: [
      configOption,
      option("--pid-file FILE", "file into which the process ID is written", "none"),
      option("--metrics-address ADDRESS", "address of metrics and probes", "admin.metricsAddress"),
      option("--zone ZONE", "zone in which the process runs", "zone"),
      option("--workers N", "number of processes that serve clients; auto: one for each core", "workers"),
      option(
        "--log-level LEVEL",
        "least severe level of the log: Error, Warning, Info or Debug",
        "logging.level",
        {
          choices: logLevels,
        },
      ),
      option("--wait-for-files DURATION", "how long to wait for files that do not exist yet", "0s"),
    ],
    exits: "1: the process ended because of an internal error",
  },
  sidecar: {
    summary: "run as a sidecar: forward the apiserver requests of the pod's other containers",
    words: "",
    options: [
      option("--print-config", "print the sidecar's configuration and exit"),
      option("--port N", "port to listen on", "7443"),
      option("--metrics-port N", "port of metrics and probes", "7481"),
      option(
        "--direct DIR",
        "directory of the kubelet's projected token and CA",
        "/var/run/secrets/watchkeeper",
      ),
      option(
        "--shared DIR",
        "directory of the application's token and CA",
        "/var/run/secrets/kubernetes.io/serviceaccount",
      ),
      option(
        "--state DIR",
        "directory for files that must survive a restart of the container",
        "/var/run/watchkeeper",
      ),
    ],
    exits: "1: the process ended because of an internal error",
  },
  manifest: {
    summary: "print Kubernetes manifests: a static pod, a deployment, or a workload with a sidecar in it",
    words: "static-pod|deployment|sidecar",
    choices: ["static-pod", "deployment", "sidecar"],
    options: [
      option(
        "--image IMAGE",
        "container image of watchkeeper that the manifests use",
        "the release's own, or none; required",
      ),
      option("-f, --file FILE", "YAML of the workload to patch; - is stdin", "none; required for sidecar", {
        only: ["sidecar"],
      }),
      option("--port N", "port to listen on", "8443, or 7443 for a sidecar", {
        only: ["static-pod", "sidecar"],
      }),
      option("--metrics-port N", "port of metrics and probes", "7481", { only: ["static-pod", "sidecar"] }),
      option("--print-config", "print the configuration file for the node instead of the pod", undefined, {
        only: ["static-pod"],
      }),
      option("--backend NAME=URL...", "a kube-apiserver that the configuration lists", undefined, {
        only: ["static-pod"],
      }),
      option("--passthrough", "let the apiservers terminate TLS, so that the pod needs no key", undefined, {
        only: ["static-pod"],
      }),
      option("--second", "print the node's second pod, which serves while the first is replaced", undefined, {
        only: ["static-pod"],
      }),
      option("--secure-metrics", "serve metrics to other machines, with TLS and authorization", undefined, {
        only: ["static-pod"],
      }),
      option("--namespace NAME", "namespace of the Deployment", "watchkeeper", { only: ["deployment"] }),
      option("--replicas N", "number of replicas, from 2 to 50", "2", { only: ["deployment"] }),
    ],
    exits: "1: the sidecar cannot be added to the workload",
    examples: [
      "watchkeeper manifest static-pod --print-config --backend cp-1=https://10.0.0.11:6443 > watchkeeper.yaml",
      "watchkeeper manifest static-pod --image registry.example.com/watchkeeper:0.1.0 > /etc/kubernetes/manifests/watchkeeper.yaml",
      "watchkeeper manifest deployment --image registry.example.com/watchkeeper:0.1.0 | kubectl apply -f -",
      "watchkeeper manifest sidecar -f app.yaml --image registry.example.com/watchkeeper:0.1.0 | kubectl apply -f -",
    ],
  },
  import: {
    summary: "print a configuration with the backends of a haproxy.cfg or an envoy.yaml",
    words: "FILE",
    options: [
      option(
        "--from NAME",
        "haproxy backend or Envoy cluster to import",
        "the only one, or the only one whose servers have port 6443",
      ),
      option(
        "--mode MODE",
        "where TLS ends: HTTP (at watchkeeper) or Passthrough (at the apiservers)",
        "Passthrough",
        {
          choices: ["HTTP", "Passthrough"],
        },
      ),
    ],
    exits: "1: the file has no backends that can be imported, or --from is missing or wrong",
    examples: [
      "watchkeeper import /etc/haproxy/haproxy.cfg > watchkeeper.yaml",
      "watchkeeper import --mode HTTP /etc/haproxy/haproxy.cfg > watchkeeper.yaml",
    ],
  },
  try: {
    summary: "serve the cluster of the current kubectl context on this machine",
    words: "",
    options: [
      option("--kubeconfig FILE", "kubeconfig file", "as kubectl finds it"),
      option("--context NAME", "context to use", "the current one"),
      option("--port N", "port to listen on", "7443, or any free port"),
      option("--discover", "discover the apiservers behind the kubeconfig's server, and balance over them"),
    ],
    exits: "1: the command could not serve the cluster",
  },
  check: {
    summary: "check a configuration, its certificates and its backends",
    words: "",
    options: [
      option("-c, --config FILE", "the configuration file; - is stdin", undefined, { isRequired: true }),
      option(
        "--offline",
        "check the files only, and list the configured backends without connecting to them",
      ),
    ],
    exits: "1: a check of the configuration, a certificate or a backend failed",
  },
  config: {
    summary: "print a commented configuration to start from",
    words: "",
    options: [option("--schema", "print the JSON schema of the configuration, by which editors check it")],
  },
  pki: {
    summary: "create certificates, or a certificate signing request",
    words: "init|csr",
    choices: ["init", "csr"],
    options: [
      option("--dir DIR", "output directory", "pki"),
      option("--host NAME...", "DNS name or address of watchkeeper that the certificate contains"),
      option("--signer NAME", "name of the Kubernetes signer", "none; required for csr", { only: ["csr"] }),
      option("--name NAME", "common name of the certificate", "watchkeeper"),
    ],
    exits: "1: the command wrote no file",
  },
  status: {
    summary: "print backends, watches and active incidents on one screen",
    words: "",
    options: [
      ...apiOptions,
      ...replicaOptions,
      option("-o, --output FORMAT", "table, json or yaml", "table", { choices: ["table", "json", "yaml"] }),
    ],
    exits: "1: an incident is active, no backend is ready, or a changed setting needs a restart",
    examples: ["watchkeeper status", "watchkeeper status --all-replicas"],
  },
  get: {
    summary: "list backends, watches, clients, leases, limits, certificates, incidents, replicas",
    words: "KIND [NAME]... [COLUMN=VALUE]...",
    choices: kinds,
    aliases: new Map(kinds.map((kind) => [singularOf(kind), kind])),
    options: [
      ...apiOptions,
      ...replicaOptions,
      output,
      option("-q, --query TEXT", "print only rows that contain this text in any column", "all"),
      option(
        "--sort COLUMN",
        "column to sort by; --sort=-bytes: descending",
        `see ${docsPage("admin-api.md")}`,
      ),
      option("--limit N", "maximum number of rows, up to 50000", "100"),
      option("--no-headers", "print no header line"),
    ],
    exits: "1: no object has one of the given NAMEs",
    examples: [
      "watchkeeper get backend cp-1 cp-2",
      "watchkeeper get watches backend=cp-2 state=hung",
      "watchkeeper get clients --sort=-relists --limit 10",
      "watchkeeper get backends --all-replicas",
      "watchkeeper get backends state=ready -o name",
      "watchkeeper get leases -o json | jq '.items[] | select(.detector != \"\")'",
    ],
  },
  explain: {
    summary: "print the evidence and the effect of an incident",
    words: "[INCIDENT|KIND]",
    options: [...apiOptions, ...replicaOptions, plainOutput],
    exits: "1: there is no incident with this number, or of this kind",
    examples: [
      "watchkeeper explain",
      "watchkeeper explain backend-frozen",
      "watchkeeper explain 42",
      "watchkeeper explain --all-replicas",
    ],
  },
  top: {
    summary: "print the busiest watches or clients, updated continuously",
    words: "[watches|clients]",
    choices: ["watches", "clients"],
    options: [
      ...apiOptions,
      plainOutput,
      option("--once", "print one table and exit"),
      option("--interval SECONDS", "interval between updates, from 1 to 60", "2"),
      option("--rows N", "maximum number of rows, up to 500", "20"),
    ],
  },
  tap: {
    summary: "print the journal's entries as they are written, such as failed requests",
    words: "[KIND]",
    options: [
      ...apiOptions,
      plainOutput,
      option("--for SECONDS", "exit after this number of seconds, up to 86400", "until a signal"),
    ],
    examples: [
      "watchkeeper tap",
      "watchkeeper tap backend. --for 60",
      "watchkeeper tap request. -o json | jq .URI",
    ],
  },
  drain: {
    summary: "stop new requests to a backend, move its watches gradually, keep exec sessions",
    words: "BACKEND",
    options: [...apiOptions, reason],
    exits: "1: no backend has the given name, or no other backend is ready",
    examples: ["watchkeeper drain cp-2 --reason 'kernel update'", "watchkeeper undrain cp-2"],
  },
  undrain: {
    summary: "end the drain of a backend",
    words: "BACKEND",
    options: [...apiOptions, reason],
    exits: "1: no backend has the given name",
  },
  move: {
    summary: "move one watch to another backend, transparently to its client",
    words: "AUDIT-ID",
    options: [...apiOptions, reason],
    exits: "1: no watch has the given audit ID, or the watch cannot be moved now",
  },
  limit: {
    summary: "limit requests for a time: what is above the limit gets 429 with Retry-After",
    words: "[KEY=VALUE [KEY=VALUE]...]",
    options: [
      ...apiOptions,
      option("--rate RATE", "requests that may begin: 10/s, 30/m or 100/h", "not limited"),
      option("--burst N", "requests that may begin at once after a pause", "those of one second"),
      option("--in-flight N", "maximum number of concurrent requests", "not limited"),
      option("--all", "the limit matches all requests: no KEY=VALUE excludes any"),
      option("--for DURATION", "how long the limit is in force, from 1s to 24h", "1h"),
      replica,
      option("--all-replicas", "set the limit at all replicas, which share it: each allows its part"),
      reason,
    ],
    exits: "1: the limit was not set, or not at every replica",
    examples: [
      "watchkeeper limit user=system:serviceaccount:ci:runner verb=list resource=secrets --rate 1/s --for 1h",
      "watchkeeper limit agent=argocd* source=10.4.0.0/16 --in-flight 5",
      "watchkeeper limits",
      "watchkeeper unlimit 1",
    ],
  },
  limits: {
    summary: "print the limits of requests, and how many requests they have refused",
    words: "",
    options: [...apiOptions, ...replicaOptions, output, option("--no-headers", "print no header line")],
  },
  unlimit: {
    summary: "end a limit that an operator has set",
    words: "NUMBER",
    options: [...apiOptions, replica, reason],
    exits: "1: no operator's limit has the given number",
  },
  reload: {
    summary: "reload the configuration",
    words: "",
    options: [...apiOptions, reason],
    exits: "1: the configuration was rejected, and the last valid one stays in use",
  },
  bundle: {
    summary: "write the state of a running watchkeeper to a file, for a bug report",
    words: "",
    options: [
      ...apiOptions,
      option("--to PATH", "output: a .tar file, or a new directory", "watchkeeper-TIME.tar"),
      option("--metrics ADDRESS", "address of watchkeeper's metrics", "127.0.0.1:7481"),
      option("--names", "keep names and addresses in the bundle; default: names and addresses are redacted"),
    ],
    exits: "1: the bundle was not written",
  },
  docs: {
    summary:
      "print a page of the documentation that was installed with the program, or the list of its topics",
    words: "[TOPIC]",
    options: [],
    exits: "1: the documentation was not installed: the single executable does not contain it",
    examples: [
      "watchkeeper docs",
      "watchkeeper docs incidents/004",
      "watchkeeper docs runbooks/WatchkeeperDown",
    ],
  },
  completion: {
    summary: "print a script that completes these commands in a shell",
    words: "bash|zsh|fish",
    choices: shells,
    options: [],
    examples: [
      "source <(watchkeeper completion bash)",
      "watchkeeper completion fish > ~/.config/fish/completions/watchkeeper.fish",
    ],
  },
  version: { summary: "print the version", words: "", options: [] },
} as const satisfies Record<string, CommandSpec>;

export type CommandName = keyof typeof commands;

export const allCommands: readonly (readonly [name: CommandName, spec: CommandSpec])[] = Object.keys(commands)
  .filter(isCommand)
  .map((name) => [name, commands[name]]);

export function isCommand(name: string): name is CommandName {
  return Object.hasOwn(commands, name);
}
