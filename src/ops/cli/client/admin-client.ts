/** The CLI's client for the JSON API of a running proxy. */
import { StringDecoder } from "node:string_decoder";
import { type Clock, wallClock } from "../../../base/clock.ts";
import { Failure, wordsOf } from "../../../base/failure.ts";
import { parseJson } from "../../../base/json.ts";
import { limits } from "../../../base/limits.ts";
import { readText, readToken } from "../../../base/read-text.ts";
import { adminLimits } from "../../admin/http/limits.ts";
import { isLocalHost } from "../../admin/http/local-host.ts";
import { quote } from "../../config/problem.ts";
import { type Bounds, type HttpRequest, sendRequest } from "../../http/http-client.ts";
import type { CommandName } from "../commands/commands.ts";
import { type Given, given, usage } from "../commands/options.ts";
import { listOf, numberAt, type Row, type RowList, rowOf, textAt } from "../commands/rows.ts";
import { failed, type Screen, standardScreen } from "../commands/screen.ts";

const usualAddress = "127.0.0.1:7480";
const usualMetrics = "127.0.0.1:7481";
const requestTimeoutMs = 10_000;
/** Maximum size of a response in bytes. The largest page is smaller: 500 rows of 2 KiB each make about 1 MiB. */
export const responseBytes = 16 * 1024 * 1024;

/** Files with the bearer token and the CA bundle for the API; "" or undefined: no such file. */
export type AccessFiles = { readonly token?: string | undefined; readonly ca?: string | undefined };

/** Milliseconds without a byte after which an event stream counts as lost: the time of three heartbeats. */
const streamSilentMs = 3 * adminLimits.eventBeatMs;

type Access = { readonly token?: string | undefined; readonly ca?: string | undefined };

/**
 * A replica. `row`: its row in the list of replicas. `client`: a client of the replica's API, or a Failure that says
 * why that API cannot be reached.
 */
export type ReplicaClient = {
  readonly name: string;
  readonly row: Row;
  readonly client: AdminClient | Failure;
};

export class AdminClient {
  readonly #origin: URL;
  readonly #access: Access;
  /** Path prefix after /api/v1/ that makes `#origin` forward requests to a replica; "": `#origin` itself answers. */
  readonly #prefix: string;

  private constructor(origin: URL, access: Access, prefix = "") {
    this.#origin = origin;
    this.#access = access;
    this.#prefix = prefix;
  }

  /**
   * Returns an API client for each replica in the list of the process at `#origin`. That process forwards the requests
   * of these clients to the replicas.
   */
  async replicas(): Promise<readonly ReplicaClient[] | Failure> {
    const list = await this.list("replicas", {}, adminLimits.apiPageMost);
    if (list instanceof Failure) return list;
    return list.items.map((row) => ({ name: textAt(row, "name"), row, client: this.#replica(row) }));
  }

  /** Returns a client for the replica that has this name or address. */
  async replica(name: string): Promise<AdminClient | Failure> {
    const all = await this.replicas();
    if (all instanceof Failure) return all;
    const found =
      all.find((one) => one.name === name) ?? all.find(({ row }) => textAt(row, "address") === name);
    if (found !== undefined) return found.client;
    const names = all.map((one) => one.name).join(", ");
    return new Failure("backend-refused", "client", `There is no replica ${quote(name)}: there is ${names}`);
  }

  #replica(row: Row): AdminClient | Failure {
    if (row["isSelf"] === true) return this;
    const name = textAt(row, "name");
    if (textAt(row, "state") === "live")
      return new AdminClient(this.#origin, this.#access, `replicas/${encodeURIComponent(name)}/`);
    const silentMs = numberAt(row, "answeredAgeMs");
    const since =
      silentMs === undefined ? "never answered" : `not answered for ${Math.round(silentMs / 1000)} s`;
    const reason = textAt(row, "lastError");
    const why = reason === "" ? "" : `: ${reason}`;
    return new Failure("backend-lost", "backend", `Replica ${name} has ${since}${why}`);
  }

  /**
   * Returns a client for the API at `address`, which is "host:port" or a URL. If the address or a file is undefined, an
   * environment variable supplies it.
   */
  static at(
    address: string | undefined,
    env: NodeJS.ProcessEnv,
    files: AccessFiles = {},
  ): AdminClient | Failure {
    const said = (own: string | undefined, name: string): string => own ?? env[name] ?? "";
    const access = accessIn({
      token: said(files.token, "WATCHKEEPER_TOKEN_FILE"),
      ca: said(files.ca, "WATCHKEEPER_CA_FILE"),
    });
    if (access instanceof Failure) return access;
    return AdminClient.#of(said(address, "WATCHKEEPER_ADMIN") || usualAddress, access);
  }

  /** Returns a client for the port that serves metrics and probes. */
  static metricsAt(address: string | undefined): AdminClient | Failure {
    return AdminClient.#of(address ?? usualMetrics);
  }

  static #of(address: string, access: Access = {}): AdminClient | Failure {
    const url = URL.parse(address.includes("://") ? address : `http://${address}`);
    if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== "/")
      return new Failure(
        "bad-request",
        "client",
        `${quote(address)} must be host:port or an http:// or https:// URL`,
      );
    // A token is never sent over plain HTTP to another machine, because it could be read on the network.
    if (access.token !== undefined && url.protocol === "http:" && !isLocalHost(url.host))
      return new Failure(
        "bad-request",
        "client",
        `Cannot send a token to ${quote(address)}: must be an https:// URL`,
      );
    return new AdminClient(url, access);
  }

  get address(): string {
    return this.#origin.host;
  }

  /** Reads one object of the API, such as "stats" or "incidents/42". */
  async one(path: string): Promise<Row | Failure> {
    const answer = await this.#json(`/api/v1/${this.#prefix}${path}`);
    return answer instanceof Failure ? answer : rowOf(answer);
  }

  /**
   * Reads at most `most` rows, page by page. If the list changes between two pages, a row may be missing or appear
   * twice.
   */
  async list(
    name: string,
    query: Readonly<Record<string, string>> | URLSearchParams,
    most: number,
  ): Promise<RowList | Failure> {
    let all: RowList | undefined;
    while (all === undefined || (all.items.length < most && all.items.length < all.matching)) {
      const offset = all?.items.length ?? 0;
      const limit = Math.min(adminLimits.apiPageMost, most - offset);
      const params = new URLSearchParams(query);
      params.set("limit", String(limit));
      params.set("offset", String(offset));
      const answer = await this.#json(`/api/v1/${this.#prefix}${name}?${params.toString()}`);
      if (answer instanceof Failure) return answer;
      const page = listOf(answer);
      all = { ...page, items: [...(all?.items ?? []), ...page.items] };
      if (page.items.length < limit) break;
    }
    return all;
  }

  /** Runs an operation of the API. `by`: the operator's name, in ASCII. */
  async post(path: string, body: object, by: string): Promise<Row | Failure> {
    const text = await this.#ask(`/api/v1/${this.#prefix}${path}`, { text: JSON.stringify(body), by });
    return text instanceof Failure ? text : rowOf(parseJson(text) ?? {});
  }

  /** Reads events until the stream ends or `stop` aborts. Resolves with the reason for the end. */
  async follow(
    path: string,
    { lastId, stop: signal }: { readonly lastId: string; readonly stop: AbortSignal },
    onEvent: (event: ServerSentEvent) => void,
  ): Promise<Failure> {
    const reader = new SseReader();
    const stream = (chunk: Buffer): void => {
      for (const event of reader.push(chunk)) onEvent(event);
    };
    const headers = lastId === "" ? {} : { "last-event-id": lastId };
    const outcome = await this.#send({ path, headers, signal }, { timeoutMs: streamSilentMs, stream });
    return outcome instanceof Failure ? outcome : this.#unreachable("the proxy closed the stream");
  }

  text(path: string): Promise<string | Failure> {
    return this.#ask(path);
  }

  async #json(path: string): Promise<unknown> {
    const text = await this.#ask(path);
    return text instanceof Failure ? text : (parseJson(text) ?? this.#strange());
  }

  #ask(path: string, sent?: { readonly text: string; readonly by: string }): Promise<string | Failure> {
    const bounds = { timeoutMs: requestTimeoutMs };
    if (sent === undefined) return this.#send({ path, headers: {} }, bounds);
    const headers = { "content-type": "application/json", "x-watchkeeper-operator": sent.by };
    return this.#send({ path, headers, body: sent.text }, bounds);
  }

  /** Returns the text of a response with status 200. */
  async #send(request: HttpRequest, bounds: Pick<Bounds, "timeoutMs" | "stream">): Promise<string | Failure> {
    const { token, ca } = this.#access;
    const headers = {
      ...request.headers,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    try {
      const server = { origin: this.#origin.origin, tls: { ca } };
      const { status, bytes } = await sendRequest(
        server,
        { ...request, headers },
        { clock: wallClock, mostBytes: responseBytes, ...bounds },
      );
      return status === 200 ? bytes.toString() : this.#refusal(status, bytes.toString());
    } catch (reason) {
      return this.#unreachable(wordsOf(reason));
    }
  }

  #refusal(status: number, text: string): Failure {
    const body = parseJson(text);
    const message = body === undefined ? "" : rowOf(body)["message"];
    const reason = typeof message === "string" && message !== "" ? message : text.trim().slice(0, 200);
    // Status 502 means that the process at `#origin` forwarded the request, but the replica did not answer.
    const code = status === 400 ? "bad-request" : status === 502 ? "backend-lost" : "backend-refused";
    return new Failure(code, "backend", `${reason || "no reason given"} (${status} from ${this.address})`);
  }

  #unreachable(why: string): Failure {
    const advice = "Is watchkeeper running? Set --admin or WATCHKEEPER_ADMIN to the proxy's admin.address";
    return new Failure(
      "backend-lost",
      "backend",
      `Cannot reach the proxy at ${this.address}: ${why}\n${advice}`,
    );
  }

  #strange(): Failure {
    return new Failure(
      "backend-refused",
      "backend",
      `The server at ${this.address} is not watchkeeper's API`,
    );
  }
}

type ApiCommand = {
  readonly options: Given;
  readonly client: AdminClient;
  readonly screen: Screen;
  readonly clock: Clock;
};

/**
 * Returns a command that uses the API: it parses its arguments, calls `run`, and prints a Failure that `run` returns.
 * With the option --replica, `client` sends its requests to that replica.
 */
export function apiCommand(
  name: CommandName,
  run: (command: ApiCommand) => Promise<number | Failure>,
): (args: readonly string[], screen?: Screen, clock?: Clock) => Promise<number> {
  return async (args, screen = standardScreen, clock = wallClock) => {
    const options = given(name, args);
    if (options instanceof Failure) return failed(options, screen);
    const files = { token: options.text("token-file"), ca: options.text("ca-file") };
    const client = await selected(AdminClient.at(options.text("admin"), screen.env, files), options);
    const outcome = client instanceof Failure ? client : await run({ options, client, screen, clock });
    return outcome instanceof Failure ? failed(outcome, screen) : outcome;
  };
}

async function selected(client: AdminClient | Failure, options: Given): Promise<AdminClient | Failure> {
  const name = options.text("replica");
  if (client instanceof Failure || name === undefined) return client;
  return options.has("all-replicas")
    ? usage("--replica and --all-replicas exclude each other")
    : client.replica(name);
}

function accessIn({ token: tokenFile = "", ca: caFile = "" }: AccessFiles): Access | Failure {
  const token = tokenFile === "" ? undefined : readToken(tokenFile);
  const ca = caFile === "" ? undefined : readText(caFile, limits.certificateBytes);
  if (token instanceof Failure) return new Failure("bad-request", "client", token.message);
  if (ca instanceof Failure) return new Failure("bad-request", "client", `${quote(caFile)} ${ca.message}`);
  return { token, ca };
}

export type ServerSentEvent = { readonly id: string; readonly name: string; readonly data: string };

/** Parses server-sent events (WHATWG HTML §9.2.6), but only the features that the API uses. */
export class SseReader {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  /** Returns the events that `chunk` completes. @throws {Error} if an event exceeds the size limit */
  push(chunk: Buffer): readonly ServerSentEvent[] {
    const blocks = (this.#rest + this.#decoder.write(chunk)).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    if (this.#rest.length > adminLimits.eventBacklogBytes) throw new Error("event too long");
    return blocks.map((block) => eventIn(block)).filter(({ data }) => data !== "");
  }
}

/** Parses one event of a server-sent event stream. Ignores comments and unknown fields. */
function eventIn(block: string): ServerSentEvent {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const mark = line.indexOf(":");
    if (mark > 0) fields.set(line.slice(0, mark), line.slice(mark + 1).replace(/^ /, ""));
  }
  return { id: fields.get("id") ?? "", name: fields.get("event") ?? "", data: fields.get("data") ?? "" };
}
