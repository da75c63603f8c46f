/** Sends requests to an embedded apiserver without a connection, and collects the response. */
import type { Apiserver } from "../../demo/apiserver/apiserver.ts";
import { type JsonMap, mapOf, parseJson, textOf } from "../../demo/objects/json.ts";

export type Heard = {
  status: number;
  fields: Map<string, string>;
  text: string;
  ended: boolean;
  /** Bytes of the response that the client has not yet read. A test sets it to simulate a slow reader. */
  queued: number;
  /** Cancels the request. */
  leave: () => void;
};

type More = {
  readonly body?: unknown;
  readonly type?: string;
  readonly accept?: string;
  readonly auditId?: string;
};

/** Sends a request. `what` is `METHOD /path?query`; an object as body is sent as JSON. */
export function ask(apiserver: Apiserver, what: string, more: More = {}): Heard {
  const [method = "", path = ""] = what.split(" ");
  const { body } = more;
  const heard: Heard = { status: 0, fields: new Map(), text: "", ended: false, queued: 0, leave: () => {} };
  const fields: [string, string][] = [["accept", more.accept ?? "application/json"]];
  if (body !== undefined) fields.push(["content-type", more.type ?? "application/json"]);
  if (more.auditId !== undefined) fields.push(["audit-id", more.auditId]);
  const octets =
    body === undefined ? Buffer.alloc(0) : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  apiserver.handle(
    { method, path, fields, body: octets },
    {
      head(status, head) {
        if (heard.status !== 0) throw new Error("a second head");
        heard.status = status;
        heard.fields = new Map(head);
      },
      write(bytes) {
        if (heard.ended) throw new Error("written after the end");
        heard.text += bytes.toString();
      },
      end() {
        if (heard.ended) throw new Error("ended twice");
        heard.ended = true;
      },
      queued: () => heard.queued,
      onGone(run) {
        heard.leave = run;
      },
    },
  );
  return heard;
}

export function jsonBody(heard: Heard): JsonMap {
  return mapOf(parseJson(heard.text));
}

/** Returns the events of a watch so far, each as `TYPE name@version`. A bookmark has no name. */
export function eventsOf(heard: Heard): string[] {
  return heard.text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { type, object } = mapOf(parseJson(line));
      const metadata = mapOf(mapOf(object)["metadata"]);
      return `${textOf(type)} ${textOf(metadata["name"])}@${textOf(metadata["resourceVersion"])}`;
    });
}
