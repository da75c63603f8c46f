/**
 * `npm run incident NUMBER`: the story in front of real kube-apiservers where they are built and this machine can run them, in front
 * of embedded ones else, and always with --embedded. What `watchkeeper incident` does wherever it is installed is the latter.
 */
import { incident } from "../../../src/cli/serve/incident.ts";
import { clusterNeeds, lacking } from "../rig/parts.ts";
import { realSettings } from "./real-setting.ts";

/** Its apiserver would have to run for three years. */
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
