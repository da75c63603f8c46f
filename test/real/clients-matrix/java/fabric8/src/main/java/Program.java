import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.ExecWatch;
import io.fabric8.kubernetes.client.dsl.LogWatch;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.io.File;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

/** Operations of fabric8's client, as programs.ts describes them: {@code KUBECONFIG NAMESPACE crud|watch|websocket-watch|exec|logs}. */
public final class Program {
  private static ConfigMap configMap(String value) {
    return new ConfigMapBuilder().withNewMetadata().withName("a").endMetadata().addToData("key", value).build();
  }

  private static int crud(KubernetesClient client, String namespace) {
    var all = client.configMaps().inNamespace(namespace);
    Resource<ConfigMap> one = all.withName("a");
    System.out.println("created " + all.resource(configMap("one")).create().getData().get("key"));
    System.out.println("read " + one.get().getData().get("key"));
    System.out.println("replaced " + all.resource(configMap("two")).update().getData().get("key"));
    ConfigMap patched = one.patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"key\":\"three\"}}");
    System.out.println("patched " + patched.getData().get("key"));
    var names = all.list().getItems().stream().map(item -> item.getMetadata().getName());
    System.out.println("listed " + names.collect(Collectors.joining(" ")));
    one.delete();
    System.out.println("deleted");
    System.out.println(one.get() == null ? "not found" : "found");
    return 0;
  }

  private static int watch(KubernetesClient client, String namespace) {
    var all = client.configMaps().inNamespace(namespace);
    String version = all.list().getMetadata().getResourceVersion();
    System.out.println("listed");
    CompletableFuture<Integer> over = new CompletableFuture<>();
    Watcher<ConfigMap> watcher =
        new Watcher<>() {
          @Override
          public void eventReceived(Action action, ConfigMap object) {
            if (action == Action.BOOKMARK) return;
            System.out.println(action + " " + object.getMetadata().getName());
            if (object.getMetadata().getName().equals("last")) over.complete(0);
          }

          @Override
          public void onClose(WatcherException error) {
            System.out.println("watch ended: " + error);
            over.complete(1);
          }
        };
    all.withResourceVersion(version).watch(watcher);
    return over.join();
  }

  private static int exec(KubernetesClient client, String namespace) {
    ExecWatch shell =
        client
            .pods()
            .inNamespace(namespace)
            .withName("shell")
            .redirectingInput()
            .writingOutput(System.out)
            .writingError(System.err)
            .exec("sh");
    Thread feed = new Thread(() -> copy(System.in, shell));
    feed.setDaemon(true);
    feed.start();
    Integer code = shell.exitCode().join();
    return code == null ? 1 : code;
  }

  private static void copy(InputStream from, ExecWatch shell) {
    try {
      byte[] bytes = new byte[4096];
      for (int count = from.read(bytes); count >= 0; count = from.read(bytes)) {
        shell.getInput().write(bytes, 0, count);
        shell.getInput().flush();
      }
    } catch (java.io.IOException error) {
      System.err.println(error);
    }
  }

  private static int logs(KubernetesClient client, String namespace) throws Exception {
    LogWatch log = client.pods().inNamespace(namespace).withName("shell").watchLog();
    log.getOutput().transferTo(new PrintStream(System.out, true));
    System.out.println("log ended");
    return 1;
  }

  public static void main(String[] args) throws Exception {
    Config config = Config.fromKubeconfig(new File(args[0]));
    // Else a watch that ends is opened again, and a write of unknown outcome is sent again.
    config.setWatchReconnectLimit(0);
    config.setRequestRetryBackoffLimit(0);
    // Its default is to watch over a websocket.
    config.setOnlyHttpWatches(args[2].equals("watch"));
    KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build();
    int code =
        switch (args[2]) {
          case "crud" -> crud(client, args[1]);
          case "watch", "websocket-watch" -> watch(client, args[1]);
          case "exec" -> exec(client, args[1]);
          default -> logs(client, args[1]);
        };
    System.out.flush();
    Runtime.getRuntime().halt(code);
  }
}
