/**
 * Faults of watchkeeper itself or of its machine. `outcome`: what has to happen. `tests`: paths below test/, without
 * ".test.ts"; test/attack-rows.test.ts checks that they exist.
 */
export type OwnFault = {
  readonly fault: string;
  readonly outcome: string;
  readonly tests: readonly string[];
};

export const ownFaults: readonly OwnFault[] = [
  {
    fault: "stdout is closed, not read, or on a full disk",
    outcome: "log lines are dropped and counted; nothing waits for stdout",
    tests: ["ops/admin/events/log"],
  },
  {
    fault: "file descriptors run short",
    outcome: "no new clients until there are some; metrics and probes work",
    tests: ["attacks/whole/capacity"],
  },
  {
    fault: "no file descriptor is left",
    outcome: "new sockets close, the event loop does not spin, and no backend's health changes",
    tests: ["processes/own-faults"],
  },
  {
    fault: "the event loop stalls",
    outcome: "the stalled time counts against no backend and no client",
    tests: ["upstream/pool/keepalive", "health/stall-aware-clock", "upstream/pool/connection-pool"],
  },
  {
    fault: "the event loop stalls while probes arrive",
    outcome: "the probe thread answers within 50 ms; the check `loop` fails after 5 s",
    tests: ["ops/admin/server/probe-thread", "ops/admin/server/cached-probes"],
  },
  {
    fault: "the probe thread dies or cannot be started",
    outcome: "clients notice nothing; one is started each second, and there is no handover without it",
    tests: ["ops/admin/server/probe-thread"],
  },
  {
    fault: "a worker is killed, hangs, or sends nonsense to its parent",
    outcome:
      "its clients' connections end, no counter falls, and another worker serves after about a second; a hanging one is killed after 5 s",
    tests: ["processes/workers", "fleet/workers/worker-pool", "fleet/workers/channel"],
  },
  {
    fault: "64 sockets pipeline thousands of scrapes and read no response",
    outcome: "a socket with more than four unanswered requests is closed; probes are answered",
    tests: ["ops/admin/server/connection-limits", "ops/admin/server/probe-thread"],
  },
  {
    fault: "the wall clock jumps an hour ahead and two back",
    outcome: "deadlines are monotonic: no client is disconnected, and no upstream connection ends",
    tests: ["processes/own-faults"],
  },
  {
    fault: "all backends fail and recover under many clients",
    outcome: "connections and resumed watches come at a limited rate",
    tests: ["flows/recovery"],
  },
  {
    fault: "an exception in a stream, session or timer, or in the control side",
    outcome:
      "only that stream, session, timer callback or step ends; watchkeeper_internal_errors_total counts it",
    tests: ["h2/session/streams", "upstream/net/socket", "events/guarded-clock", "processes/control-side"],
  },
  {
    fault: "the discovery process dies or runs out of memory",
    outcome: "the last backends found stay in use",
    tests: ["processes/discovery/discover-child"],
  },
  {
    fault: "the heap is full",
    outcome: "new sockets are refused, idle clients closed, then requests end (A26)",
    tests: ["attacks/whole/overload"],
  },
];
