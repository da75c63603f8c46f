/**
 * What the clients of the mixed load share: the address to connect to, counters of finished operations, and the list of
 * errors.
 */
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";

export const head = {
  authorization: "Bearer bench1.0123456789abcdef0123456789abcdef",
  "user-agent": "mixed/1",
};

export type Ground = {
  readonly port: number;
  readonly ca: Buffer;
  readonly upload: Buffer;
  readonly stopping: AbortSignal;
  readonly isOver: () => boolean;
  readonly done: Record<"get" | "list" | "upload" | "watch" | "event" | "exec", number>;
  readonly errors: string[];
};

export function groundOf(port: number, caFile: string, uploadFile: string, stopping: AbortSignal): Ground {
  const done = { get: 0, list: 0, upload: 0, watch: 0, event: 0, exec: 0 };
  return {
    port,
    ca: readFileSync(caFile),
    upload: readFileSync(uploadFile),
    stopping,
    isOver: () => stopping.aborted,
    done,
    errors: [],
  };
}

/** Opens a session. Its errors count as errors of the load until the load stops. */
export function open({ port, ca, errors, isOver }: Ground): ClientHttp2Session {
  const session = connect(`https://localhost:${port}`, {
    ca,
    servername: "localhost",
    settings: { initialWindowSize: 1 << 20 },
  });
  session.on("error", (error) => {
    if (!isOver()) errors.push(`session: ${error.message}`);
  });
  session.on("connect", () => session.setLocalWindowSize(1 << 23));
  return session;
}

/** Resolves to false after `ms`, or at once when the load stops. */
export function pause(stopping: AbortSignal, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stopping.removeEventListener("abort", end);
      resolve(false);
    };
    const timer = setTimeout(end, ms);
    stopping.addEventListener("abort", end);
  });
}
