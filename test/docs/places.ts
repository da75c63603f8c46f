/**
 * Names, for each command on the pages, the test that runs it. A command that no test runs is listed with a reason. If
 * this machine cannot run it, because it has no systemd, registry or nodes, the entry also names a test that shows the
 * same.
 */
import type { PageCommand } from "./blocks.ts";

export type Place =
  /** Run by test/processes/docs/commands.test.ts, which expects one of these exit codes. Default: 0. */
  | { readonly run: "here"; readonly codes?: readonly number[] }
  /** Run by the same test. The command runs until a signal ends it, and must print this before. */
  | { readonly run: "endless"; readonly says: RegExp }
  /**
   * The previous command's output contains this command literally. "…" stands for a part that is different each time.
   */
  | { readonly run: "said" }
  /** Run by test/processes/demo/incidents/pages.test.ts: stories, which take half a minute each. */
  | { readonly run: "story" }
  /** Run by test/real/docs.test.ts, on a real apiserver. */
  | { readonly run: "cluster"; readonly codes?: readonly number[] }
  | {
      readonly run: "nowhere";
      readonly because: string;
      /** The test that shows the same: its file, and a part of that file's text. */
      readonly shownBy?: readonly [file: string, text: string];
    };

type Rule = readonly [command: RegExp, place: Place];

const pack = "test/processes/long/pack.test.ts";
const nodesOwn = "asks a node of the reader's, by the node's own programs: nothing of ours is in it";

/** The first rule whose pattern matches a command applies. */
export const rules: readonly Rule[] = [
  [
    /^npm ci$/,
    { run: "nowhere", because: "tests run where it has been done", shownBy: [".ci/run", "npm ci"] },
  ],
  [
    /^npm (test|run check|run test:attacks)$/,
    { run: "nowhere", because: "runs this test", shownBy: [".ci/run", "npm run -s test:attacks"] },
  ],
  [
    /^npm run test:seeds$/,
    { run: "nowhere", because: "simulates for many minutes", shownBy: [".ci/run", "npm run -s test:seeds"] },
  ],
  [
    /^npm run test:real:short$/,
    { run: "nowhere", because: "takes minutes", shownBy: [".ci/run", "npm run -s test:real:short"] },
  ],
  [
    /^npm run house$/,
    { run: "nowhere", because: "counts lines, and steps through four events for a minute" },
  ],
  [/^npm run nightly$/, { run: "nowhere", because: "runs every suite, for about ten hours" }],
  [/^npm run test:soak$/, { run: "nowhere", because: "lasts two hours" }],
  [/^npm run test:mass-move$/, { run: "nowhere", because: "needs both cores for itself" }],
  [
    /^npm run bench /,
    { run: "nowhere", because: "measures for minutes, beside proxies that have to be built" },
  ],
  [
    /^npm run executable$|^install dist-executable/,
    {
      run: "nowhere",
      because: "takes a minute",
      shownBy: [pack, "the single executable runs where there is no Node"],
    },
  ],
  [
    /^npm run pack$|^npm install --global /,
    {
      run: "nowhere",
      because: "takes a minute",
      shownBy: [pack, "the packed package runs from a global install in an empty prefix"],
    },
  ],
  [
    /^podman (build|push) /,
    {
      run: "nowhere",
      because: "its base images come from a registry",
      shownBy: ["test/processes/long/image.test.ts", "the image's steps make a program that runs"],
    },
  ],
  [
    /^systemctl /,
    {
      run: "nowhere",
      because: "there is no systemd where tests run",
      shownBy: ["test/processes/docs/commands.test.ts", "systemd finds nothing wrong with the units"],
    },
  ],
  [
    /^sysctl /,
    {
      run: "nowhere",
      because: "sets parameters of this machine's kernel",
      shownBy: ["test/real/upgrades/shapes.ts", "deploy/static-pod/sysctl.conf"],
    },
  ],
  [
    /^kill -USR2 /,
    {
      run: "nowhere",
      because: "needs the process that systemd started",
      shownBy: [
        "test/processes/cli/serve/handover.test.ts",
        "a rolling restart: no refusal, no reset, no relist",
      ],
    },
  ],
  [/^helm upgrade cilium /, { run: "nowhere", because: "Cilium's chart comes from a registry" }],
  [
    /^helm push /,
    {
      run: "nowhere",
      because: "there is no registry",
      shownBy: ["test/processes/long/release.test.ts", "-chart.tgz"],
    },
  ],
  [
    /^helm install .* oci:|^helm test /,
    {
      run: "nowhere",
      because: "there is no registry",
      shownBy: ["test/real/deploy.test.ts", "helm installs, upgrades and removes the chart"],
    },
  ],
  [
    / port-forward /,
    {
      run: "nowhere",
      because: "the pods of the rig run no image",
      shownBy: ["test/real/kubectl.test.ts", "port-forward over ${name} carries many connections, whole"],
    },
  ],
  [
    / --token-file /,
    {
      run: "nowhere",
      because: "the proxy has to ask a cluster about the token",
      shownBy: ["test/real/authorization.test.ts", "by the command line either; one that may operate may"],
    },
  ],
  [
    /^skopeo copy/,
    {
      run: "nowhere",
      because: "there is no registry",
      shownBy: ["test/processes/long/release.test.ts", "image.oci.tar"],
    },
  ],
  [
    /npm run release/,
    {
      run: "nowhere",
      because: "a release takes a minute",
      shownBy: ["test/processes/long/release.test.ts", "deploy/release/release.ts"],
    },
  ],
  [
    /^(minisign|sha256sum) /,
    {
      run: "nowhere",
      because: "there is no release",
      shownBy: ["test/processes/long/release.test.ts", "sha256sum --check"],
    },
  ],
  [/^(ssh|journalctl|top) /, { run: "nowhere", because: nodesOwn }],
  [/^npm start$|^kubectl --kubeconfig …|^watchkeeper incident /, { run: "story" }],
  [/^export KUBECONFIG=/, { run: "said" }],
  // Exit code 1: the test cluster has no aggregated API, so the APIService is not found, and no node has the address.
  [/^kubectl get apiservice /, { run: "cluster", codes: [0, 1] }],
  [/^kubectl .*\| grep -wF ADDRESS/, { run: "cluster", codes: [0, 1] }],
  [/^(kubectl|helm) |\| kubectl apply/, { run: "cluster" }],
  [/^(watchkeeper|node bin\/watchkeeper\.js) run /, { run: "endless", says: /listener\.opened/ }],
  [/^watchkeeper try$/, { run: "endless", says: /^export KUBECONFIG=.*\n/m }],
  [/^watchkeeper tap .*\| jq/, { run: "endless", says: /^"\/.+"$/m }],
  [/^(watchkeeper|node bin\/watchkeeper\.js) tap(?!.* --for)/, { run: "endless", says: /request\.ended/ }],
  // An incident is active in this setting, so the exit code is 1.
  [/^(watchkeeper|node bin\/watchkeeper\.js) status( --all-replicas)?$/, { run: "here", codes: [1] }],
  // Limits are numbered, and the numbers depend on how many limits the pages have set before.
  [/^watchkeeper unlimit /, { run: "here", codes: [0, 1] }],
  // Exit code 1 or 2: not every Linux has that file, and other systems do not.
  [/^grep -s \. \/sys/, { run: "here", codes: [0, 1, 2] }],
  [
    /^(watchkeeper|node|source|install|curl|(timeout 5 )?openssl|ss) |^source <\(watchkeeper /,
    { run: "here" },
  ],
];

export function ruleOf({ text }: PageCommand): Rule | undefined {
  return rules.find(([command]) => command.test(text));
}

/** Returns the command's place. Throws if it has none. */
export function placeOf(command: PageCommand): Place {
  const [, place] = ruleOf(command) ?? [];
  if (place === undefined)
    throw new Error(`${command.page}:${command.line} ${command.text}: no test runs it`);
  return place;
}
