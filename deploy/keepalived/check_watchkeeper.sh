#!/bin/sh
# /etc/keepalived/check_watchkeeper.sh: succeeds if one of the node's watchkeeper pods can serve new clients. Without
# "exclude=intake", the VIP would leave a node whose watchkeeper is full, and all its clients would connect to the next node.
# The argument is "https" if the pods have --secure-metrics. On loopback, the certificate need not be verified.
for port in 7481 7482; do
  curl --silent --insecure --fail --max-time 1 --output /dev/null "${1:-http}://127.0.0.1:$port/readyz?exclude=intake" && exit 0
done
exit 1
