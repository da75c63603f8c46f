/**
 * Runs the routes of the JSON API one after another. A route that walks over many rows uses a slice of each event loop
 * turn (base/slices.ts). Because only one route runs at a time, many readers of the API delay the requests of clients
 * no more than one reader does.
 */
import { adminLimits } from "./limits.ts";
import { failed, type Reply, type Route } from "./reply.ts";

export class ReplyQueue {
  #last: Promise<unknown> = Promise.resolve();
  #size = 0;

  /**
   * Returns a route that waits until all earlier requests are answered. Answers 429 if `queuedReplies` requests are
   * unanswered.
   */
  wrap(route: Route): (...asked: Parameters<Route>) => Promise<Reply> {
    return async (query, headers) => {
      if (this.#size >= adminLimits.queuedReplies)
        return failed(429, "Too many requests to the JSON API are waiting");
      this.#size += 1;
      const reply = this.#last.then(() => this.#run(() => route(query, headers)));
      this.#last = reply.catch(() => {});
      return reply;
    };
  }

  async #run(route: () => Reply | Promise<Reply>): Promise<Reply> {
    try {
      return await route();
    } finally {
      this.#size -= 1;
    }
  }
}
