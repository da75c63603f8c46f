/**
 * Runs the credential plugin of a kubeconfig once, to get a client certificate. The proxy itself must present this
 * certificate to the apiserver, because the client's TLS connection ends at the proxy. A token from the plugin is not
 * used, because the client's own tokens pass through the proxy.
 */
import { KubeConfig } from "@kubernetes/client-node";
import { wallClock } from "../../../base/clock.ts";
import { Failure, failureFrom } from "../../../base/failure.ts";
import { textAt } from "../../../base/json.ts";
import { quote } from "../../config/problem.ts";
import type { Pair } from "../../pki/pki.ts";
import { rowOf } from "../commands/rows.ts";
import type { Context } from "./kubeconfig.ts";

/** Milliseconds that the plugin may take. It may open a browser and wait for the user. */
const timeoutMs = 60_000;

/** Returns the certificate; undefined if the plugin returns none, or needs a terminal, which only kubectl gives it. */
export async function certificateFromPlugin({ name, user }: Context): Promise<Pair | undefined | Failure> {
  const exec = rowOf(user["exec"]);
  const command = textAt(exec, "command");
  if (command === "" || exec["interactiveMode"] === "Always") return undefined;
  const late = Promise.withResolvers<Failure>();
  const stop = wallClock.after(timeoutMs, () =>
    late.resolve(refuse(command, `did not answer in ${timeoutMs / 1000} s`)),
  );
  try {
    return await Promise.race([ask(name, exec), late.promise]);
  } catch (reason) {
    // A parser's error message is not shown, because it may quote the plugin's output, which may contain a token.
    const isSecret = reason instanceof SyntaxError || reason instanceof TypeError;
    return refuse(
      command,
      isSecret ? "printed no ExecCredential" : failureFrom(reason, "client").message.trim(),
    );
  } finally {
    stop();
  }
}

function refuse(command: string, why: string): Failure {
  return new Failure("bad-file", "client", `The credential plugin ${quote(command)} failed: ${why}`);
}

async function ask(name: string, exec: Context["user"]): Promise<Pair | undefined> {
  const config = new KubeConfig();
  const cluster = { name, server: "https://kubernetes.default.svc", skipTLSVerify: false };
  // Sets the variable KUBERNETES_EXEC_INFO, as kubectl always does. Newer plugins need this variable, and the npm
  // package @kubernetes/client-node does not set it.
  const info = {
    apiVersion: exec["apiVersion"] ?? "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    spec: { interactive: false },
  };
  const given = Array.isArray(exec["env"]) ? exec["env"] : [];
  const env = [...given, { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(info) }];
  config.loadFromClusterAndUser(cluster, { name, exec: { ...exec, env } });
  const options: { cert?: unknown; key?: unknown } = {};
  await config.applyToHTTPSOptions(options);
  const [certificate, key] = [textAt(options, "cert"), textAt(options, "key")];
  return certificate === "" || key === "" ? undefined : { certificate, key };
}
