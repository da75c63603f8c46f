/**
 * `npm run incident NUMBER` runs a story in front of real kube-apiservers if they are built and this machine can run
 * them. Otherwise, and always with --embedded, it uses embedded apiservers. `watchkeeper incident`, wherever it is
 * installed, uses embedded apiservers only.
 */
import { incident } from "../../../src/ops/cli/serve/incident.ts";
import { clusterNeeds, lacking } from "../rig/parts.ts";
import { realSettings } from "./real-setting.ts";

/** Stories that run only with embedded apiservers. A real apiserver would have to run for three years. */
const embeddedOnly = new Set(["003"]);

function whyEmbedded(number: string): string | undefined {
  if (process.argv.includes("--embedded")) return "as asked for";
  if (embeddedOnly.has(number)) return "a real one would have to run for three years first";
  const missing = clusterNeeds.map(lacking).filter((what) => what !== undefined);
  return missing.length === 0 ? undefined : `real ones need ${missing.join("; ")}`;
}

const args = process.argv.slice(2).filter((word) => word !== "--embedded");
const why = whyEmbedded(args[0] ?? "");
if (why !== undefined) process.stderr.write(`On embedded apiservers: ${why}\n\n`);
process.exitCode = await incident(args, ...(why === undefined ? [realSettings] : []));
