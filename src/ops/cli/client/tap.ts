/** `watchkeeper tap [KIND]`: prints the entries of a running proxy's journal as they are written. */
import type { Clock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { escapeInvisible } from "../../../base/json.ts";
import { type Row, rowOf, shown, textAt } from "../commands/rows.ts";
import { type AdminClient, apiCommand, type ServerSentEvent } from "./admin-client.ts";

/**
 * Number of attempts to reconnect, and the pause in ms before each. Together, the pauses outlast a restart of the
 * proxy.
 */
const attempts = 10;
const retryMs = 1000;

/** Runs until a signal, or for the seconds of `--for`. Exit codes: 0 time is over, 2 usage error, 3 API unreachable. */
export const tap = apiCommand("tap", async ({ options, client, screen, clock }) => {
  const seconds = options.whole("for", 0, [0, 86_400]);
  if (seconds instanceof Failure) return seconds;
  const stop = new AbortController();
  if (seconds > 0) clock.after(seconds * 1000, () => stop.abort());
  const isJson = options.text("output") === "json";
  const path = `/api/v1/events?kind=${encodeURIComponent(options.words[0] ?? "")}`;
  const outcome = await follow(client, path, { stop: stop.signal, clock }, (told) =>
    screen.print(isJson ? `${escapeInvisible(told.data, "json")}\n` : lineOf(told)),
  );
  return outcome ?? 0;
});

type Following = { readonly stop: AbortSignal; readonly clock: Clock };

async function follow(
  client: AdminClient,
  path: string,
  { stop, clock }: Following,
  show: (told: ServerSentEvent) => void,
): Promise<Failure | undefined> {
  let lastId = "";
  for (let failures = 0; failures < attempts; failures += 1) {
    const ended = await client.follow(path, { lastId, stop }, (told) => {
      failures = 0;
      lastId = told.id || lastId;
      show(told);
    });
    if (stop.aborted) return undefined;
    // If no event has come yet, the address is probably wrong, so the command does not reconnect.
    if (ended.code !== "backend-lost" || (lastId === "" && failures === 0)) return ended;
    await new Promise<void>((resolve) => {
      clock.after(retryMs, resolve);
    });
  }
  return new Failure("backend-lost", "backend", `Connection to the proxy at ${client.address} lost`);
}

/**
 * Returns an event as one line, such as `07:48:01.123 backend.changed backend=b to=suspect reason="PING unanswered"`.
 */
function lineOf({ name, data }: ServerSentEvent): string {
  if (name === "gap") return "... events missed: too many in between, or the proxy was restarted\n";
  const { at: _at, kind: _kind, ...fields } = parsed(data);
  const time = textAt(parsed(data), "at").replaceAll(/^.*T|Z$/g, "");
  const words = Object.keys(fields).map((field) => `${field}=${worded(textAt(fields, field))}`);
  return `${[time, shown(name), ...words].join(" ")}\n`;
}

function worded(text: string): string {
  return /^[\w./:@+-]+$/.test(text) ? text : JSON.stringify(shown(text));
}

function parsed(data: string): Row {
  try {
    return rowOf(JSON.parse(data));
  } catch {
    return {}; // Another version may have written the data. Only the event's name is printed.
  }
}
