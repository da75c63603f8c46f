# sed -f prometheusrule.sed rules.yaml | kubectl apply -f -
# makes the rules an object of the Prometheus Operator. Add the labels by which your Prometheus selects its rules.
s/^/  /
1i\
apiVersion: monitoring.coreos.com/v1\
kind: PrometheusRule\
metadata:\
  name: watchkeeper\
  labels:\
    app.kubernetes.io/name: watchkeeper\
spec:
