/**
 * The names that kube-apiserver gives to verbs in its metrics and logs. Any other verb counts as "other", because
 * clients may send any text.
 */
const labels = new Map([
  ["get", "GET"],
  ["head", "GET"],
  ["list", "LIST"],
  ["watch", "WATCH"],
  ["create", "POST"],
  ["post", "POST"],
  ["update", "PUT"],
  ["put", "PUT"],
  ["patch", "PATCH"],
  ["delete", "DELETE"],
  ["deletecollection", "DELETECOLLECTION"],
  ["connect", "CONNECT"],
  ["proxy", "CONNECT"],
]);

export function verbLabel(verb: string): string {
  return labels.get(verb.toLowerCase()) ?? "other";
}
