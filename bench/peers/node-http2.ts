import { join } from "node:path";
import type { Peer } from "../peer.ts";

export const nodeHttp2: Peer = {
  name: "node-http2",
  settings:
    "node:http2 streams piped, one backend session for each client's; windows 1 MiB a stream and 16 MiB a session",
  missing: () => undefined,
  command: (place) => [
    process.execPath,
    join(import.meta.dirname, "programs/node-http2.ts"),
    JSON.stringify(place),
  ],
};
