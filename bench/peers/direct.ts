import type { Peer } from "../peer.ts";

/** The floor: what the load and the backend reach without anything between them, on the one core they share. */
export const direct: Peer = {
  name: "direct",
  settings: "no proxy: load and backend alone on the core they share",
  missing: () => undefined,
  command: () => undefined,
};
