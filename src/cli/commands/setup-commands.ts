/** Commands to deploy and configure watchkeeper: a part of the table of commands (commands.ts). */
import type { CommandSpec, Option } from "./command-spec.ts";

export const configOption: Option = {
  name: "config",
  short: "c",
  value: "FILE",
  isRequired: true,
  about: "the configuration file",
};

export const setupCommands = {
  sidecar: {
    summary: "serve one pod, without a configuration",
    words: "",
    options: [
      { name: "print-config", about: "print its configuration and exit" },
      { name: "port", value: "N", about: "port to listen on", usual: "7443" },
      { name: "metrics-port", value: "N", about: "port of metrics and probes", usual: "7481" },
      {
        name: "direct",
        value: "DIR",
        about: "directory of the projected token and CA",
        usual: "/var/run/secrets/watchkeeper",
      },
      {
        name: "shared",
        value: "DIR",
        about: "directory where clients look for token and CA",
        usual: "/var/run/secrets/kubernetes.io/serviceaccount",
      },
      {
        name: "state",
        value: "DIR",
        about: "directory of files that survive a restart",
        usual: "/var/run/watchkeeper",
      },
    ],
    exits: "1: it ended because of an internal error",
  },
  manifest: {
    summary: "print Kubernetes manifests: a static pod, a deployment, or a workload with a sidecar in it",
    words: "static-pod|deployment|sidecar",
    choices: ["static-pod", "deployment", "sidecar"],
    options: [
      { name: "image", value: "IMAGE", about: "image of watchkeeper", usual: "watchkeeper:VERSION" },
      {
        name: "file",
        short: "f",
        value: "FILE",
        about: "sidecar: the workload's YAML; - is stdin",
        usual: "none; required for sidecar",
      },
      {
        name: "port",
        value: "N",
        about: "static-pod, sidecar: port to listen on",
        usual: "8443, or 7443 for a sidecar",
      },
      {
        name: "metrics-port",
        value: "N",
        about: "static-pod, sidecar: port of metrics and probes",
        usual: "7481",
      },
      {
        name: "print-config",
        about: "static-pod: print the configuration file for the node instead of the pod",
      },
      {
        name: "backend",
        value: "NAME=URL",
        isMultiple: true,
        about: "static-pod: a kube-apiserver for the configuration",
      },
      { name: "passthrough", about: "static-pod: leave TLS to the apiservers; needs no key" },
      { name: "namespace", value: "NAME", about: "deployment: its namespace", usual: "watchkeeper" },
      { name: "replicas", value: "N", about: "deployment: number of replicas, from 2 to 50", usual: "2" },
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
        about: "backend or cluster of the file to import",
        usual: "the only one, or the only one whose servers have port 6443",
      },
    ],
    exits: "1: it has no backends that can be imported",
    examples: ["watchkeeper import /etc/haproxy/haproxy.cfg > watchkeeper.yaml"],
  },
  try: {
    summary: "serve the current kubectl context on this machine",
    words: "",
    options: [
      {
        name: "kubeconfig",
        value: "FILE",
        about: "kubeconfig file",
        usual: "as kubectl finds it",
      },
      { name: "context", value: "NAME", about: "context to use", usual: "the current one" },
      { name: "port", value: "N", about: "port to listen on", usual: "7443, or any free port" },
      { name: "discover", about: "discover the apiservers behind the server's address" },
    ],
    exits: "1: it could not serve",
  },
  check: {
    summary: "check whether a configuration would work",
    words: "",
    options: [configOption, { name: "offline", about: "connect to no backend" }],
    exits: "1: a check failed",
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
    summary: "make certificates, or a certificate signing request",
    words: "init|csr",
    choices: ["init", "csr"],
    options: [
      { name: "dir", value: "DIR", about: "output directory", usual: "pki" },
      {
        name: "host",
        value: "NAME",
        isMultiple: true,
        about: "DNS name or address of the proxy for the certificate",
      },
      {
        name: "signer",
        value: "NAME",
        about: "csr: Kubernetes signer",
        usual: "none; required for csr",
      },
      { name: "name", value: "NAME", about: "common name of the certificate", usual: "watchkeeper" },
    ],
    exits: "1: nothing was written",
  },
} as const satisfies Record<string, CommandSpec>;
