/**
 * Stream states of RFC 9113 §5.1, without push:
 *
 *            send/receive headers
 *     idle ------------------------> open
 *                                   /    \
 *                        send end  /      \  receive end
 *                                 v        v
 *                  half-closed-local      half-closed-remote
 *                                 \        /
 *                    receive end   v      v   send end
 *                                  closed   <--- a reset from any of them
 */
export const streamStates = ["idle", "open", "half-closed-local", "half-closed-remote", "closed"] as const;
export type StreamState = (typeof streamStates)[number];

export const streamInputs = [
  "send-headers",
  "receive-headers",
  "send-data",
  "receive-data",
  "send-end",
  "receive-end",
  "reset",
] as const;
export type StreamInput = (typeof streamInputs)[number];

/**
 * Returns the next state; undefined: RFC 9113 §5.1 forbids the input in this state. A table of objects would cost twice
 * as much, and each request takes eight steps.
 */
export function next(state: StreamState, input: StreamInput): StreamState | undefined {
  if (input === "reset") return state === "idle" ? undefined : "closed";
  switch (state) {
    case "idle":
      return input === "send-headers" || input === "receive-headers" ? "open" : undefined;
    case "open":
      if (input === "receive-end") return "half-closed-remote";
      return input === "send-end" ? "half-closed-local" : "open";
    case "half-closed-local":
      if (input === "receive-end") return "closed";
      return isReceived(input) ? state : undefined;
    case "half-closed-remote":
      if (input === "send-end") return "closed";
      return isReceived(input) || input === "receive-end" ? undefined : state;
    default:
      return undefined;
  }
}

/** True for a part of the peer's message before its end. */
function isReceived(input: StreamInput): boolean {
  return input === "receive-headers" || input === "receive-data";
}
