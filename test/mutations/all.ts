/** All planted faults by area. */
import { guards } from "../processes/guards/table.ts";
import { admission } from "./areas/admission.ts";
import { canaries } from "./areas/canaries.ts";
import { certificates } from "./areas/certificates.ts";
import { configuration } from "./areas/configuration.ts";
import { connections } from "./areas/connections.ts";
import { edges } from "./areas/edges.ts";
import { ends } from "./areas/ends.ts";
import { health } from "./areas/health.ts";
import { histories } from "./areas/histories.ts";
import { memory } from "./areas/memory.ts";
import { moves } from "./areas/moves.ts";
import { operator } from "./areas/operator.ts";
import { proof } from "./areas/proof.ts";
import { responses } from "./areas/responses.ts";
import { watchSession } from "./areas/watch-session.ts";
import { watches } from "./areas/watches.ts";
import { wire } from "./areas/wire.ts";
import type { Defect } from "./defect.ts";

/** The faults of this area remove the guards of rows A39 to A50, which concern identity and certificates. */
const identity: readonly Defect[] = guards.map(({ row, without, removal, test, fails }) => ({
  name: `${row}: ${without}`,
  mutations: [removal].flat(),
  test: test.replace(/^test\//, "").replace(/\.test\.ts$/, ""),
  fails,
}));

export const areas: Readonly<Record<string, readonly Defect[]>> = {
  wire: [...wire, ...edges, ...responses],
  memory,
  connections,
  health,
  admission,
  ends,
  certificates,
  proof,
  configuration,
  operator,
  watch: [...watches, ...moves, ...watchSession, ...histories],
  identity: [...identity, ...canaries],
};
