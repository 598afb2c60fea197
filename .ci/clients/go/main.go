// franz-go as a client under check; what it has to do is told in ../README.md.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func record(topic string, i int) *kgo.Record {
	r := &kgo.Record{Topic: topic}
	if i%50 != 49 {
		r.Key = []byte(fmt.Sprintf("key-%d", i%101))
	}
	if i%77 != 76 {
		r.Value = []byte(fmt.Sprintf("%d:", i) + strings.Repeat("abcdefghijklmnop", i%40))
	}
	switch i % 3 {
	case 0:
		r.Headers = []kgo.RecordHeader{{Key: "a", Value: []byte(strconv.Itoa(i))}, {Key: "a", Value: []byte("again")}}
	case 2:
		r.Headers = []kgo.RecordHeader{{Key: "empty", Value: []byte{}}, {Key: "none"}, {Key: "z", Value: []byte("zürich")}}
	}
	return r
}

func create(ctx context.Context, bootstrap string, args []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = args[0], int32(number(args[1])), 1
	request := kmsg.NewCreateTopicsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, topic), 30000
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

func produce(ctx context.Context, bootstrap string, args []string) error {
	topic, first, count := args[0], number(args[1]), number(args[2])
	codec := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[args[3]]
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}[args[4]]
	options := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(acks), kgo.ProducerLinger(5 * time.Millisecond)}
	if args[5] != "true" {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	results := make(chan error, count)
	for i := first; i < first+count; i++ {
		client.Produce(ctx, record(topic, i), func(_ *kgo.Record, err error) { results <- err })
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	for i := 0; i < count; i++ {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}

func consume(ctx context.Context, bootstrap string, args []string) error {
	topic, group, wanted, idle := args[0], args[1], number(args[2]), time.Duration(number(args[3]))*time.Millisecond
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group),
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for got := 0; got < wanted; {
		patience, cancel := context.WithTimeout(ctx, idle)
		fetches := client.PollRecords(patience, 100)
		done := patience.Err() != nil
		cancel()
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return e.Err
			}
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var tags []string
			for _, h := range r.Headers {
				tags = append(tags, h.Key+"="+text(h.Value))
			}
			fmt.Fprintf(out, "%d\t%d\t%s\t%s\t%s\n", r.Partition, r.Offset, text(r.Key), text(r.Value), strings.Join(tags, ","))
			got++
		})
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
		if done {
			break
		}
	}
	return nil
}

func text(data []byte) string {
	if data == nil {
		return "NULL"
	}
	return string(data)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	commands := map[string]func(context.Context, string, []string) error{"create": create, "produce": produce, "consume": consume}
	if err := commands[os.Args[1]](ctx, os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
