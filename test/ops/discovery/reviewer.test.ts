import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { KubernetesChild, transportOf } from "../../../src/ops/discovery/kubernetes-child.ts";
import { discoveryLimits } from "../../../src/ops/discovery/limits.ts";
import { type Review, Reviewer } from "../../../src/ops/discovery/reviewer.ts";
import { type Access, AccountTransport } from "../../../src/ops/discovery/transport.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/discovery/reviewer");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-reviewer-"));
const caFile = join(directory, "ca.crt");
const service = { ...process.env };
const servers: Server[] = [];

test.before(async () => {
  const { authority } = await testPki();
  writeFileSync(caFile, authority.certificate);
  writeFileSync(join(directory, "token"), "own\n");
});
test.after(() => {
  process.env = { ...service };
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(directory, { recursive: true, force: true });
});

type Played = { readonly url: string; readonly asked: string[] };

/**
 * Starts an apiserver that answers each review according to `how`: with the review itself, with an answer that is no
 * JSON, with this status code, or not at all.
 */
async function played(how: "well" | "mute" | "words" | number): Promise<Played> {
  const { serving } = await testPki();
  const asked: string[] = [];
  const server = createServer({ cert: serving.certificate, key: serving.key }, (request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => {
      body += piece;
    });
    request.on("end", () => {
      asked.push(`${request.method} ${request.url} ${request.headers.authorization} ${body}`);
      if (how === "mute") return;
      response.writeHead(how === "well" || how === "words" ? 201 : how);
      response.end(how === "words" ? "<html>" : `{"of":${body}}`);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function serviceIs({ url }: Played): void {
  const { hostname, port } = new URL(url);
  process.env["KUBERNETES_SERVICE_HOST"] = hostname;
  process.env["KUBERNETES_SERVICE_PORT"] = port;
}

const review: Review = {
  kind: "TokenReview",
  path: "/apis/x/tokenreviews",
  body: { spec: { token: "hush" } },
};
const accessTo =
  (...known: readonly Played[]) =>
  () => ({
    servers: known.map(({ url }) => url),
    caFile,
    serverName: "kubernetes.default.svc",
  });

const accountReviewer = (access: () => Access, from = directory): Reviewer =>
  new Reviewer(new AccountTransport(access, from), access);

/** Returns the answer as JSON, or the message of the failure. */
async function told(known: readonly Played[]): Promise<string> {
  const reviewer = accountReviewer(accessTo(...known), directory);
  const outcome = await within(20_000, "an answer", reviewer.ask(review));
  return outcome instanceof Failure ? outcome.message : JSON.stringify(outcome.answer);
}

test("a backend is asked with the pod's own token, and its answer is the answer", async () => {
  const [known, own] = [await played("well"), await played("well")];
  serviceIs(own);
  assert.is(await told([known]), '{"of":{"spec":{"token":"hush"}}}');
  assert.equal(known.asked, ['POST /apis/x/tokenreviews Bearer own {"spec":{"token":"hush"}}']);
  assert.equal(own.asked, []);
});

test("where it does not answer the in-cluster service is asked, and both are named when neither does", async () => {
  const [mute, own] = [await played("mute"), await played("well")];
  serviceIs(own);
  const startedAt = performance.now();
  assert.match(await told([mute]), "hush");
  assert.ok(performance.now() - startedAt < discoveryLimits.reviewMs);
  const [refusing, words] = [await played(403), await played("words")];
  serviceIs(words);
  const complaint = await told([refusing]);
  assert.is(complaint, `${refusing.url}: answered 403; ${words.url}: the response is not JSON`);
  assert.not.match(complaint, "hush");
});

test("a pod without a token says so", async () => {
  const reviewer = accountReviewer(accessTo(), join(directory, "nowhere"));
  const outcome = await reviewer.ask(review);
  const file = join(directory, "nowhere/token");
  assert.is(outcome instanceof Failure && outcome.message, `"${file}" does not exist`);
});

test("one that is stopped asks no backend any more", async () => {
  const mute = await played("mute");
  serviceIs(mute);
  const reviewer = accountReviewer(accessTo(mute), directory);
  const asked = reviewer.ask(review);
  setTimeout(() => reviewer.stop(), 50);
  assert.instance(await within(1500, "the end", asked), Failure);
});

test("with a kubeconfig a child is asked, by the same words", async () => {
  const file = join(directory, "child.mjs");
  writeFileSync(
    file,
    `process.on("disconnect", () => process.exit());
    process.on("message", ({ id, ...asked }) => {
      process.send("noise");
      process.send({ id: id + 1, answer: "another's" });
      process.send(asked.caFile === "" ? { id, refusal: "answered 403" } : { id, answer: asked });
    });`,
  );
  const known = await played("well");
  const childReviewer = (access: () => Access): Reviewer =>
    new Reviewer(new KubernetesChild({ kubeconfigFile: "admin.conf", access, name: "review", file }), access);
  const reviewer = childReviewer(accessTo(known, known, known));
  const outcome = await within(10_000, "an answer", reviewer.ask(review));
  assert.equal(outcome instanceof Failure ? outcome.message : outcome.answer, {
    path: review.path,
    body: review.body,
    timeoutMs: discoveryLimits.reviewMs / discoveryLimits.reviewServers,
    kubeconfigFile: "admin.conf",
    server: known.url,
    caFile,
    serverName: "kubernetes.default.svc",
  });
  reviewer.stop();
  const blind = childReviewer(() => ({ servers: ["https://a"], caFile: "", serverName: undefined }));
  const refused = await within(10_000, "an answer", blind.ask(review));
  assert.is(
    refused instanceof Failure && refused.message,
    "https://a: answered 403; the kubeconfig's server: answered 403",
  );
  blind.stop();
});

test("which of the two is asked is what the configuration says", () => {
  assert.instance(transportOf(undefined, accessTo(), "review"), AccountTransport);
  assert.instance(transportOf("k", accessTo(), "review"), KubernetesChild);
});

test.run();
