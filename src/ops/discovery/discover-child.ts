/**
 * The main file of the child process that sends requests to apiservers with a kubeconfig (kubernetes-child.ts). The
 * child keeps no state, so the proxy may end a slow child and start another.
 */
import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import { failureFrom } from "../../base/failure.ts";
import type { HttpRequest } from "../http/http-client.ts";
import type { ChildReply, ChildRequest } from "./kubernetes-child.ts";
import { jsonFrom } from "./transport.ts";

async function replyTo(question: ChildRequest): Promise<ChildReply> {
  const { id, server } = question;
  const config = configFor(question);
  const url = config.getCurrentCluster()?.server ?? "";
  try {
    return { id, answer: await ask(config, url, question) };
  } catch (reason) {
    return { id, refusal: server === "" ? `${url}: ${sentenceOf(reason)}` : sentenceOf(reason) };
  }
}

type Applied = Omit<RequestOptions, "headers"> & { headers?: HttpRequest["headers"] };

async function ask(config: KubeConfig, origin: string, question: ChildRequest): Promise<unknown> {
  if (config.getCurrentCluster()?.proxyUrl !== undefined)
    throw new Error("the kubeconfig has a proxy-url, which watchkeeper does not support");
  const options: Applied = {};
  await config.applyToHTTPSOptions(options);
  const { auth, headers = {}, servername, ca, cert, key, pfx, passphrase, rejectUnauthorized } = options;
  const basic = auth ? { authorization: `Basic ${Buffer.from(auth).toString("base64")}` } : {};
  const sent = { ...basic, ...headers };
  if (Object.values(sent).some((value) => /[^\x20-\x7e]/.test(value)))
    throw new Error(`the token of ${question.kubeconfigFile} has a line break or another invalid character`);
  return jsonFrom(
    { origin, serverName: servername, tls: { ca, cert, key, pfx, passphrase, rejectUnauthorized } },
    { ...question, headers: sent },
  );
}

function configFor({ kubeconfigFile, server, caFile, serverName }: ChildRequest): KubeConfig {
  const own = new KubeConfig();
  own.loadFromFile(kubeconfigFile);
  if (server === "") return own;
  const config = new KubeConfig();
  const tls = {
    caFile,
    skipTLSVerify: false,
    ...(serverName === undefined ? {} : { tlsServerName: serverName }),
  };
  config.loadFromClusterAndUser({ name: server, server, ...tls }, own.getCurrentUser() ?? { name: "none" });
  return config;
}

function sentenceOf(reason: unknown): string {
  return failureFrom(reason, "backend").message.split("\n")[0] ?? "";
}

process.on("message", (question: ChildRequest) => {
  replyTo(question)
    .catch((reason: unknown): ChildReply => ({ id: question.id, failure: sentenceOf(reason) }))
    .then((reply) => process.send?.(reply))
    .catch(() => process.exit(1));
});
// Ends this child process when the proxy has ended, because only the proxy reads the replies.
process.on("disconnect", () => process.exit(0));
