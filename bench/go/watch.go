package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// watch opens -clients sessions. On the command "open" it opens -watches watches on each. On "fanout N" it has the
// backend send N events to all watches, each as soon as the previous one has arrived on every watch.
func watch(args []string) error {
	flags := flag.NewFlagSet("watch", flag.ExitOnError)
	address := flags.String("to", "", "proxy")
	control := flags.String("control", "", "the backend's control port")
	dir := flags.String("pki", ".", "folder of ca.crt")
	clients := flags.Int("clients", 50, "sessions")
	watches := flags.Int("watches", 100, "watches on each")
	size := flags.Int("size", 1024, "bytes an event")
	pace := flags.Int("pace", 0, "watches opened a second; 0: as fast as they are taken")
	flags.Parse(args)
	to, err := targetOf(*address, *dir)
	if err != nil {
		return err
	}
	var opened, events, broken atomic.Int64
	then := heard{
		onHead: func(_ uint32, ok bool) {
			if ok {
				opened.Add(1)
			} else {
				broken.Add(1)
			}
		},
		onData: func(_ uint32, data []byte) { events.Add(int64(bytes.Count(data, []byte{'\n'}))) },
		onEnd:  func(uint32, bool) { broken.Add(1) },
	}
	if err := warm(to, smallPath, warmUps); err != nil {
		return err
	}
	var all []*client
	for range *clients {
		c, err := greet(to, smallPath, then)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	// The responses to the greetings also consist of lines, which were counted as events.
	events.Store(0)
	say(map[string]any{"ready": "clients"})
	total := int64(*clients * *watches)
	for word, ok := hear(); ok; word, ok = hear() {
		began := time.Now()
		if rounds, isFanOut := strings.CutPrefix(word, "fanout "); isFanOut {
			n, _ := strconv.Atoi(rounds)
			for range n {
				if err := fanOutOnce(*control, *size, total, &events, &broken); err != nil {
					return err
				}
			}
			say(map[string]any{"events": total * int64(n), "seconds": time.Since(began).Seconds()})
			continue
		}
		for i := range *watches {
			for at, c := range all {
				if *pace > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(i*len(all)+at) * time.Second / time.Duration(*pace))))
				}
				if _, err := c.get(fmt.Sprintf("/api/v1/namespaces/n%d/pods?allowWatchBookmarks=true&resourceVersion=100&timeoutSeconds=540&watch=true", i)); err != nil {
					return err
				}
			}
		}
		if err := reach(&opened, total, &broken); err != nil {
			return err
		}
		say(map[string]any{"ready": "watches", "seconds": time.Since(began).Seconds()})
	}
	return nil
}

func fanOutOnce(control string, size int, watches int64, events, broken *atomic.Int64) error {
	events.Store(0)
	response, err := http.Post(fmt.Sprintf("http://%s/fanout?size=%d", control, size), "", nil)
	if err != nil {
		return err
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
	return reach(events, watches, broken)
}

// reach waits until the count reaches `wanted`. It fails after 30 seconds or if a watch breaks, and says how far the
// count came.
func reach(count *atomic.Int64, wanted int64, broken *atomic.Int64) error {
	for began := time.Now(); count.Load() < wanted; time.Sleep(time.Millisecond) {
		if broken.Load() > 0 || time.Since(began) > 30*time.Second {
			return fmt.Errorf("%d of %d arrived, %d watches broken", count.Load(), wanted, broken.Load())
		}
	}
	return nil
}
