#!/bin/sh
# /etc/keepalived/check_watchkeeper.sh: succeeds if one of the node's watchkeeper pods can serve new clients. Without
# "exclude=intake", the VIP would leave a node whose watchkeeper is full, and all its clients would connect to the next node.
for port in 7481 7482; do
  curl --silent --fail --max-time 1 --output /dev/null "http://127.0.0.1:$port/readyz?exclude=intake" && exit 0
done
exit 1
