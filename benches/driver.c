/* driver: puts load on one Kafka broker through librdkafka and prints one line of JSON about it.
 *
 *   driver create  BROKERS TOPIC PARTITIONS [config=value ...]
 *   driver delete  BROKERS TOPIC
 *   driver produce BROKERS TOPIC PARTITIONS COUNT SIZE [property=value ...]   as fast as it goes, until every answer is in
 *   driver latency BROKERS TOPIC PARTITIONS COUNT SIZE [property=value ...]   one record in flight, time to its answer
 *   driver consume BROKERS TOPIC PARTITIONS COUNT 0    [property=value ...]   every partition from its beginning
 *
 * property=value are librdkafka's. With BROKER_PID in the environment, the broker's processor time (user and system, from /proc) is told too.
 * The exit code is 0 only if all of it worked.
 */
#include <librdkafka/rdkafka.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char reason[512];

static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("driver: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor seconds that the broker has used so far, 0 where nobody said which process it is. */
static double broker_cpu(void)
{
    const char *pid = getenv("BROKER_PID");
    char path[64], line[2048];
    unsigned long user = 0, kernel = 0;
    if (pid == NULL)
        return 0;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail("%s cannot be read", path);
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = 0;
    /* The program's name is in parentheses and may hold anything; 11 fields after it come the two. */
    char *at = strrchr(line, ')');
    if (at == NULL)
        fail("%s is not as expected", path);
    for (int field = 0; field < 12 && at != NULL; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL || sscanf(at, " %lu %lu", &user, &kernel) != 2)
        fail("%s is not as expected", path);
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    if (rd_kafka_conf_set(conf, name, value, reason, sizeof reason) != RD_KAFKA_CONF_OK)
        fail("%s", reason);
}

/* Splits name=value in place and returns the value. */
static char *split(char *setting)
{
    char *equals = strchr(setting, '=');
    if (equals == NULL)
        fail("'%s' is not name=value", setting);
    *equals = 0;
    return equals + 1;
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *brokers, char **settings)
{
    set(conf, "bootstrap.servers", brokers);
    for (; *settings != NULL; settings++) {
        char *value = split(*settings);
        set(conf, *settings, value);
    }
    rd_kafka_t *rk = rd_kafka_new(type, conf, reason, sizeof reason);
    if (rk == NULL)
        fail("%s", reason);
    return rk;
}

static char *none[] = {NULL};

static void create_topic(const char *brokers, const char *topic, int partitions, char **configs)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), brokers, none);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, partitions, 1, reason, sizeof reason);
    if (wanted == NULL)
        fail("%s", reason);
    for (; *configs != NULL; configs++) {
        char *value = split(*configs);
        rd_kafka_NewTopic_set_config(wanted, *configs, value);
    }
    rd_kafka_CreateTopics(rk, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 60000);
    if (event == NULL || rd_kafka_event_error(event))
        fail("the topic was not created: %s", event == NULL ? "no answer" : rd_kafka_event_error_string(event));
    size_t count;
    const rd_kafka_topic_result_t **results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (count != 1 || rd_kafka_topic_result_error(results[0]))
        fail("the topic was not created: %s", rd_kafka_topic_result_error_string(results[0]));
    exit(0);
}

static void delete_topic(const char *brokers, char *topic)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), brokers, none);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *wanted = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_DeleteTopics(rk, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 60000);
    if (event == NULL || rd_kafka_event_error(event))
        fail("the topic was not deleted");
    exit(0);
}

struct answers {
    long good, bad;
    rd_kafka_resp_err_t last_error;
};

static void answered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    struct answers *answers = opaque;
    (void)rk;
    if (message->err) {
        answers->bad++;
        answers->last_error = message->err;
    } else {
        answers->good++;
    }
}

static void send_record(rd_kafka_t *rk, const char *topic, int partition, char *value, size_t size)
{
    for (;;) {
        rd_kafka_resp_err_t error = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE(value, size),
                                                      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
            return;
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            fail("%s", rd_kafka_err2str(error));
        rd_kafka_poll(rk, 5);
    }
}

enum { TEXT = 1 << 20 };

/* Text that a compressor can do something with, though not everything, the same in every run. */
static char *make_text(size_t size)
{
    char *text = malloc(TEXT + size);
    unsigned state = 2463534242u;
    if (text == NULL)
        fail("no memory");
    for (size_t i = 0; i < TEXT + size; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        text[i] = "abcdefghijklmnopqrstuvwxyz 0123456789"[state % 37];
    }
    return text;
}

/* The value of record number i: a window of the text, so that no two records near each other are the same. */
static char *value_of(char *text, long i)
{
    return text + i * 7919 % TEXT;
}

static rd_kafka_t *producer(const char *brokers, const char *topic, char *text, size_t size, struct answers *answers, const char *linger, char **settings)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "queue.buffering.max.messages", "500000");
    set(conf, "queue.buffering.max.kbytes", "262144");
    set(conf, "linger.ms", linger);
    rd_kafka_conf_set_dr_msg_cb(conf, answered);
    rd_kafka_conf_set_opaque(conf, answers);
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, conf, brokers, settings);
    /* One record first, so that connections and metadata are no part of what is measured. */
    send_record(rk, topic, 0, text, size);
    rd_kafka_flush(rk, 60000);
    if (answers->good != 1)
        fail("the first record was not taken: %s", rd_kafka_err2str(answers->last_error));
    answers->good = 0;
    return rk;
}

static int produce(const char *brokers, const char *topic, int partitions, long count, size_t size, char **settings)
{
    struct answers answers = {0};
    char *text = make_text(size);
    rd_kafka_t *rk = producer(brokers, topic, text, size, &answers, "5", settings);
    double cpu = broker_cpu(), begin = seconds();
    for (long i = 0; i < count; i++) {
        /* Runs of 64 records a partition, so that batches fill as they do with a sticky partitioner. */
        send_record(rk, topic, (int)(i / 64 % partitions), value_of(text, i), size);
        if (i % 1024 == 0)
            rd_kafka_poll(rk, 0);
    }
    rd_kafka_flush(rk, 300000);
    double took = seconds() - begin, bytes = (double)answers.good * (double)size;
    printf("{\"mode\": \"produce\", \"records\": %ld, \"failed\": %ld, \"seconds\": %.3f, \"mb_s\": %.2f, \"records_s\": %.0f, \"broker_cpu_s\": %.2f, "
           "\"broker_cpu_s_gb\": %.3f}\n",
           answers.good, answers.bad, took, bytes / 1e6 / took, (double)answers.good / took, broker_cpu() - cpu, (broker_cpu() - cpu) / (bytes / 1e9));
    if (answers.good != count)
        fprintf(stderr, "driver: %ld of %ld records were taken; the last error: %s\n", answers.good, count, rd_kafka_err2str(answers.last_error));
    return answers.good == count ? 0 : 1;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int latency(const char *brokers, const char *topic, long count, size_t size, char **settings)
{
    struct answers answers = {0};
    char *text = make_text(size);
    rd_kafka_t *rk = producer(brokers, topic, text, size, &answers, "0", settings);
    double *times = malloc(sizeof(double) * (size_t)count);
    if (times == NULL)
        fail("no memory");
    double cpu = broker_cpu();
    for (long i = 0; i < count; i++) {
        double begin = seconds();
        send_record(rk, topic, 0, value_of(text, i), size);
        while (answers.good + answers.bad <= i)
            rd_kafka_poll(rk, 1000);
        times[i] = (seconds() - begin) * 1000;
    }
    cpu = broker_cpu() - cpu;
    qsort(times, (size_t)count, sizeof(double), by_size);
    printf("{\"mode\": \"latency\", \"records\": %ld, \"failed\": %ld, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f, \"broker_cpu_s\": %.2f}\n",
           answers.good, answers.bad, times[count / 2], times[count * 99 / 100], times[count - 1], cpu);
    return answers.bad == 0 ? 0 : 1;
}

static int consume(const char *brokers, const char *topic, int partitions, long count, char **settings)
{
    enum { MANY = 10000 };
    static rd_kafka_message_t *messages[MANY];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "group.id", "benchmark");
    set(conf, "enable.auto.commit", "false");
    set(conf, "fetch.wait.max.ms", "100");
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, conf, brokers, settings);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    for (int i = 0; i < partitions; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_poll_set_consumer(rk);
    double cpu = broker_cpu(), begin = seconds(), bytes = 0;
    rd_kafka_resp_err_t error = rd_kafka_assign(rk, list);
    if (error)
        fail("%s", rd_kafka_err2str(error));
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    long got = 0;
    double last = begin;
    while (got < count && seconds() - last < 30) {
        ssize_t n = rd_kafka_consume_batch_queue(queue, 200, messages, MANY);
        for (ssize_t i = 0; i < n; i++) {
            if (!messages[i]->err) {
                got++;
                bytes += (double)messages[i]->len;
                last = seconds();
            }
            rd_kafka_message_destroy(messages[i]);
        }
    }
    double took = last - begin;
    cpu = broker_cpu() - cpu;
    printf("{\"mode\": \"consume\", \"records\": %ld, \"seconds\": %.3f, \"mb_s\": %.2f, \"records_s\": %.0f, \"broker_cpu_s\": %.2f, \"broker_cpu_s_gb\": %.3f}\n",
           got, took, bytes / 1e6 / took, (double)got / took, cpu, cpu / (bytes / 1e9));
    return got >= count ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (argc >= 5 && strcmp(mode, "create") == 0)
        create_topic(argv[2], argv[3], atoi(argv[4]), argv + 5);
    if (argc == 4 && strcmp(mode, "delete") == 0)
        delete_topic(argv[2], argv[3]);
    if (argc >= 7) {
        int partitions = atoi(argv[4]);
        long count = atol(argv[5]);
        size_t size = (size_t)atol(argv[6]);
        if (partitions < 1 || count < 1)
            fail("PARTITIONS and COUNT are at least 1");
        int code = 2;
        if (strcmp(mode, "produce") == 0)
            code = produce(argv[2], argv[3], partitions, count, size, argv + 7);
        else if (strcmp(mode, "latency") == 0)
            code = latency(argv[2], argv[3], count, size, argv + 7);
        else if (strcmp(mode, "consume") == 0)
            code = consume(argv[2], argv[3], partitions, count, argv + 7);
        if (code != 2) {
            /* Everything has been told; librdkafka's threads need not be waited for. */
            fflush(stdout);
            _exit(code);
        }
    }
    fputs("usage: driver create|delete|produce|latency|consume BROKERS TOPIC ...; the head of driver.c tells more\n", stderr);
    return 2;
}
