module watchkeeper.dev/test/real/prometheus-operator

go 1.26.0

// Nothing of it is built: build.ts takes the CRDs that it publishes. So `go mod tidy` would drop this line.
require github.com/prometheus-operator/prometheus-operator v0.85.0
