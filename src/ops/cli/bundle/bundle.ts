/**
 * `watchkeeper bundle`: writes all lists of the API, the metrics and versions to a tar file or a directory, for a bug
 * report. Replaces names and addresses, unless `--names` is given. Never includes bodies of requests or responses,
 * tokens, or the configuration.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { timestampOf } from "../../../base/clock.ts";
import { Failure, failureFrom } from "../../../base/failure.ts";
import { ownVersion } from "../../program/version.ts";
import { AdminClient, apiCommand } from "../client/admin-client.ts";
import { kinds } from "../commands/commands.ts";
import type { Row, RowList } from "../commands/rows.ts";
import { json } from "../commands/screen.ts";
import { Redactor } from "./redact.ts";

/** Maximum number of rows of each list, so that a bundle has no more than a few MB. */
const mostRows = 5000;

type BundleContents = {
  readonly figures: Row;
  readonly lists: ReadonlyMap<string, RowList>;
  readonly metrics: string | Failure;
};

/** Exit codes: 0 written, 1 not written, 2 usage error, 3 the API is unreachable. */
export const bundle = apiCommand("bundle", async ({ options, client, screen, clock }) => {
  const metrics = AdminClient.metricsAt(options.text("metrics"));
  if (metrics instanceof Failure) return metrics;
  const known = await readAll(client, metrics);
  if (known instanceof Failure) return known;
  const wallMs = clock.wall();
  const time = timestampOf(wallMs).replaceAll(/[^\dTZ]/g, "");
  const to = options.text("to") ?? `watchkeeper-${time}.tar`;
  const files = filesOf(known, options.has("names"), timestampOf(wallMs));
  const failure = writeNew(to, files, wallMs);
  if (failure !== undefined) return failure;
  const bytes = files.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  screen.print(`${to}: ${files.length} files, ${Math.ceil(bytes / 1024)} KiB\n`);
  if (known.metrics instanceof Failure)
    screen.complain("The bundle has no metrics: --metrics must name the metrics port (metrics.address)\n");
  screen.complain("Review the contents before you share them\n");
  return 0;
});

async function readAll(client: AdminClient, metrics: AdminClient): Promise<BundleContents | Failure> {
  const figures = await client.one("stats");
  if (figures instanceof Failure) return figures;
  const lists = new Map<string, RowList>();
  for (const kind of kinds) {
    // Reads one list after another, to keep the load on the proxy low.
    const list = await client.list(kind, {}, mostRows);
    // A proxy of an older version has no list of replicas. Its bundle is written without this list.
    if (list instanceof Failure && kind === "replicas" && list.code === "backend-refused") continue;
    if (list instanceof Failure) return list;
    lists.set(kind, list);
  }
  return { figures, lists, metrics: await metrics.text("/metrics") };
}

function filesOf(
  { figures, lists, metrics }: BundleContents,
  hasNames: boolean,
  time: string,
): readonly ArchiveFile[] {
  const redactor = new Redactor();
  for (const [kind, { items }] of lists) redactor.learn(kind, items);
  const shownList = (kind: string, list: RowList): RowList =>
    hasNames ? list : { ...list, items: redactor.rows(kind, list.items) };
  const measured = metrics instanceof Failure ? `# ${metrics.message.replaceAll("\n", "\n# ")}\n` : metrics;
  return [
    { name: "watchkeeper/README.txt", text: readme(hasNames, time) },
    { name: "watchkeeper/versions.json", text: json(versions(figures)) },
    { name: "watchkeeper/stats.json", text: json(hasNames ? figures : { ...figures, name: "[redacted]" }) },
    ...Array.from(lists, ([kind, list]) => ({
      name: `watchkeeper/${kind}.json`,
      text: json(shownList(kind, list)),
    })),
    { name: "watchkeeper/metrics.txt", text: hasNames ? measured : redactor.metrics(measured) },
  ];
}

function versions(figures: Row): object {
  const { platform, arch, versions: own } = process;
  return { proxy: figures["version"], cli: ownVersion(), node: own.node, platform, arch };
}

function readme(hasNames: boolean, time: string): string {
  const names = hasNames
    ? "Names and addresses are those of the cluster."
    : 'Names and addresses are replaced, the same one by the same word everywhere ("client-1"); names of backends and\nprograms are kept, and so may be a name that no list had as a field of its own.';
  return `The state of watchkeeper at ${time}. ${names}\nUp to ${mostRows} rows of each list. No token, body or configuration is in it.\n`;
}

function writeNew(to: string, files: readonly ArchiveFile[], wallMs: number): Failure | undefined {
  const mine = { flag: "wx", mode: 0o600 } as const;
  try {
    if (to.endsWith(".tar")) {
      writeFileSync(to, tarOf(files, wallMs), mine);
      return undefined;
    }
    mkdirSync(to, { mode: 0o700 });
    for (const { name, text } of files) writeFileSync(join(to, name.replace("watchkeeper/", "")), text, mine);
    return undefined;
  } catch (reason) {
    return new Failure("bad-file", "client", `Cannot write ${to}: ${failureFrom(reason, "client").message}`);
  }
}

type ArchiveFile = { readonly name: string; readonly text: string };

const block = 512;

/**
 * Returns the files as one archive in the ustar format, which every tar reads. `wallMs`: modification time of the
 * files.
 * @throws {RangeError} a name exceeds 100 bytes, the limit of the format
 */
export function tarOf(files: readonly ArchiveFile[], wallMs: number): Buffer {
  const parts = files.flatMap(({ name, text }) => {
    const body = Buffer.from(text);
    return [headOf(name, body.length, wallMs), body, Buffer.alloc((block - (body.length % block)) % block)];
  });
  // The archive ends with two empty blocks.
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

function headOf(name: string, size: number, wallMs: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`Name too long for tar: "${name}"`);
  const head = Buffer.alloc(block);
  const octal = (value: number, at: number, chars: number): void => {
    head.write(`${value.toString(8).padStart(chars - 1, "0")}\0`, at);
  };
  head.write(name, 0);
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(wallMs / 1000), 136, 12);
  // The checksum is computed over the header, in which eight spaces stand in place of the checksum itself.
  head.write(" ".repeat(8), 148);
  head.write("0", 156);
  head.write("ustar\u000000", 257);
  octal(
    head.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return head;
}
