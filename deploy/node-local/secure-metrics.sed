# Lets Prometheus scrape the pods of this folder, with TLS and a token: sed -i -f secure-metrics.sed config.yaml watchkeeper*.yaml
# deploy/monitoring/README.md names the files that each node needs first. A second run changes nothing.
/^    watchkeeper.dev\/metrics: own-certificate$/d
s|^    app.kubernetes.io/component: node-local$|&\
    watchkeeper.dev/metrics: own-certificate|
s|httpGet: {host|httpGet: {scheme: HTTPS, host|
s|"127\.0\.0\.1:7482"|":7482"|
s|^  metricsAddress: 127\.0\.0\.1:7481$|  metricsAddress: ":7481"\
  metrics:\
    tls: {certFile: /etc/watchkeeper/metrics.crt, keyFile: /etc/watchkeeper/metrics.key}\
    authorization: {mode: Webhook, kubeconfigFile: /etc/watchkeeper/reviewer.kubeconfig}|
