/**
 * Faults in which users the admin API admits (`admin.authorization`), and how often the proxy asks a cluster about
 * them.
 */
import { type Defect, defect } from "../defect.ts";

const file = "ops/admin/authorization/authorization.ts";
const seen = (fails: string): readonly [string, string] => ["ops/admin/authorization/authorization", fails];

const verified = (name: string): readonly [string, string] => [
  "flows/server-verification",
  `${name}: a server of a foreign CA`,
];

export const operator: readonly Defect[] = [
  defect(
    "a worker that drains because of a fault is replaced only after its drain",
    {
      file: "fleet/workers/worker-pool.ts",
      find: 'if (message.kind === "leaving") this.#replace(worker);',
      replace: "",
    },
    ["fleet/workers/worker-pool", "a worker that drains because of a fault is replaced at once"],
  ),
  defect(
    "any number of workers drain because of faults",
    { file: "fleet/workers/worker-pool.ts", find: "      oldest.end(reason);\n", replace: "" },
    ["fleet/workers/worker-pool", "workers that drain because of faults are bounded"],
  ),
  defect(
    "the environment decides whether backends are verified",
    { file: "upstream/net/connect.ts", find: "    rejectUnauthorized: true,\n", replace: "" },
    verified("upstream connection"),
  ),
  defect(
    "the environment decides whether discovery, reviews and replicas verify their server",
    {
      file: "ops/http/http-client.ts",
      find: "rejectUnauthorized: options.rejectUnauthorized !== false,",
      replace: 'rejectUnauthorized: process.env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0",',
    },
    verified("replicas"),
  ),
  defect(
    "a proxy starts although the environment turns off verification",
    {
      file: "ops/cli/commands/environment.ts",
      find: 'env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0"',
      replace: "false",
    },
    ["ops/cli/commands/environment", "turns off TLS verification is refused"],
  ),
  defect(
    "a client fills the log with entries of its own",
    { file: "events/pacer.ts", find: "window.passed < most &&", replace: "window.passed < Infinity ||" },
    ["attacks/whole/log-flood", "200 malformed requests each: 60 log lines at most"],
  ),
  defect(
    "entries that clients cause push out state changes",
    {
      file: "ops/admin/events/event-ring.ts",
      find: "eventKinds[entry.kind].pace !== undefined",
      replace: "false",
    },
    ["ops/admin/events/event-ring", "push out no incident and no state change"],
  ),
  defect(
    "idle sockets end event streams",
    { file: "ops/admin/server/server.ts", find: "!streaming.has(name)", replace: 'name !== ""' },
    ["ops/admin/events/event-stream", "the idle sockets of others end no event stream"],
  ),
  defect(
    "a list shows the values of unknown query keys",
    { file: "kube/query.ts", find: "shownKeys.has(key) ? whole", replace: "!/token/.test(key) ? whole" },
    ["kube/query", "the values of keys that are not Kubernetes' own are hidden"],
  ),
  defect(
    "a rebound web page reads the metrics port",
    {
      file: "ops/admin/server/server.ts",
      find: "options.guard === undefined && isLoopback(options.host)",
      replace: "false",
    },
    ["ops/admin/server/server", "a request for another host gets 421"],
  ),
  defect(
    "a client names its own address in X-Real-IP",
    {
      file: "upstream/context/upstream-fields.ts",
      find: "field.role === role.realIp &&",
      replace: "false &&",
    },
    ["upstream/context/upstream-fields", "X-Real-IP, which kube-apiserver's audit log"],
  ),
  defect(
    "a reader gets steps that it already has",
    { file: "ops/admin/history/history.ts", find: "Math.max(after + 1,", replace: "Math.max(after," },
    ["ops/admin/history/history", "a reader gets only the steps"],
  ),
  defect(
    "the history shows the state at the end of a step only",
    {
      file: "ops/admin/history/history.ts",
      find: "Math.max(worst.get(name) ?? 0, ",
      replace: "Math.max(0, ",
    },
    ["ops/admin/history/history", "a step has the rates"],
  ),
  defect(
    "the history shows the load that only one of several processes causes",
    {
      file: "ops/admin/history/recorded.ts",
      find: "streams + (sums.get(backend) ?? 0)",
      replace: "Math.max(streams, sums.get(backend) ?? 0)",
    },
    ["ops/admin/history/history", "of several processes, the load of a backend is added up"],
  ),
  defect(
    "the second pod of a node reports that the first pod has the API's port",
    { file: "ops/admin/port.ts", find: "isDue && !this.#isExpected(failure)", replace: "isDue" },
    ["ops/admin/port", "and runs on the same node is not reported"],
  ),
  defect(
    "an admin port that moved to a free address still tries the old one",
    { file: "ops/admin/port.ts", find: "this.#cancelRetry();\n    if (was", replace: "if (was" },
    ["ops/admin/port", "no longer tries the old address"],
  ),
  defect(
    "metrics go to a client without a token",
    {
      file: "ops/admin/server/server.ts",
      find: 'path !== "/metrics"',
      replace: 'path !== "/metric"',
    },
    ["ops/admin/server/probe-thread", "with TLS and authorization, metrics need a token"],
  ),
  defect(
    "a renewed certificate of the metrics port is not used",
    {
      file: "ops/admin/server/probe-thread.ts",
      find: 'if (kind === "certificate.loaded")',
      replace: "if (false)",
    },
    ["ops/admin/server/probe-thread", "a renewed certificate is in use"],
  ),
  defect(
    "a stream of events outlives its token",
    { file: "ops/admin/events/event-stream.ts", find: 'permission === "no" || ', replace: "" },
    ["ops/admin/server/guard", "a stream of events ends with its token"],
  ),
  defect(
    "a stream of events lives as long as the cluster cannot be asked",
    {
      file: "ops/admin/events/event-stream.ts",
      find: " || now - allowedAt > adminLimits.accessAllowedMs",
      replace: "",
    },
    ["ops/admin/server/guard", "while the cluster cannot be asked a stream stays"],
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
      file: "ops/admin/server/server.ts",
      find: "if (isRead && isPublic(path))",
      replace: "if (isRead)",
    },
    ["ops/admin/server/guard", "all but the page's own files is asked for with a token"],
  ),
  defect(
    "an answer counts for ever",
    {
      file: "ops/admin/authorization/recent.ts",
      find: "if (kept.until <= this.#parts.clock.now()) return undefined;",
      replace: "",
    },
    ["ops/admin/authorization/recent", "an answer counts for its time"],
  ),
  defect(
    "answers are kept without end",
    {
      file: "base/lru.ts",
      find: "if (this.size <= this.#limit) return this;",
      replace: "if (this.size >= 0) return this;",
    },
    ["ops/admin/authorization/recent", "of too many the one that was asked for longest ago goes"],
  ),
  defect(
    "what is used again is as old as it was",
    { file: "base/lru.ts", find: "    this.delete(key);\n", replace: "" },
    ["base/lru", "setting one again makes it the newest"],
  ),
  defect(
    "a token for another audience is good here",
    {
      file: "ops/admin/authorization/reviews.ts",
      find: "if (audiences.length > 0 && !audiences.some((one) => named.includes(one))) return undefined;",
      replace: "void named;",
    },
    ["ops/admin/authorization/reviews", "a review that does not clearly name a user identifies none"],
  ),
  defect(
    "a loop that stands still is well",
    {
      file: "ops/admin/server/cached-probes.ts",
      find: "const isHung = unansweredMs >= adminLimits.standstillMs;",
      replace: "const isHung = unansweredMs < 0;",
    },
    ["ops/admin/server/cached-probes", "stands still, until it answers"],
  ),
  defect(
    "what the loop has said unasked is forgotten",
    {
      file: "ops/admin/server/cached-probes.ts",
      find: "this.#known[probe] = checks;",
      replace: "void checks;",
    },
    ["ops/admin/server/cached-probes", "what the loop has said unasked"],
  ),
  defect(
    "a socket at the port of probes may ask without end",
    {
      file: "ops/admin/server/server.ts",
      find: "if (count >= adminLimits.adminWaiting) {",
      replace: "if (count < 0) {",
    },
    ["ops/admin/server/connection-limits", "loses the socket"],
  ),
  defect(
    "a page of the API is made in one loop turn",
    {
      file: "ops/admin/http/listing.ts",
      find: "    inSlices(\n      clock,\n      builder.all,\n      (row) => builder.add(row),\n      () => resolve(of(builder)),\n    );",
      replace:
        "    for (const row of builder.all) builder.add(row);\n    resolve(of(builder));\n    void [inSlices, clock];",
    },
    ["ops/admin/http/listing", "no loop turn looks at all rows"],
  ),
  defect(
    "a row that is before the page's last one is dropped",
    {
      file: "ops/admin/http/listing.ts",
      find: "this.#compare(key, this.#last) >= 0",
      replace: "this.#compare(key, this.#last) < 0",
    },
    ["ops/admin/http/listing", "a page of 50,000 rows has the first of them all"],
  ),
  defect(
    "an entry of a backend's history has fields that are not documented",
    {
      file: "ops/admin/api/fields.ts",
      find: "read(row, times).map((one) => viewOf(fields, one, times)),",
      replace: "read(row, times).map((one) => ({ ...one, ...viewOf(fields, one, times) })),",
    },
    ["ops/admin/api/backend-listing", "an entry of the history has the documented fields only"],
  ),
  defect(
    "a label's value ends the label",
    {
      file: "ops/admin/metrics/exposition.ts",
      find: '"\\n": "\\\\n", \'"\': \'\\\\"\'',
      replace: '"\\n": "\\\\n"',
    },
    ["ops/admin/metrics/exposition", "a gauge's labels are escaped"],
  ),
  defect(
    "the log's level is not applied",
    {
      file: "ops/admin/events/log.ts",
      find: "levels.indexOf(level) > levels.indexOf(least) || !isWanted",
      replace: "!isWanted",
    },
    ["ops/admin/events/log", "a level selects its own lines"],
  ),
  defect(
    "each line that stdout takes is followed by a report of dropped lines",
    {
      file: "ops/admin/events/log.ts",
      find: "this.#unreportedDrops === 0 || now - this.#reportedAt < limits.logDropsMs",
      replace: "this.#unreportedDrops === 0",
    },
    ["ops/admin/events/log", "dropped lines are counted, and reported at most once a second"],
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
      file: "ops/admin/tracing/trace-exporter.ts",
      find: 'this.#endpoint === "" || this.#waiting.length >= tracingLimits.waiting',
      replace: 'this.#endpoint === ""',
    },
    ["ops/admin/tracing/trace-exporter", "at most so many traces wait"],
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
      file: "ops/cli/deploy/manifest.ts",
      find: 'options.text("image") ?? releasedImage();',
      replace: 'options.text("image") ?? releasedImage() ?? "watchkeeper:0.1.0";',
    },
    ["processes/cli/deploy/manifest", "without --image, or with one that is no image"],
  ),
  defect(
    "a namespace that YAML reads as a number is printed as one",
    {
      file: "ops/cli/deploy/deployment.ts",
      find: "isPlain ? namespace : JSON.stringify(namespace)",
      replace: "isPlain ? namespace : namespace",
    },
    ["processes/cli/deploy/manifest", "a deployment says which Secret"],
  ),
  defect(
    "a predecessor that has handed over tells systemd that the service stops",
    {
      file: "ops/cli/serve/systemd.ts",
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
      file: "ops/discovery/kubernetes-objects.ts",
      find: "one.createdAt < other.createdAt",
      replace: "one.createdAt > other.createdAt",
    },
    ["ops/discovery/kubernetes-objects", "the oldest are read"],
  ),
  defect(
    "backends of which none answers replace those that do",
    { file: "ops/discovery/discovery.ts", find: "(isInTime || !isAnswering)", replace: "isInTime" },
    ["ops/discovery/discovery", "backends that answer stay while none of the listed ones does"],
  ),
  defect(
    "Leases on the second page are not read",
    {
      file: "ops/discovery/discover.ts",
      find: 'next = read.items.length === 0 ? "" : read.next;',
      replace: 'next = "";',
    },
    ["ops/discovery/account-transport", "Leases are read page by page"],
  ),
  defect(
    "what lies in the way of the pid file stays",
    { file: "ops/cli/serve/run.ts", find: "rmSync(`${file}.new`, { force: true });", replace: "" },
    ["processes/cli/serve/run", "--pid-file: the file has the process id"],
  ),
  defect(
    "the exit removes the pid file of a successor",
    {
      file: "ops/cli/serve/run.ts",
      find: "if (readText(file, 32) === `${process.pid}\\n`) ",
      replace: "void readText;\n  ",
    },
    ["processes/cli/serve/run", "--pid-file: a file with another process id stays"],
  ),
];
