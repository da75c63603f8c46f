/** Names the clients that ask for one watch from one version in a loop (incident 001), once a minute each. */
import { hash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import { identityOf } from "../../kube/resume-request.ts";
import type { WatchContext } from "../../watch/session/watch-context.ts";
import { clientKey, userAgentOf } from "../context/client-key.ts";
import type { Order } from "../context/order.ts";
import { type Replay, Replays } from "./replay.ts";

export class Loops {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #replays = new Replays();

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  /** A backend has answered the watch. Undefined when it does not go on from a version; else it wants to hear of its end. */
  answered({ request, target, resource }: WatchContext, { client, fields }: Order): Replay | undefined {
    if (request.start !== "exact") return undefined;
    // Hashed, so that what is remembered has one size whatever clients send.
    const replay = this.#replays.of(
      hash("sha256", `${clientKey(client, fields)} ${identityOf(target)}`, "base64url"),
    );
    const times = replay.asked(this.#clock.now());
    if (times === undefined) return replay;
    const { version } = request;
    const userAgent = userAgentOf(fields);
    this.#journal.write({
      kind: "watch.replay_loop",
      client: client.address,
      userAgent,
      resource,
      version,
      times,
    });
    return replay;
  }
}
