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

const table: Record<StreamState, Partial<Record<StreamInput, StreamState>>> = {
  idle: { "send-headers": "open", "receive-headers": "open" },
  open: {
    "send-headers": "open",
    "receive-headers": "open",
    "send-data": "open",
    "receive-data": "open",
    "send-end": "half-closed-local",
    "receive-end": "half-closed-remote",
    reset: "closed",
  },
  "half-closed-local": {
    "receive-headers": "half-closed-local",
    "receive-data": "half-closed-local",
    "receive-end": "closed",
    reset: "closed",
  },
  "half-closed-remote": {
    "send-headers": "half-closed-remote",
    "send-data": "half-closed-remote",
    "send-end": "closed",
    reset: "closed",
  },
  closed: { reset: "closed" },
};

/** Returns the next state; undefined: RFC 9113 §5.1 forbids the input in this state. */
export function next(state: StreamState, input: StreamInput): StreamState | undefined {
  return table[state][input];
}
