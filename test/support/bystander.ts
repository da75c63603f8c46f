/**
 * An ordinary client that must not notice an attack by other clients: it sends one GET after another, and keeps one
 * watch open.
 */
import http2 from "node:http2";

/**
 * Period in ms of the timer that adds up the times below. If the timer fires late, this process was busy, so at most
 * two periods are added.
 */
const lookMs = 20;

export class Bystander {
  readonly #session: http2.ClientHttp2Session;
  readonly #complaints: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isStopped = false;
  #silentMs = 0;
  #getMs = 0;
  #looks: ReturnType<typeof setInterval> | undefined;
  gets = 0;
  events = 0;
  /**
   * The longest time in ms that a GET took. Time in which this process was busy is omitted, because the attacker runs
   * in it too.
   */
  slowestMs = 0;
  /** The longest time in ms between two events of the watch, measured in the same way. */
  longestGapMs = 0;

  constructor(url: string, ca: string) {
    this.#session = http2.connect(url, { ca, servername: "localhost" });
    this.#session.on("error", (error) => this.#complain(`session: ${error.message}`));
    this.#session.on("goaway", (code) => this.#complain(`GOAWAY ${code}`));
    this.#session.on("close", () => this.#complain("session closed"));
    this.#watch();
    this.#next();
    let lookedAt = performance.now();
    this.#looks = setInterval(() => {
      const now = performance.now();
      const passedMs = Math.min(now - lookedAt, 2 * lookMs);
      this.#silentMs += passedMs;
      this.#getMs += passedMs;
      lookedAt = now;
      this.longestGapMs = Math.max(this.longestGapMs, this.#silentMs);
    }, lookMs);
  }

  /** Returns the failures since the previous call. */
  complaints(): string[] {
    return this.#complaints.splice(0);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#looks);
    this.#session.destroy();
  }

  #complain(what: string): void {
    if (!this.#isStopped) this.#complaints.push(what);
  }

  #ask(path: string): http2.ClientHttp2Stream {
    const stream = this.#session.request({ ":path": path, authorization: "Bearer bystander" });
    stream.on("error", (error) => this.#complain(`${path}: ${error.message}`));
    return stream;
  }

  #watch(): void {
    const stream = this.#ask("/api/v1/pods?watch=true");
    stream.on("data", () => {
      this.events += 1;
      this.#silentMs = 0;
    });
    stream.on("close", () => this.#complain(`watch closed: ${stream.rstCode}`));
  }

  #next(): void {
    this.#getMs = 0;
    const stream = this.#ask("/api/v1/namespaces/default/pods/mine");
    let status = 0;
    stream.on("response", (headers) => {
      status = Number(headers[":status"]);
    });
    stream.resume();
    stream.on("close", () => {
      if (status !== 200) this.#complain(`GET: status ${status}, code ${stream.rstCode}`);
      this.gets += 1;
      this.slowestMs = Math.max(this.slowestMs, this.#getMs);
      if (!this.#isStopped) this.#timer = setTimeout(() => this.#next(), 20);
    });
  }
}
