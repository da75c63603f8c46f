import com.google.gson.reflect.TypeToken;
import io.kubernetes.client.Exec;
import io.kubernetes.client.PodLogs;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.Watch;
import java.io.FileReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.Map;
import java.util.stream.Collectors;

/** Operations of the official Java client, as programs.ts describes them: {@code KUBECONFIG NAMESPACE crud|watch|exec|logs}. */
public final class Program {
  private static V1ConfigMap configMap(String value) {
    return new V1ConfigMap().metadata(new V1ObjectMeta().name("a")).data(Map.of("key", value));
  }

  private static int crud(CoreV1Api api, String namespace) throws ApiException {
    V1ConfigMap created = api.createNamespacedConfigMap(namespace, configMap("one")).execute();
    System.out.println("created " + created.getData().get("key"));
    System.out.println("read " + api.readNamespacedConfigMap("a", namespace).execute().getData().get("key"));
    V1ConfigMap replaced = api.replaceNamespacedConfigMap("a", namespace, configMap("two")).execute();
    System.out.println("replaced " + replaced.getData().get("key"));
    V1Patch patch = new V1Patch("{\"data\":{\"key\":\"three\"}}");
    V1ConfigMap patched =
        PatchUtils.patch(
            V1ConfigMap.class,
            () -> api.patchNamespacedConfigMap("a", namespace, patch).buildCall(null),
            V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH,
            api.getApiClient());
    System.out.println("patched " + patched.getData().get("key"));
    var names = api.listNamespacedConfigMap(namespace).execute().getItems().stream();
    System.out.println("listed " + names.map(item -> item.getMetadata().getName()).collect(Collectors.joining(" ")));
    api.deleteNamespacedConfigMap("a", namespace).execute();
    System.out.println("deleted");
    try {
      api.readNamespacedConfigMap("a", namespace).execute();
    } catch (ApiException error) {
      System.out.println(error.getCode() == 404 ? "not found" : error.toString());
    }
    return 0;
  }

  private static int watch(CoreV1Api api, String namespace) throws ApiException, IOException {
    String version = api.listNamespacedConfigMap(namespace).execute().getMetadata().getResourceVersion();
    System.out.println("listed");
    var type = new TypeToken<Watch.Response<V1ConfigMap>>() {}.getType();
    var call = api.listNamespacedConfigMap(namespace).watch(true).resourceVersion(version).buildCall(null);
    try (Watch<V1ConfigMap> watch = Watch.createWatch(api.getApiClient(), call, type)) {
      for (Watch.Response<V1ConfigMap> event : watch) {
        String name = event.object.getMetadata().getName();
        System.out.println(event.type + " " + name);
        if (name.equals("last")) return 0;
      }
    }
    System.out.println("watch ended");
    return 1;
  }

  private static int exec(ApiClient client, String namespace) throws Exception {
    Process shell = new Exec(client).exec(namespace, "shell", new String[] {"sh"}, true, false);
    start(() -> copy(System.in, shell.getOutputStream()));
    Thread errors = start(() -> copy(shell.getErrorStream(), System.err));
    Thread output = start(() -> copy(shell.getInputStream(), System.out));
    int code = shell.waitFor();
    output.join(5_000);
    errors.join(5_000);
    return code;
  }

  private static Thread start(Runnable run) {
    Thread thread = new Thread(run);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private static void copy(InputStream from, OutputStream to) {
    try {
      byte[] bytes = new byte[4096];
      for (int count = from.read(bytes); count >= 0; count = from.read(bytes)) {
        to.write(bytes, 0, count);
        to.flush();
      }
    } catch (IOException error) {
      System.err.println(error);
    }
  }

  private static int logs(ApiClient client, String namespace) throws Exception {
    try (InputStream log = new PodLogs(client).streamNamespacedPodLog(namespace, "shell", "main")) {
      copy(log, System.out);
    }
    System.out.println("log ended");
    return 1;
  }

  public static void main(String[] args) throws Exception {
    ApiClient client = ClientBuilder.kubeconfig(KubeConfig.loadKubeConfig(new FileReader(args[0]))).build();
    // A watch, a log or an exec may be silent.
    client.setHttpClient(client.getHttpClient().newBuilder().readTimeout(Duration.ZERO).build());
    CoreV1Api api = new CoreV1Api(client);
    int code;
    try {
      code =
          switch (args[2]) {
            case "crud" -> crud(api, args[1]);
            case "watch" -> watch(api, args[1]);
            case "exec" -> exec(client, args[1]);
            default -> logs(client, args[1]);
          };
    } catch (ApiException error) {
      System.err.println(error + " " + error.getResponseBody());
      code = 1;
    }
    System.out.flush();
    Runtime.getRuntime().halt(code);
  }
}
