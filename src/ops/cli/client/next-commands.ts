/** The commands that an operator may run next, by the kind of incident. Each command is one line for a shell. */
import { alertOf } from "../../incidents/kinds.ts";
import { runbookPage } from "../../program/docs.ts";
import { type Row, rowsAt, shown, textAt, wordsAt } from "../commands/rows.ts";

/** `ports`: the ports of the listeners of the process that reports the incident; empty: they are not known. */
type Commands = (incident: Row, ports: readonly string[]) => readonly string[];

const byKind: Readonly<Record<string, Commands>> = {
  "backend-frozen": () => [
    "ssh NODE ps -C kube-apiserver -o pid,stat,wchan:20,rss  # of the apiserver; STAT T: kill -CONT PID, D: its disk or memory",
  ],
  "certificate-refused": (incident) => [
    "watchkeeper get certificates -o wide  # LEFT: for how long the last valid certificate can stay in use",
    ...compareFiles(textAt(incident, "summary")),
    "watchkeeper check --config FILE  # reads all files again; FILE: watchkeeper's configuration",
    "# do not restart this watchkeeper: only its memory has the last valid certificate",
  ],
  "certificate-expiring": certificateCommands,
  "certificate-expired": certificateCommands,
  "loopback-certificate-expiring": (incident) => [
    "watchkeeper get certificates purpose=backend-loopback -o wide  # NOT-AFTER, where watchkeeper can see it",
    "watchkeeper get backends  # before the drain, another apiserver must be ready",
    `watchkeeper drain ${nameIn(textAt(incident, "backend"))}  # on every instance; then restart this kube-apiserver, then undrain`,
  ],
  "watch-replay-loop": originCommands,
  "lease-ghost-holder": (incident, ports) => [...leaseCommands(incident, ports), ...endGhost(incident)],
  "lease-contested": leaseCommands,
  "lease-unknown-client": leaseCommands,
};

export function nextCommands(incident: Row, ports: readonly string[]): string {
  const kind = textAt(incident, "kind");
  const backend = textAt(incident, "backend");
  const audit = rowsAt(incident, "evidence")
    .map((row) => textAt(row, "auditId"))
    .findLast((id) => id !== "");
  const alert = alertOf(kind);
  return [
    "NEXT",
    ...(alert === undefined ? [] : [`${runbookPage(alert)}  # prints the runbook`]),
    ...(Object.hasOwn(byKind, kind) ? (byKind[kind]?.(incident, ports) ?? []) : []),
    ...(backend === "" ? [] : [`watchkeeper get backends ${nameIn(backend)} -o wide  # STATE and REASON`]),
    ...(audit === undefined ? [] : [`grep ${nameIn(audit)} audit.log  # of the apiserver`]),
    `watchkeeper_incident_active{kind="${shown(kind)}"}  # in Prometheus: the instances that report it`,
    "",
  ].join("\n");
}

function certificateCommands(incident: Row): readonly string[] {
  // An example of the subject is "serving kube" or, with several clusters, "eu: serving kube".
  const [, purpose = "", name = ""] = /^(?:\S+: )?(\S+) (.*)$/.exec(textAt(incident, "subject")) ?? [];
  return [`watchkeeper get certificates purpose=${nameIn(purpose)} ${nameIn(name)} -o wide`];
}

/**
 * Returns commands that show a certificate and its key. `summary`: the incident's summary, which contains both paths:
 * `kube: Cannot use "/etc/tls.crt" with "/etc/tls.key": ...`.
 */
function compareFiles(summary: string): readonly string[] {
  const [, certificate, key] = /"([^"]+)" with "([^"]+)"/.exec(summary) ?? [];
  if (certificate === undefined || key === undefined) return [];
  return [
    `openssl x509 -noout -subject -dates -pubkey -in ${nameIn(certificate)}`,
    `openssl pkey -pubout -in ${nameIn(key)}  # the same PUBLIC KEY if they are a pair`,
  ];
}

function leaseCommands(incident: Row, ports: readonly string[]): readonly string[] {
  const name = textAt(incident, "subject").split("/").at(-1) ?? "";
  return [`watchkeeper get leases ${nameIn(name)} -o wide`, ...originCommands(incident, ports)];
}

/**
 * Returns the command that ends the process that wrongly renews the lease, if the latest evidence names its pod.
 * Clients choose the names in the evidence, so the command is printed only with names that Kubernetes permits: they
 * contain no character that is special to a shell. `crictl pods` takes names as regular expressions, so the command
 * puts a name between `^` and `$`: otherwise the command for cart-1 would also match cart-10.
 */
function endGhost(incident: Row): readonly string[] {
  const reason = textAt(rowsAt(incident, "evidence").at(-1) ?? {}, "text");
  const deleted = /^Pod ([a-z0-9][a-z0-9-]*)\/([a-z0-9][a-z0-9.-]*) was deleted /.exec(reason);
  if (deleted !== null)
    return [
      `ssh NODE 'crictl stop $(crictl ps -q --pod $(crictl pods -q --namespace "^${deleted[1]}$" --name "^${deleted[2]}$"))'  # ends the process; NODE: the host of the address above`,
    ];
  const renewing = / token of pod ([a-z0-9][a-z0-9-]*)\/([a-z0-9][a-z0-9.-]*) from \S+$/.exec(reason);
  if (renewing === null) return [];
  return [
    `kubectl delete pod -n ${renewing[1]} ${renewing[2]}  # ends the process that renews; its controller starts another`,
  ];
}

/** Maximum number of client addresses for which commands are printed, so that the commands fit on one screen. */
const mostAddresses = 3;

/** Returns commands that find the process, pod or node of each client that caused the incident. */
function originCommands(incident: Row, ports: readonly string[]): readonly string[] {
  const addresses = wordsAt(incident, "causedBy.names").map((name) => name.split(" ")[0] ?? "");
  return [...new Set(addresses)]
    .slice(0, mostAddresses)
    .map((address) =>
      /^127\.|^::1$/.test(address)
        ? `ss -tnp ${nameIn(`src ${address === "::1" ? "[::1]" : address} and ${portFilter(ports)}`)}  # loopback: a process of this instance's host or pod; run it there as root`
        : `kubectl get nodes,pods -A -o wide | grep -wF ${nameIn(address)}`,
    );
}

/** Returns the part of a filter of `ss` that selects connections to these ports. */
function portFilter(ports: readonly string[]): string {
  const filters = (ports.length === 0 ? ["PORT"] : ports).map((port) => `dport = :${port}`);
  return filters.length === 1 ? filters.join("") : `( ${filters.join(" or ")} )`;
}

/** Returns a name, in quotes if a shell would otherwise split or interpret it. */
export function nameIn(text: string): string {
  const plain = shown(text);
  return /^[\w./:@-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", "'\\''")}'`;
}
