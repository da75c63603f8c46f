/**
 * Faults in which users the admin API admits (`admin.authorization`), and how often the proxy asks a cluster about
 * them.
 */
import { type Defect, defect } from "../defect.ts";

const file = "admin/authorization/authorization.ts";
const seen = (fails: string): readonly [string, string] => ["admin/authorization/authorization", fails];

const verified = (name: string): readonly [string, string] => [
  "flows/server-verification",
  `${name}: a server of a foreign CA`,
];

export const operator: readonly Defect[] = [
  defect(
    "a worker that drains because of a fault is replaced only after its drain",
    {
      file: "workers/worker-pool.ts",
      find: 'if (message.kind === "leaving") this.#replace(worker);',
      replace: "",
    },
    ["workers/worker-pool", "a worker that drains because of a fault is replaced at once"],
  ),
  defect(
    "any number of workers drain because of faults",
    { file: "workers/worker-pool.ts", find: "      oldest.end(reason);\n", replace: "" },
    ["workers/worker-pool", "workers that drain because of faults are bounded"],
  ),
  defect(
    "the environment decides whether backends are verified",
    { file: "proxy/net/connect.ts", find: "    rejectUnauthorized: true,\n", replace: "" },
    verified("upstream connection"),
  ),
  defect(
    "the environment decides whether discovery, reviews and replicas verify their server",
    {
      file: "http/http-client.ts",
      find: "rejectUnauthorized: options.rejectUnauthorized !== false,",
      replace: 'rejectUnauthorized: process.env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0",',
    },
    verified("replicas"),
  ),
  defect(
    "a proxy starts although the environment turns off verification",
    {
      file: "cli/commands/environment.ts",
      find: 'env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0"',
      replace: "false",
    },
    ["cli/commands/environment", "turns off TLS verification is refused"],
  ),
  defect(
    "a client fills the log with entries of its own",
    { file: "events/pacer.ts", find: "window.passed < most &&", replace: "window.passed < Infinity ||" },
    ["attacks/whole/log-flood", "200 malformed requests each: 60 log lines at most"],
  ),
  defect(
    "entries that clients cause push out state changes",
    {
      file: "admin/events/event-ring.ts",
      find: "eventKinds[entry.kind].pace !== undefined",
      replace: "false",
    },
    ["admin/events/event-ring", "push out no incident and no state change"],
  ),
  defect(
    "idle sockets end event streams",
    { file: "admin/server/server.ts", find: "!streaming.has(name)", replace: 'name !== ""' },
    ["admin/events/event-stream", "the idle sockets of others end no event stream"],
  ),
  defect(
    "a list shows the values of unknown query keys",
    { file: "kube/query.ts", find: "shownKeys.has(key) ? whole", replace: "!/token/.test(key) ? whole" },
    ["kube/query", "the values of keys that are not Kubernetes' own are hidden"],
  ),
  defect(
    "a rebound web page reads the metrics port",
    {
      file: "admin/server/server.ts",
      find: "options.guard === undefined && isLoopback(options.host)",
      replace: "false",
    },
    ["admin/server/server", "a request for another host gets 421"],
  ),
  defect(
    "a client names its own address in X-Real-IP",
    { file: "proxy/context/upstream-fields.ts", find: "field.role === role.realIp &&", replace: "false &&" },
    ["proxy/context/upstream-fields", "X-Real-IP, which kube-apiserver's audit log"],
  ),
  defect(
    "a reader gets steps that it already has",
    { file: "admin/history/history.ts", find: "Math.max(after + 1,", replace: "Math.max(after," },
    ["admin/history/history", "a reader gets only the steps"],
  ),
  defect(
    "the history shows the state at the end of a step only",
    { file: "admin/history/history.ts", find: "Math.max(worst.get(name) ?? 0, ", replace: "Math.max(0, " },
    ["admin/history/history", "a step has the rates"],
  ),
  defect(
    "the history shows the load that only one of several processes causes",
    {
      file: "admin/history/recorded.ts",
      find: "streams + (sums.get(backend) ?? 0)",
      replace: "Math.max(streams, sums.get(backend) ?? 0)",
    },
    ["admin/history/history", "of several processes, the load of a backend is added up"],
  ),
  defect(
    "the second pod of a node reports that the first pod has the API's port",
    { file: "admin/port.ts", find: "isDue && !this.#isExpected(failure)", replace: "isDue" },
    ["admin/port", "and runs on the same node is not reported"],
  ),
  defect(
    "an admin port that moved to a free address still tries the old one",
    { file: "admin/port.ts", find: "this.#cancelRetry();\n    if (was", replace: "if (was" },
    ["admin/port", "no longer tries the old address"],
  ),
  defect(
    "metrics go to a client without a token",
    {
      file: "admin/server/server.ts",
      find: 'path !== "/metrics"',
      replace: 'path !== "/metric"',
    },
    ["admin/server/probe-thread", "with TLS and authorization, metrics need a token"],
  ),
  defect(
    "a renewed certificate of the metrics port is not used",
    {
      file: "admin/server/probe-thread.ts",
      find: 'if (kind === "certificate.loaded")',
      replace: "if (false)",
    },
    ["admin/server/probe-thread", "a renewed certificate is in use"],
  ),
  defect(
    "a stream of events outlives its token",
    { file: "admin/events/event-stream.ts", find: 'permission === "no" || ', replace: "" },
    ["admin/server/guard", "a stream of events ends with its token"],
  ),
  defect(
    "a stream of events lives as long as the cluster cannot be asked",
    {
      file: "admin/events/event-stream.ts",
      find: " || now - allowedAt > adminLimits.accessAllowedMs",
      replace: "",
    },
    ["admin/server/guard", "while the cluster cannot be asked a stream stays"],
  ),
  defect(
    "an apiserver beside the proxy is taken for the proxy's own listener",
    {
      file: "proxy/cluster/backend-set.ts",
      find: "if (!overlaps(address, found)) return false;",
      replace: "if (address.port !== found.port) return false;\n    if (isThisHost(found.host)) return true;",
    },
    ["proxy/cluster/backend-set", "the proxy's own listener is no backend, whichever source lists it"],
  ),
  defect(
    "an authenticated user may do anything",
    {
      file,
      find: "if (access.isAllowed) return { username: user.username };",
      replace: "return { username: user.username };\n    // oxlint-disable-next-line no-unreachable",
    },
    seen("a user that may read and not change gets a 403"),
  ),
  defect(
    "one path's answer is good for all",
    { file, find: "JSON.stringify([user, verb, path])", replace: "JSON.stringify([user])" },
    seen("says nothing of another verb, path or user"),
  ),
  defect(
    "one address may guess as often as it likes",
    {
      file,
      find: "await limited(this.#reviewsByAddress, address, limits.tokenReviewsPerAddress, ask);",
      replace: "await ask();",
    },
    seen("a client that guesses tokens keeps no other client out"),
  ),
  defect(
    "one user may ask for as many paths as there are",
    {
      file,
      find: "await limited(this.#reviewsByUser, username, limits.reviewsAtOnce / 2, ask);",
      replace: "await ask();",
    },
    seen("a client that asks for one path after another keeps no other client out"),
  ),
  defect(
    "a cluster is asked as often as clients ask",
    { file, find: "if (this.#openReviews[kind] >= limits.reviewsAtOnce) return tooMany();", replace: "" },
    seen("no more than so many are asked about at once"),
  ),
  defect(
    "tokens are kept as they came",
    { file, find: 'createHmac("sha256", this.#salt).update(text).digest("base64")', replace: "text" },
    seen("no token is in memory as it came"),
  ),
  defect(
    "whatever is read is for everybody",
    {
      file: "admin/server/server.ts",
      find: "if (isRead && isPublic(path))",
      replace: "if (isRead)",
    },
    ["admin/server/guard", "all but the page's own files is asked for with a token"],
  ),
  defect(
    "an answer counts for ever",
    {
      file: "admin/authorization/recent.ts",
      find: "if (kept.until <= this.#parts.clock.now()) return undefined;",
      replace: "",
    },
    ["admin/authorization/recent", "an answer counts for its time"],
  ),
  defect(
    "answers are kept without end",
    {
      file: "base/lru.ts",
      find: "if (this.size <= this.#limit) return this;",
      replace: "if (this.size >= 0) return this;",
    },
    ["admin/authorization/recent", "of too many the one that was asked for longest ago goes"],
  ),
  defect(
    "what is used again is as old as it was",
    { file: "base/lru.ts", find: "    this.delete(key);\n", replace: "" },
    ["base/lru", "setting one again makes it the newest"],
  ),
  defect(
    "a token for another audience is good here",
    {
      file: "admin/authorization/reviews.ts",
      find: "if (audiences.length > 0 && !audiences.some((one) => named.includes(one))) return undefined;",
      replace: "void named;",
    },
    ["admin/authorization/reviews", "a review that does not clearly name a user identifies none"],
  ),
  defect(
    "a loop that stands still is well",
    {
      file: "admin/server/cached-probes.ts",
      find: "const isHung = unansweredMs >= adminLimits.standstillMs;",
      replace: "const isHung = unansweredMs < 0;",
    },
    ["admin/server/cached-probes", "stands still, until it answers"],
  ),
  defect(
    "what the loop has said unasked is forgotten",
    { file: "admin/server/cached-probes.ts", find: "this.#known[probe] = checks;", replace: "void checks;" },
    ["admin/server/cached-probes", "what the loop has said unasked"],
  ),
  defect(
    "a socket at the port of probes may ask without end",
    {
      file: "admin/server/server.ts",
      find: "if (count >= adminLimits.adminWaiting) {",
      replace: "if (count < 0) {",
    },
    ["admin/server/connection-limits", "loses the socket"],
  ),
  defect(
    "a page of the API is made in one loop turn",
    {
      file: "admin/http/listing.ts",
      find: "    inSlices(\n      clock,\n      builder.all,\n      (row) => builder.add(row),\n      () => resolve(of(builder)),\n    );",
      replace:
        "    for (const row of builder.all) builder.add(row);\n    resolve(of(builder));\n    void [inSlices, clock];",
    },
    ["admin/http/listing", "no loop turn looks at all rows"],
  ),
  defect(
    "a row that is before the page's last one is dropped",
    {
      file: "admin/http/listing.ts",
      find: "this.#compare(key, this.#last) >= 0",
      replace: "this.#compare(key, this.#last) < 0",
    },
    ["admin/http/listing", "a page of 50,000 rows has the first of them all"],
  ),
  defect(
    "an entry of a backend's history has fields that are not documented",
    {
      file: "admin/api/fields.ts",
      find: "read(row, times).map((one) => viewOf(fields, one, times)),",
      replace: "read(row, times).map((one) => ({ ...one, ...viewOf(fields, one, times) })),",
    },
    ["admin/api/backend-listing", "an entry of the history has the documented fields only"],
  ),
  defect(
    "a label's value ends the label",
    {
      file: "admin/metrics/exposition.ts",
      find: '"\\n": "\\\\n", \'"\': \'\\\\"\'',
      replace: '"\\n": "\\\\n"',
    },
    ["admin/metrics/exposition", "a gauge's labels are escaped"],
  ),
  defect(
    "the log's level is not applied",
    {
      file: "admin/events/log.ts",
      find: "levels.indexOf(level) > levels.indexOf(least) || !isWanted",
      replace: "!isWanted",
    },
    ["admin/events/log", "a level selects its own lines"],
  ),
  defect(
    "each line that stdout takes is followed by a report of dropped lines",
    {
      file: "admin/events/log.ts",
      find: "this.#unreportedDrops === 0 || now - this.#reportedAt < limits.logDropsMs",
      replace: "this.#unreportedDrops === 0",
    },
    ["admin/events/log", "dropped lines are counted, and reported at most once a second"],
  ),
  defect(
    "a refused request is journaled with its query",
    {
      file: "proxy/request/request-names.ts",
      find: 'clipped(target.split("?", 1)[0] ?? "", limits.apiTextChars)',
      replace: "clipped(target, limits.apiTextChars)",
    },
    ["proxy/request/access-log", "no token, query or body"],
  ),
  defect(
    "traces wait without a limit while the collector is silent",
    {
      file: "admin/tracing/trace-exporter.ts",
      find: 'this.#endpoint === "" || this.#waiting.length >= tracingLimits.waiting',
      replace: 'this.#endpoint === ""',
    },
    ["admin/tracing/trace-exporter", "at most so many traces wait"],
  ),
  defect(
    "the query of a request is in its trace",
    {
      file: "proxy/request/request-names.ts",
      find: 'clipped(target.split("?", 1)[0] ?? ""',
      replace: "clipped(target",
    },
    ["proxy/observe/tracer", "the facts without the query"],
  ),
  defect(
    "a request is traced although its client has decided against it",
    { file: "proxy/observe/tracer.ts", find: ": !parent.isSampled", replace: ": false" },
    ["proxy/observe/tracer", "the client's decision comes before the share"],
  ),
  defect(
    "the time at the backend counts as the proxy's own",
    {
      file: "proxy/request/exchange.ts",
      find: 'overhead.forwarded("response", now,',
      replace: 'overhead.forwarded("response", this.context.at,',
    },
    ["proxy/observe/overhead", "the time at the backend does not count"],
  ),
  defect(
    "a manifest is printed with the name of an image that no registry has",
    {
      file: "cli/deploy/manifest.ts",
      find: 'options.text("image") ?? releasedImage();',
      replace: 'options.text("image") ?? releasedImage() ?? "watchkeeper:0.1.0";',
    },
    ["processes/cli/deploy/manifest", "without --image, or with one that is no image"],
  ),
  defect(
    "a namespace that YAML reads as a number is printed as one",
    {
      file: "cli/deploy/deployment.ts",
      find: "isPlain ? namespace : JSON.stringify(namespace)",
      replace: "isPlain ? namespace : namespace",
    },
    ["processes/cli/deploy/manifest", "a deployment says which Secret"],
  ),
  defect(
    "a predecessor that has handed over tells systemd that the service stops",
    {
      file: "cli/serve/systemd.ts",
      find: 'if (!isHandedOver) this.#tell("STOPPING=1");',
      replace: 'void isHandedOver;\n    this.#tell("STOPPING=1");',
    },
    ["processes/cli/serve/handover", "systemd is told of the start"],
  ),
  defect(
    "a handover directory that is not used is no warning",
    {
      file: "events/event-kinds.ts",
      find: '"peer_sockets.failed": { level: "Warning", error: "reason" }',
      replace: '"peer_sockets.failed": info',
    },
    ["flows/peer-sockets", "a warning names it and the reason"],
  ),
  defect(
    "of too many Leases the newest are taken, which any client may have created",
    {
      file: "discovery/kubernetes-objects.ts",
      find: "one.createdAt < other.createdAt",
      replace: "one.createdAt > other.createdAt",
    },
    ["discovery/kubernetes-objects", "the oldest are read"],
  ),
  defect(
    "backends of which none answers replace those that do",
    { file: "discovery/discovery.ts", find: "(isInTime || !isAnswering)", replace: "isInTime" },
    ["discovery/discovery", "backends that answer stay while none of the listed ones does"],
  ),
  defect(
    "Leases on the second page are not read",
    {
      file: "discovery/discover.ts",
      find: 'next = read.items.length === 0 ? "" : read.next;',
      replace: 'next = "";',
    },
    ["discovery/account-transport", "Leases are read page by page"],
  ),
  defect(
    "what lies in the way of the pid file stays",
    { file: "cli/serve/run.ts", find: "rmSync(`${file}.new`, { force: true });", replace: "" },
    ["processes/cli/serve/run", "--pid-file: the file has the process id"],
  ),
  defect(
    "the exit removes the pid file of a successor",
    {
      file: "cli/serve/run.ts",
      find: "if (readText(file, 32) === `${process.pid}\\n`) ",
      replace: "void readText;\n  ",
    },
    ["processes/cli/serve/run", "--pid-file: a file with another process id stays"],
  ),
];
