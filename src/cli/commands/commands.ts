/**
 * The command line as data: arguments are parsed by it, and `--help`, the completion scripts and docs/cli.md are made from
 * it. Each command is in the file of its name; cli.ts runs it.
 */

export type Option = {
  /** Without leading dashes. */
  readonly name: string;
  readonly short?: string;
  /** The placeholder of its value in a usage line; default: none, a flag. */
  readonly value?: string;
  readonly isRequired?: boolean;
  readonly isMultiple?: boolean;
  /** First words of the command with which the option is valid; default: all. */
  readonly only?: readonly string[];
  /** The only valid values. */
  readonly choices?: readonly string[];
  readonly about: string;
  /** The default. */
  readonly usual?: string;
};

export type CommandSpec = {
  readonly summary: string;
  /** Positional arguments: "KIND [NAME]". */
  readonly words: string;
  /** Valid values of the first positional argument, if it is a closed list. */
  readonly choices?: readonly string[];
  readonly options: readonly Option[];
  /** What the exit codes mean for this command, beyond the common ones. */
  readonly exits?: string;
  readonly examples?: readonly string[];
};

/** Lists that `get` can print, by their names in the API. */
export const kinds = ["backends", "watches", "clients", "leases", "certificates", "incidents"] as const;
export type Kind = (typeof kinds)[number];

export const shells = ["bash", "zsh", "fish"] as const;

const admin: Option = {
  name: "admin",
  value: "ADDRESS",
  about: "address of the JSON API: host:port or a URL",
  usual: "$WATCHKEEPER_ADMIN, or 127.0.0.1:7480",
};
const tokenFile: Option = {
  name: "token-file",
  value: "FILE",
  about: "bearer token, for an API with authorization",
  usual: "$WATCHKEEPER_TOKEN_FILE, or none",
};
const caFile: Option = {
  name: "ca-file",
  value: "FILE",
  about: "CA bundle that verifies an https:// ADDRESS",
  usual: "$WATCHKEEPER_CA_FILE, or the system's CAs",
};
/** How to reach the API. */
const reach = [admin, tokenFile, caFile] as const;
const formats = ["table", "wide", "json"] as const;
const output: Option = {
  name: "output",
  short: "o",
  value: "FORMAT",
  choices: formats,
  about: "table, wide or json",
  usual: "table",
};
const reason: Option = {
  name: "reason",
  value: "TEXT",
  about: "reason to log",
  usual: "none",
};
const plainOutput: Option = {
  ...output,
  choices: ["table", "json"],
  about: "table or json",
};

const configOption: Option = {
  name: "config",
  short: "c",
  value: "FILE",
  isRequired: true,
  about: "the configuration file",
};

export const commands = {
  demo: {
    summary: "demonstrate it with embedded apiservers, no cluster needed",
    words: "",
    options: [
      {
        name: "port",
        value: "N",
        about: "port of the demo's proxy",
        usual: "8443, or any free port",
      },
      { name: "once", about: "exit after the last act" },
      {
        name: "faults",
        value: "LIST",
        about: "faults to play, separated by commas: hole, freeze, restart, or none",
        usual: "all",
      },
    ],
    exits: "1: it could not be played, or a fault affected watchkeeper's client",
  },
  incident: {
    summary: "play one of five incidents, without watchkeeper and with it",
    words: "000|001|002|003|004",
    choices: ["000", "001", "002", "003", "004"],
    options: [],
    exits: "1: an expectation failed with watchkeeper, or it could not be played",
    examples: ["watchkeeper incident 004"],
  },
  run: {
    summary: "serve with a configuration file",
    words: "",
    options: [
      configOption,
      { name: "pid-file", value: "FILE", about: "file for the process ID", usual: "none" },
    ],
    exits: "1: it ended because of an internal error",
  },
  sidecar: {
    summary: "serve one pod, without a configuration",
    words: "",
    options: [
      { name: "print-config", about: "print its configuration and exit" },
      { name: "port", value: "N", about: "port to listen on", usual: "7443" },
      { name: "metrics-port", value: "N", about: "port of metrics and probes", usual: "7481" },
      {
        name: "direct",
        value: "DIR",
        about: "directory of the projected token and CA",
        usual: "/var/run/secrets/watchkeeper",
      },
      {
        name: "shared",
        value: "DIR",
        about: "directory where clients look for token and CA",
        usual: "/var/run/secrets/kubernetes.io/serviceaccount",
      },
      {
        name: "state",
        value: "DIR",
        about: "directory of files that survive a restart",
        usual: "/var/run/watchkeeper",
      },
    ],
    exits: "1: it ended because of an internal error",
  },
  manifest: {
    summary: "print Kubernetes manifests: a static pod, a deployment, or a workload with a sidecar in it",
    words: "static-pod|deployment|sidecar",
    choices: ["static-pod", "deployment", "sidecar"],
    options: [
      { name: "image", value: "IMAGE", about: "image of watchkeeper", usual: "watchkeeper:VERSION" },
      {
        name: "file",
        short: "f",
        value: "FILE",
        only: ["sidecar"],
        about: "the workload's YAML; - is stdin",
        usual: "none; required for sidecar",
      },
      {
        name: "port",
        value: "N",
        only: ["static-pod", "sidecar"],
        about: "port to listen on",
        usual: "8443, or 7443 for a sidecar",
      },
      {
        name: "metrics-port",
        value: "N",
        only: ["static-pod", "sidecar"],
        about: "port of metrics and probes",
        usual: "7481",
      },
      {
        name: "print-config",
        only: ["static-pod"],
        about: "print the configuration file for the node instead of the pod",
      },
      {
        name: "backend",
        value: "NAME=URL",
        isMultiple: true,
        only: ["static-pod"],
        about: "a kube-apiserver for the configuration",
      },
      { name: "passthrough", only: ["static-pod"], about: "leave TLS to the apiservers; needs no key" },
      {
        name: "namespace",
        value: "NAME",
        only: ["deployment"],
        about: "its namespace",
        usual: "watchkeeper",
      },
      {
        name: "replicas",
        value: "N",
        only: ["deployment"],
        about: "number of replicas, from 2 to 50",
        usual: "2",
      },
    ],
    exits: "1: the workload cannot have a sidecar",
    examples: [
      "watchkeeper manifest static-pod --print-config --backend cp-1=https://10.0.0.11:6443 > watchkeeper.yaml",
      "watchkeeper manifest static-pod --image registry.example.com/watchkeeper:0.1.0 > /etc/kubernetes/manifests/watchkeeper.yaml",
      "watchkeeper manifest deployment | kubectl apply -f -",
      "watchkeeper manifest sidecar -f app.yaml | kubectl apply -f -",
    ],
  },
  import: {
    summary: "print a configuration with the backends of a haproxy.cfg or an envoy.yaml",
    words: "FILE",
    options: [
      {
        name: "from",
        value: "NAME",
        about: "backend or cluster of the file to import",
        usual: "the only one, or the only one whose servers have port 6443",
      },
    ],
    exits: "1: it has no backends that can be imported",
    examples: ["watchkeeper import /etc/haproxy/haproxy.cfg > watchkeeper.yaml"],
  },
  try: {
    summary: "serve the current kubectl context on this machine",
    words: "",
    options: [
      {
        name: "kubeconfig",
        value: "FILE",
        about: "kubeconfig file",
        usual: "as kubectl finds it",
      },
      { name: "context", value: "NAME", about: "context to use", usual: "the current one" },
      { name: "port", value: "N", about: "port to listen on", usual: "7443, or any free port" },
      { name: "discover", about: "discover the apiservers behind the server's address" },
    ],
    exits: "1: it could not serve",
  },
  check: {
    summary: "check whether a configuration would work",
    words: "",
    options: [configOption, { name: "offline", about: "connect to no backend" }],
    exits: "1: a check failed",
  },
  config: {
    summary: "print a commented configuration to start from",
    words: "",
    options: [
      {
        name: "convert",
        value: "FILE",
        about: "print this v1alpha1 configuration as v1alpha2 instead",
        usual: "a sample is printed",
      },
    ],
    exits: "1: the converted configuration is not valid",
    examples: ["watchkeeper config --convert watchkeeper.yaml > converted.yaml"],
  },
  pki: {
    summary: "make certificates, or a certificate signing request",
    words: "init|csr",
    choices: ["init", "csr"],
    options: [
      { name: "dir", value: "DIR", about: "output directory", usual: "pki" },
      {
        name: "host",
        value: "NAME",
        isMultiple: true,
        about: "DNS name or address of the proxy for the certificate",
      },
      {
        name: "signer",
        value: "NAME",
        only: ["csr"],
        about: "Kubernetes signer",
        usual: "none; required for csr",
      },
      { name: "name", value: "NAME", about: "common name of the certificate", usual: "watchkeeper" },
    ],
    exits: "1: nothing was written",
  },
  status: {
    summary: "print backends, watches and active incidents on one screen",
    words: "",
    options: [...reach, plainOutput],
    exits: "1: an incident is active, or no backend is ready",
  },
  get: {
    summary: "list backends, watches, clients, leases, certificates, incidents",
    words: "KIND [NAME] [COLUMN=VALUE]...",
    choices: kinds,
    options: [
      ...reach,
      output,
      {
        name: "query",
        short: "q",
        value: "TEXT",
        about: "only rows with this text in a column",
        usual: "all",
      },
      {
        name: "sort",
        value: "COLUMN",
        about: 'column to sort by; "-" first: descending (--sort=-bytes)',
        usual: "see docs/admin-api.md",
      },
      { name: "limit", value: "N", about: "maximum number of rows, up to 50000", usual: "100" },
      { name: "no-headers", about: "omit the header" },
    ],
    exits: "1: there is no row of that NAME",
    examples: [
      "watchkeeper get watches backend=cp-2 state=hung",
      "watchkeeper get clients --sort=-relists --limit 10",
      "watchkeeper get leases -o json | jq '.items[] | select(.verdict != \"ok\")'",
    ],
  },
  explain: {
    summary: "print the evidence and the effect of an incident",
    words: "[INCIDENT]",
    options: [...reach, plainOutput],
    exits: "1: there is no such incident",
    examples: ["watchkeeper explain 42", "watchkeeper explain"],
  },
  top: {
    summary: "print the busiest watches or clients, updated continuously",
    words: "[watches|clients]",
    choices: ["watches", "clients"],
    options: [
      ...reach,
      plainOutput,
      { name: "once", about: "measure once and exit" },
      { name: "interval", value: "SECONDS", about: "interval between updates, from 1 to 60", usual: "2" },
      { name: "rows", value: "N", about: "maximum number of rows, up to 500", usual: "20" },
    ],
  },
  tap: {
    summary: "print events as they happen",
    words: "[KIND]",
    options: [
      ...reach,
      plainOutput,
      { name: "for", value: "SECONDS", about: "exit after this time, up to 86400", usual: "until a signal" },
    ],
    examples: [
      "watchkeeper tap",
      "watchkeeper tap backend. --for 60",
      "watchkeeper tap request. -o json | jq .path",
    ],
  },
  drain: {
    summary: "stop new requests to a backend, move its watches gradually, keep exec sessions",
    words: "BACKEND",
    options: [...reach, reason],
    exits: "1: there is no such backend, or no other one is ready",
    examples: ["watchkeeper drain cp-2 --reason 'kernel update'", "watchkeeper undrain cp-2"],
  },
  undrain: {
    summary: "end the drain of a backend",
    words: "BACKEND",
    options: [...reach, reason],
    exits: "1: there is no such backend",
  },
  move: {
    summary: "move one watch to another backend, transparently to its client",
    words: "AUDIT-ID",
    options: [...reach, reason],
    exits: "1: there is no such watch, or it cannot be moved now",
  },
  reload: {
    summary: "reload the configuration",
    words: "",
    options: [...reach, reason],
    exits: "1: it was rejected, and the last good one stays",
  },
  bundle: {
    summary: "write the proxy's state to a file, for a bug report",
    words: "",
    options: [
      ...reach,
      {
        name: "to",
        value: "PATH",
        about: "a .tar file, or a new directory",
        usual: "watchkeeper-TIME.tar",
      },
      { name: "metrics", value: "ADDRESS", about: "address of the metrics", usual: "127.0.0.1:7481" },
      { name: "names", about: "keep names and addresses; default: redacted" },
    ],
    exits: "1: it was not written",
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

/** In the order of the table. */
export const allCommands: readonly (readonly [name: CommandName, spec: CommandSpec])[] = Object.keys(commands)
  .filter(isCommand)
  .map((name) => [name, commands[name]]);

export function isCommand(name: string): name is CommandName {
  return Object.hasOwn(commands, name);
}
