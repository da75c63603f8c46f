import type { Peer } from "../peer.ts";

/** No proxy: shows what load and backend reach without one, on the core that they share. */
export const direct: Peer = {
  name: "direct",
  settings: "no proxy: load and backend alone on the core they share",
  missing: () => undefined,
  command: () => undefined,
};
