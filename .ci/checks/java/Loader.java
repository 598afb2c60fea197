import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Loads a partition as Apache Kafka does when it starts after an unclean stop, with its own code and without a node around it:
 * Loader PARTITION OUT DIR... makes OUT/NAME for each log directory DIR of that name, with the records that a consumer of committed
 * records would get, a line each. Many directories cost little more than one.
 */
public final class Loader {
    public static void main(String[] args) throws Exception {
        var scheduler = new KafkaScheduler(1);
        scheduler.startup();
        for (int at = 2; at < args.length; at++) {
            Path data = Path.of(args[at]);
            Files.writeString(Path.of(args[1]).resolve(data.getFileName()), load(scheduler, data, args[0]));
        }
        System.exit(0);
    }

    private static long checkpoint(Path data, String name, String partition) throws Exception {
        Path file = data.resolve(name);
        if (!Files.exists(file)) {
            return 0;
        }
        int dash = partition.lastIndexOf('-');
        String start = partition.substring(0, dash) + " " + partition.substring(dash + 1) + " ";
        return Files.readAllLines(file).stream().filter(line -> line.startsWith(start))
            .mapToLong(line -> Long.parseLong(line.substring(start.length()))).findFirst().orElse(0);
    }

    private static String load(KafkaScheduler scheduler, Path data, String partition) throws Exception {
        boolean clean = Files.exists(data.resolve(".kafka_cleanshutdown"));
        File folder = data.resolve(partition).toFile();
        UnifiedLog log = UnifiedLog.create(folder, new LogConfig(Map.of()), checkpoint(data, "log-start-offset-checkpoint", partition),
            checkpoint(data, "recovery-point-offset-checkpoint", partition), scheduler, new BrokerTopicStats(), Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), clean, Optional.empty());
        StringBuilder out = new StringBuilder();
        out.append("log\t").append(clean ? "clean" : "unclean").append('\t').append(log.logEndOffset())
            .append('\n');
        List<AbortedTxn> aborted = new ArrayList<>(log.collectAbortedTransactions(log.logStartOffset(), log.logEndOffset()));
        aborted.sort(Comparator.comparingLong(AbortedTxn::firstOffset));
        Set<Long> open = new HashSet<>();
        int next = 0;
        long offset = log.logStartOffset();
        while (offset < log.logEndOffset()) {
            var read = log.read(offset, 1 << 20, FetchIsolation.LOG_END, true);
            for (RecordBatch batch : read.records.batches()) {
                offset = batch.nextOffset();
                batch.ensureValid();
                while (next < aborted.size() && aborted.get(next).firstOffset() <= batch.lastOffset()) {
                    open.add(aborted.get(next++).producerId());
                }
                if (batch.isControlBatch()) {
                    var records = batch.iterator();
                    if (records.hasNext() && ControlRecordType.parse(records.next().key()) == ControlRecordType.ABORT) {
                        open.remove(batch.producerId());
                    }
                } else if (!batch.isTransactional() || !open.contains(batch.producerId())) {
                    for (Record record : batch) {
                        out.append(record.offset()).append('\t').append(record.timestamp()).append('\t').append(text(record.key()))
                            .append('\t').append(text(record.value())).append('\n');
                    }
                }
            }
        }
        log.close();
        return out.toString();
    }

    private static String text(ByteBuffer bytes) {
        return bytes == null ? "NULL" : StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
    }
}
