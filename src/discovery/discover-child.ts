/**
 * The main file of the child process that sends requests to apiservers with a kubeconfig (kubernetes-child.ts). The
 * child keeps no state, so the proxy may end a slow child and start another.
 */
import { KubeConfig } from "@kubernetes/client-node";
import { failureFrom } from "../base/failure.ts";
import { type JsonOptions, jsonFrom } from "./json-request.ts";
import type { ChildReply, ChildRequest } from "./kubernetes-child.ts";

async function replyTo(question: ChildRequest): Promise<ChildReply> {
  const { id, server } = question;
  const config = configFor(question);
  const url = config.getCurrentCluster()?.server ?? "";
  try {
    const options: JsonOptions = {};
    await config.applyToHTTPSOptions(options);
    return { id, answer: await jsonFrom(url, options, question) };
  } catch (reason) {
    return { id, refusal: server === "" ? `${url}: ${sentenceOf(reason)}` : sentenceOf(reason) };
  }
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
