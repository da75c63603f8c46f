/** One client's connection to the proxy. It connects when it has to, and opens streams. */
import { Field } from "../../../src/h2/core/field.ts";
import { FlushScheduler } from "../../../src/h2/core/flush-scheduler.ts";
import type { StreamListener } from "../../../src/h2/core/stream-writer.ts";
import { Session } from "../../../src/h2/session/session.ts";
import type { Stream } from "../../../src/h2/session/stream.ts";
import type { Findings } from "./findings.ts";
import type { End } from "./wires.ts";

export type Asked = {
  readonly method: string;
  readonly path: string;
  readonly accept: string;
  readonly auditId: string;
  readonly body?: Buffer;
};

export class Caller {
  /** The client's name. It is the client's token, too, so a request with another client's token can be recognised. */
  readonly name: string;
  readonly findings: Findings;
  readonly isBearer: boolean;
  readonly #dial: () => End;
  readonly #turn: FlushScheduler;
  #session: Session | undefined;
  end: End | undefined;
  #asked = 0;

  /** `isBearer`: false if the client authenticates with a certificate of this name instead of a token. */
  constructor(name: string, findings: Findings, dial: () => End, isBearer = true) {
    this.name = name;
    this.isBearer = isBearer;
    this.findings = findings;
    this.#dial = dial;
    this.#turn = new FlushScheduler(findings.world);
  }

  /** Returns a unique audit id, by which the request is recognised at the backends. */
  nextId(): string {
    this.#asked += 1;
    return `${this.name}.${this.#asked}`;
  }

  ask({ method, path, accept, auditId, body }: Asked, owner: StreamListener): Stream {
    const fields = [
      new Field(":method", method),
      new Field(":scheme", "https"),
      new Field(":authority", "kubernetes"),
      new Field(":path", path),
      ...(this.isBearer ? [new Field("authorization", `Bearer ${this.name}`)] : []),
      new Field("user-agent", "simulated/1.0"),
      new Field("accept", accept),
      new Field("audit-id", auditId),
    ];
    this.findings.tell(() => `${auditId} ${method} ${path}`);
    const stream = this.#openSession().open(fields, body === undefined, owner);
    if (body !== undefined) stream.sendData(body, 0, body.length, true);
    return stream;
  }

  /** Sends GOAWAY: open streams go on, and no new ones are opened on this connection. */
  goAway(): void {
    this.#session?.goAway();
  }

  #openSession(): Session {
    if (this.#session?.isOpen === true) return this.#session;
    const end = this.#dial();
    this.end = end;
    const { findings } = this;
    const session = new Session({
      role: "client",
      clock: findings.world,
      turn: this.#turn,
      owner: {
        opened: (stream) => stream.owner,
        write: (buffers) => end.write(buffers),
        changed() {},
        ponged() {},
        fault: (error) => findings.wrong("thrown", `${this.name}: ${String(error)}`),
        ended: (error) => {
          if (error !== undefined)
            findings.wrong("transparent", `${this.name} was sent a violation: ${error.message}`);
          session.flush();
          end.end();
        },
      },
    });
    end.owner = {
      receive: (chunk) => session.receive(chunk),
      drained: () => session.drained(),
      closed: () => session.lose(),
    };
    this.#session = session;
    return session;
  }
}
