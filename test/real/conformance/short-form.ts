/**
 * Parts of the titles of the specs that CI has time for. These specs depend on watches, on lists in chunks, on leases,
 * or on controllers that observe each other's writes.
 */
export const shortForm: readonly string[] = [
  "[sig-api-machinery] Watchers",
  "[sig-api-machinery] CustomResourceDefinition Watch",
  "[sig-api-machinery] Garbage collector should delete",
  "[sig-api-machinery] Garbage collector should not be blocked by dependency circle",
  "[sig-api-machinery] OrderedNamespaceDeletion",
  "[sig-api-machinery] ResourceQuota should create a ResourceQuota",
  "[sig-api-machinery] Servers with support for API chunking should return chunks",
  // These specs wait for real time to pass. They keep the suite running for at least two minutes, so that they are
  // running during each fault.
  "[sig-apps] CronJob should schedule multiple jobs concurrently",
  "[sig-apps] CronJob should not schedule new jobs when ForbidConcurrent",
  "[sig-apps] Deployment",
  "[sig-apps] DisruptionController",
  "[sig-apps] Job should delete a job",
  "[sig-apps] ReplicaSet",
  "[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should list, patch and delete",
  "[sig-auth]",
  "[sig-instrumentation]",
  "[sig-network] EndpointSlice should create",
  "[sig-node] Lease",
  "[sig-node] Pods should delete a collection of pods",
];
