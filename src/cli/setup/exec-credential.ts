/**
 * Asks a kubeconfig's credential plugin, to see whether it gives a client certificate: a token the client fetches by
 * itself, and passes through us; a certificate would end at us.
 */
import { KubeConfig } from "@kubernetes/client-node";
import { wallClock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { quote } from "../../config/problem.ts";
import type { Pair } from "../../pki/pki.ts";
import { type Context, fieldsOf, textOf } from "./kubeconfig.ts";

/** Undefined: it gave no certificate, or it wants to talk with its user, which it may do when the client runs it. */
export async function certificateFromPlugin({ name, user }: Context): Promise<Pair | undefined | Failure> {
  const exec = fieldsOf(user["exec"]);
  const command = textOf(exec["command"]);
  if (command === "" || exec["interactiveMode"] === "Always") return undefined;
  const late = Promise.withResolvers<Failure>();
  const stop = wallClock.after(limits.execCredentialMs, () =>
    late.resolve(refuse(command, `said nothing in ${limits.execCredentialMs / 1000} s`)),
  );
  try {
    return await Promise.race([ask(name, exec), late.promise]);
  } catch (reason) {
    // A JSON parser quotes what it could not read: that may be a token.
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
  // The package leaves out what kubectl always sets, and newer plugins refuse to run without.
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
  const [certificate, key] = [textOf(options.cert), textOf(options.key)];
  return certificate === "" || key === "" ? undefined : { certificate, key };
}
