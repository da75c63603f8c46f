package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// form is one way to watch: the resource, the encoding of the events, and the options of the request.
type form struct {
	name      string
	resource  string
	bookmarks bool
	label     bool
	field     bool
	side      string
	timeout   int64
	open      func(config *rest.Config, namespace, resource string) (opener, error)
}

type opener func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

func typed(accept string) func(*rest.Config, string, string) (opener, error) {
	return func(config *rest.Config, namespace, resource string) (opener, error) {
		config.AcceptContentTypes = accept
		config.ContentType = strings.Split(accept, ",")[0]
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		if resource == "events" {
			return client.CoreV1().Events(namespace).Watch, nil
		}
		return client.CoreV1().ConfigMaps(namespace).Watch, nil
	}
}

func partial(config *rest.Config, namespace, resource string) (opener, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).Watch, nil
}

// accepting sets the Accept header, for which the dynamic client has no option.
type accepting struct {
	next   http.RoundTripper
	accept string
}

func (a accepting) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Accept", a.accept)
	return a.next.RoundTrip(request)
}

func table(config *rest.Config, namespace, resource string) (opener, error) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return accepting{next: next, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"}
	})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).Watch, nil
}

var forms = []form{
	{name: "json", resource: "configmaps", open: typed(contentTypes["json"])},
	{name: "json, bookmarks", resource: "configmaps", bookmarks: true, open: typed(contentTypes["json"])},
	{name: "protobuf", resource: "configmaps", open: typed(contentTypes["protobuf"])},
	{name: "protobuf, bookmarks", resource: "configmaps", bookmarks: true, open: typed(contentTypes["protobuf"])},
	{name: "protobuf, label", resource: "configmaps", bookmarks: true, label: true, open: typed(contentTypes["protobuf"])},
	{name: "protobuf, side", resource: "configmaps", bookmarks: true, side: "a", open: typed(contentTypes["protobuf"])},
	{name: "json, side", resource: "configmaps", side: "b", open: typed(contentTypes["json"])},
	{name: "json, field", resource: "configmaps", bookmarks: true, field: true, open: typed(contentTypes["json"])},
	// An apiserver that does not support CBOR, or has it disabled, answers in JSON. client-go can decode CBOR with
	// KUBE_FEATURE_ClientsAllowCBOR=true.
	{name: "cbor", resource: "configmaps", bookmarks: true, open: typed("application/cbor,application/json")},
	{name: "partial metadata", resource: "configmaps", bookmarks: true, open: partial},
	{name: "table", resource: "configmaps", open: table},
	{name: "protobuf, events", resource: "events", bookmarks: true, open: typed(contentTypes["protobuf"])},
	{name: "json, events", resource: "events", open: typed(contentTypes["json"])},
	{name: "protobuf, own time-out", resource: "configmaps", bookmarks: true, timeout: 45, open: typed(contentTypes["protobuf"])},
}

// listened records how the body of the last response ended, because client-go hides most of that.
type listened struct {
	next   http.RoundTripper
	ending atomic.Value
}

type body struct {
	io.ReadCloser
	owner *listened
}

func (b body) Read(into []byte) (int, error) {
	count, err := b.ReadCloser.Read(into)
	if err != nil {
		b.owner.ending.Store(err.Error())
	}
	return count, err
}

func (l *listened) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err == nil {
		l.ending.Store("open")
		response.Body = body{response.Body, l}
	}
	return response, err
}

type told struct {
	Kind    string `json:"kind"`
	Watch   int    `json:"watch"`
	Type    string `json:"type,omitempty"`
	Key     string `json:"key,omitempty"`
	Version string `json:"version,omitempty"`
	At      int64  `json:"at"`
	// Only for kind "opened": which events this watch must deliver.
	Form     string `json:"form,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	Contains string `json:"contains,omitempty"`
	Side     string `json:"side,omitempty"`
	Relisted bool   `json:"relisted,omitempty"`
	// Only for kind "ended". EOF means that the stream ended with END_STREAM.
	How string `json:"how,omitempty"`
}

var saying sync.Mutex

func tell(line told) {
	saying.Lock()
	defer saying.Unlock()
	line.At = time.Now().UnixMilli()
	say(line)
}

// watches runs `count` watches until ctx ends. They use the forms in turn, and the namespaces in turn.
func watches(ctx context.Context, base *rest.Config, namespaces []string, count int) {
	var all sync.WaitGroup
	for number := range count {
		all.Go(func() {
			one := forms[number%len(forms)]
			namespace := namespaces[(number/len(forms))%len(namespaces)]
			if err := hold(ctx, rest.CopyConfig(base), one, namespace, number); err != nil {
				fmt.Fprintf(os.Stderr, "watch %d (%s): %v\n", number, one.name, err)
			}
		})
	}
	all.Wait()
}

func hold(ctx context.Context, config *rest.Config, one form, namespace string, number int) error {
	heard := &listened{}
	// With a dialer of its own, each watch has a connection of its own. client-go would otherwise share one connection,
	// which the proxy would bind to one backend.
	config.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		heard.next = next
		return heard
	})
	lister, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		return err
	}
	open, err := one.open(config, namespace, one.resource)
	if err != nil {
		return err
	}
	options := metav1.ListOptions{AllowWatchBookmarks: one.bookmarks}
	opened := told{Kind: "opened", Watch: number, Form: one.name, Prefix: one.resource + "/" + namespace + "/"}
	shard := strconv.Itoa(number % 4)
	if one.label {
		options.LabelSelector, opened.Contains = "shard="+shard, "-s"+shard
	}
	if one.side != "" {
		options.LabelSelector, opened.Side = "side="+one.side, one.side
	}
	if one.field {
		name := "thing-" + shard + "-s" + shard
		options.FieldSelector, opened.Contains = "metadata.name="+name, name
	}
	if one.timeout > 0 {
		options.TimeoutSeconds = &one.timeout
	}
	for ctx.Err() == nil {
		if options.ResourceVersion == "" {
			listed, err := lister.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				tell(told{Kind: "refused", Watch: number, How: "list: " + err.Error()})
				pause(ctx, time.Second)
				continue
			}
			options.ResourceVersion = listed.ResourceVersion
			opened.Version = listed.ResourceVersion
			tell(opened)
			opened.Relisted = true
		}
		began := time.Now()
		last, how := stream(ctx, open, options, number, heard)
		if ctx.Err() != nil {
			return nil
		}
		// A stream that ends within the last two seconds before its timeout counts as ended by the timeout (watch.md
		// §5.1).
		left := time.Duration(one.timeout)*time.Second - time.Since(began)
		if one.timeout > 0 && how == "EOF" && left <= 2*time.Second {
			how = "own time-out"
		}
		tell(told{Kind: "ended", Watch: number, How: how, Version: options.ResourceVersion})
		options.ResourceVersion = last
		if time.Since(began) < time.Second {
			pause(ctx, 800*time.Millisecond) // as client-go's reflector does after a stream that ended at once
		}
	}
	return nil
}

func pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

// stream runs one watch. It returns the version to resume from ("" after a 410) and how the watch ended.
func stream(ctx context.Context, open opener, options metav1.ListOptions, number int, heard *listened) (string, string) {
	version := options.ResourceVersion
	held, err := open(ctx, options)
	if err != nil {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return after(version, status.Status().Code), fmt.Sprintf("refused %d", status.Status().Code)
		}
		return version, "refused: " + err.Error()
	}
	defer held.Stop()
	for event := range held.ResultChan() {
		if event.Type == watch.Error {
			status, isStatus := event.Object.(*metav1.Status)
			if !isStatus {
				return version, fmt.Sprintf("error %T", event.Object)
			}
			return after(version, status.Code), fmt.Sprintf("error %d %s", status.Code, status.Message)
		}
		key, now := named(event)
		if now != "" {
			version = now
		}
		if event.Type != watch.Bookmark {
			tell(told{Kind: "event", Watch: number, Type: string(event.Type), Key: key, Version: now})
		}
	}
	ending, _ := heard.ending.Load().(string)
	return version, ending
}

func after(version string, code int32) string {
	if code == http.StatusGone {
		return ""
	}
	return version
}

// named returns the name and the version of an event's object. A Table has the object in its only row.
func named(event watch.Event) (string, string) {
	if row, isTable := event.Object.(*unstructured.Unstructured); isTable && row.GetKind() == "Table" {
		rows, _, _ := unstructured.NestedSlice(row.Object, "rows")
		if len(rows) == 0 {
			return "", row.GetResourceVersion()
		}
		object, _, _ := unstructured.NestedMap(rows[0].(map[string]any), "object")
		inner := unstructured.Unstructured{Object: object}
		return inner.GetNamespace() + "/" + inner.GetName(), inner.GetResourceVersion()
	}
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return "", ""
	}
	return object.GetNamespace() + "/" + object.GetName(), object.GetResourceVersion()
}
