import type { Peer } from "../peer.ts";

/**
 * No proxy: shows what the load generator and the backend, which share a core, achieve without a proxy between them.
 */
export const direct: Peer = {
  name: "direct",
  settings: "no proxy: load and backend alone on the core they share",
  missing: () => undefined,
  command: () => undefined,
};
