/** The part of the table of commands (commands.ts) by which watchkeeper is put where it is to serve. */
import type { CommandSpec, Option } from "./command-spec.ts";

export const configOption: Option = {
  name: "config",
  short: "c",
  value: "FILE",
  isRequired: true,
  about: "the configuration",
};

export const setupCommands = {
  sidecar: {
    summary: "serve one pod, without a configuration",
    words: "",
    options: [
      { name: "print-config", about: "print what it would serve with, and end" },
      { name: "port", value: "N", about: "where it listens", usual: "7443" },
      { name: "metrics-port", value: "N", about: "where metrics and probes are", usual: "7481" },
      {
        name: "direct",
        value: "DIR",
        about: "where the pod's own token and CA are",
        usual: "/var/run/secrets/watchkeeper",
      },
      {
        name: "shared",
        value: "DIR",
        about: "where the other containers look for theirs",
        usual: "/var/run/secrets/kubernetes.io/serviceaccount",
      },
      { name: "state", value: "DIR", about: "what is kept over a restart", usual: "/var/run/watchkeeper" },
    ],
    exits: "1: it ended for a fault of its own",
  },
  manifest: {
    summary:
      "print what Kubernetes needs to run it: a static pod, a deployment, or a workload with a sidecar in it",
    words: "static-pod|deployment|sidecar",
    choices: ["static-pod", "deployment", "sidecar"],
    options: [
      { name: "image", value: "IMAGE", about: "watchkeeper's image", usual: "watchkeeper:VERSION" },
      {
        name: "file",
        short: "f",
        value: "FILE",
        about: "sidecar: the workload's YAML; - is stdin",
        usual: "none, and sidecar needs one",
      },
      {
        name: "port",
        value: "N",
        about: "static-pod, sidecar: where it listens",
        usual: "8443, or 7443 for a sidecar",
      },
      {
        name: "metrics-port",
        value: "N",
        about: "static-pod, sidecar: where its metrics and probes are",
        usual: "7481",
      },
      {
        name: "print-config",
        about: "static-pod: print its configuration, which is a file on the node, and not the pod",
      },
      {
        name: "backend",
        value: "NAME=URL",
        isMultiple: true,
        about: "static-pod: a kube-apiserver for the configuration",
      },
      { name: "passthrough", about: "static-pod: leave TLS to the apiservers, and need no key" },
      { name: "namespace", value: "NAME", about: "deployment: where", usual: "watchkeeper" },
      { name: "replicas", value: "N", about: "deployment: how many, from 2 to 50", usual: "2" },
    ],
    exits: "1: the workload cannot have a sidecar",
    examples: [
      "watchkeeper manifest static-pod --print-config --backend cp-1=https://10.0.0.11:6443 > watchkeeper.yaml",
      "watchkeeper manifest static-pod --image registry.example.com/watchkeeper:0.1.0 > /etc/kubernetes/manifests/watchkeeper.yaml",
      "watchkeeper manifest deployment | kubectl apply -f -",
      "watchkeeper manifest sidecar -f app.yaml | kubectl apply -f -",
    ],
  },
  import: {
    summary: "print a configuration with the backends of a haproxy.cfg or an envoy.yaml",
    words: "FILE",
    options: [
      {
        name: "from",
        value: "NAME",
        about: "which backend or cluster of the file",
        usual: "the only one, or the only one whose servers have port 6443",
      },
    ],
    exits: "1: it names no backends that could be taken over",
    examples: ["watchkeeper import /etc/haproxy/haproxy.cfg > watchkeeper.yaml"],
  },
  try: {
    summary: "serve the current kubectl context on this machine",
    words: "",
    options: [
      {
        name: "kubeconfig",
        value: "FILE",
        about: "where the clusters are from",
        usual: "as kubectl finds it",
      },
      { name: "context", value: "NAME", about: "which one of its contexts", usual: "its current one" },
      { name: "port", value: "N", about: "where it listens", usual: "7443, or any if that is taken" },
      { name: "discover", about: "find the apiservers behind its address" },
    ],
    exits: "1: it could not serve",
  },
  check: {
    summary: "say whether a configuration would serve",
    words: "",
    options: [configOption, { name: "offline", about: "ask no backend" }],
    exits: "1: something would not work",
  },
  config: {
    summary: "print a commented configuration to start from",
    words: "",
    options: [
      {
        name: "convert",
        value: "FILE",
        about: "print this v1alpha1 configuration as v1alpha2 instead",
        usual: "a sample is printed",
      },
    ],
    exits: "1: the converted configuration is not valid",
    examples: ["watchkeeper config --convert watchkeeper.yaml > converted.yaml"],
  },
  pki: {
    summary: "make certificates, or a request for one",
    words: "init|csr",
    choices: ["init", "csr"],
    options: [
      { name: "dir", value: "DIR", about: "where the files are written", usual: "pki" },
      { name: "host", value: "NAME", isMultiple: true, about: "a name or an address that clients use" },
      {
        name: "signer",
        value: "NAME",
        about: "csr: who of Kubernetes is to sign it",
        usual: "none, and csr needs one",
      },
      { name: "name", value: "NAME", about: "what the certificate calls itself", usual: "watchkeeper" },
    ],
    exits: "1: nothing was written",
  },
} as const satisfies Record<string, CommandSpec>;
