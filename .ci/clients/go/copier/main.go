// The transactional client of .ci/checks/chaos: reads one topic and copies it to two others in transactions that commit the offsets as well.
//
// `copier BOOTSTRAP SEED PARTITIONS` goes on until its standard input ends. It prints one JSON object a line for each transaction, once before
// the end is asked for and once when the end was answered:
//
//	{"number": 7, "end": "committed", "size": 40, "offsets": {"0": 1175}}
//
// `end` is `open` before, and `committed` or `aborted` after. One whose end was never answered stays open: the client that follows it, with the same
// transactional id, has the broker end it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const source, group, transactionalID = "in", "copier", "copier"

var outputs = []string{"out-a", "out-b"}

type transaction struct {
	Number  int             `json:"number"`
	End     string          `json:"end"`
	Size    int             `json:"size"`
	Offsets map[int32]int64 `json:"offsets"`
}

func (t transaction) say(end string) {
	t.End = end
	line, err := json.Marshal(t)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(line))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// What the client itself says goes to the file that COPIER_LOG names.
func logger() kgo.Logger {
	path := os.Getenv("COPIER_LOG")
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		fail(err)
	}
	return kgo.BasicLogger(file, kgo.LogLevelDebug, func() string { return time.Now().Format("15:04:05.000 ") })
}

type copier struct {
	logger     kgo.Logger
	bootstrap  string
	partitions int32
	random     *rand.Rand
	over       atomic.Bool
	number     int
	clients    int
}

func (c *copier) session() (*kgo.GroupTransactSession, error) {
	return kgo.NewGroupTransactSession(
		kgo.SeedBrokers(c.bootstrap), kgo.ClientID("copier"),
		kgo.TransactionalID(transactionalID), kgo.TransactionTimeout(time.Minute),
		// A static member, whose place the client that follows takes without waiting for its session to end.
		kgo.ConsumerGroup(group), kgo.InstanceID("copier"), kgo.ConsumeTopics(source), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(2*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 30 * time.Millisecond }), kgo.RequestRetries(10000),
		kgo.RetryTimeout(time.Minute), kgo.SessionTimeout(30*time.Second), kgo.WithLogger(c.logger),
	)
}

// run has one client copy until its end, or until it cannot go on: then another takes over.
func (c *copier) run(ctx context.Context) error {
	session, err := c.session()
	if err != nil {
		return err
	}
	defer session.Close()
	c.clients++
	// Ends what the client before may have left open; readers of stable offsets would wait for it, this one among them.
	if _, _, err := session.Client().ProducerID(ctx); err != nil {
		return err
	}
	for !c.over.Load() {
		patience, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		fetches := session.PollRecords(patience, []int{1, 10, 40}[c.random.Intn(3)])
		cancel()
		records := fetches.Records()
		if len(records) == 0 {
			continue
		}
		if err := c.transaction(ctx, session, records); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) transaction(ctx context.Context, session *kgo.GroupTransactSession, records []*kgo.Record) error {
	t := transaction{Number: c.number, Size: len(records), Offsets: map[int32]int64{}}
	c.number++
	if err := session.Begin(); err != nil {
		return err
	}
	t.say("open")
	var failed sync.Map
	for _, record := range records {
		t.Offsets[record.Partition] = record.Offset + 1
		for _, topic := range outputs {
			value := append([]byte(strconv.Itoa(t.Number)+":"), record.Value...)
			copied := &kgo.Record{Topic: topic, Partition: record.Partition % c.partitions, Value: value}
			session.Produce(ctx, copied, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Store("error", err)
				}
			})
		}
	}
	if err := session.Client().Flush(ctx); err != nil {
		return err
	}
	_, bad := failed.Load("error")
	try := kgo.TransactionEndTry(!bad && c.random.Float64() >= 0.2)
	committed, err := session.End(ctx, try)
	if err != nil {
		return err
	}
	if committed {
		t.say("committed")
	} else {
		t.say("aborted")
	}
	return nil
}

func main() {
	seed, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		fail(err)
	}
	partitions, err := strconv.Atoi(os.Args[3])
	if err != nil {
		fail(err)
	}
	c := &copier{logger: logger(), bootstrap: os.Args[1], partitions: int32(partitions), random: rand.New(rand.NewSource(seed))}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		c.over.Store(true)
	}()
	for !c.over.Load() {
		if err := c.run(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "another client takes over:", err)
		}
	}
	fmt.Fprintln(os.Stderr, "clients:", c.clients)
}
