import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Classic consumer groups seen from several members at once: eager and cooperative rebalances, and static members.
 *
 * <pre>Rebalances BOOTSTRAP</pre>
 */
public final class Rebalances {
    private static final int PARTITIONS = 6;
    private final String bootstrap;
    private final String topic = "rebalances-" + UUID.randomUUID();
    private final List<Member> members = new ArrayList<>();

    /** One consumer, polled by {@link #until}; it remembers what was taken from it. */
    private final class Member implements ConsumerRebalanceListener, AutoCloseable {
        final KafkaConsumer<String, String> consumer;
        final Set<Integer> revoked = new TreeSet<>();
        int assignments;
        RuntimeException failure;

        Member(String group, String assignor, String instance) {
            Properties config = new Properties();
            config.put("bootstrap.servers", bootstrap);
            config.put("group.id", group);
            config.put("auto.offset.reset", "earliest");
            config.put("session.timeout.ms", "10000");
            config.put("heartbeat.interval.ms", "100");
            config.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
            if (instance != null) {
                config.put("group.instance.id", instance);
            }
            consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
            consumer.subscribe(List.of(topic), this);
            members.add(this);
        }

        Set<Integer> assigned() {
            Set<Integer> all = new TreeSet<>();
            consumer.assignment().forEach(p -> all.add(p.partition()));
            return all;
        }

        void poll() {
            try {
                consumer.poll(Duration.ofMillis(50));
            } catch (RuntimeException e) {
                failure = e;
            }
        }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(p -> revoked.add(p.partition()));
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assignments++;
        }

        @Override public void close() {
            members.remove(this);
            consumer.close();
        }
    }

    private Rebalances(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] args) throws Exception {
        Rebalances checks = new Rebalances(args[0]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            admin.createTopics(List.of(new NewTopic(checks.topic, PARTITIONS, (short) 1))).all().get();
        }
        checks.eager();
        checks.cooperative();
        checks.staticMembers();
        System.out.println("eager, cooperative and static members: fine");
    }

    private void eager() {
        Member a = new Member("eager", "RangeAssignor", null);
        until("one member has everything", () -> a.assigned().size() == PARTITIONS);
        Member b = new Member("eager", "RangeAssignor", null);
        until("two members share", () -> shared(3, 3));
        require(a.revoked.size() == PARTITIONS, "an eager rebalance takes everything away first, took " + a.revoked);
        b.close();
        until("what a leaving member had goes to the other", () -> a.assigned().size() == PARTITIONS);
        a.close();
    }

    private void cooperative() {
        Member a = new Member("cooperative", "CooperativeStickyAssignor", null);
        until("one member has everything", () -> a.assigned().size() == PARTITIONS);
        Member b = new Member("cooperative", "CooperativeStickyAssignor", null);
        until("two members share", () -> shared(3, 3));
        require(a.revoked.equals(b.assigned()), "only what moves is revoked: revoked " + a.revoked + ", moved " + b.assigned());
        Member c = new Member("cooperative", "CooperativeStickyAssignor", null);
        until("three members share", () -> shared(2, 2, 2));
        c.close();
        until("two members share again", () -> shared(3, 3));
        b.close();
        until("one member has everything again", () -> a.assigned().size() == PARTITIONS);
        a.close();
    }

    private void staticMembers() {
        Member a = new Member("static", "RangeAssignor", "instance-a");
        Member b = new Member("static", "RangeAssignor", "instance-b");
        until("two static members share", () -> shared(3, 3));
        Set<Integer> had = b.assigned();
        int assignments = a.assignments;
        b.close();
        Member again = new Member("static", "RangeAssignor", "instance-b");
        until("a static member that comes back gets what it had", () -> again.assigned().equals(had));
        require(a.assignments == assignments, "a static member's return disturbs nobody: " + (a.assignments - assignments) + " rebalances seen");
        Member twin = new Member("static", "RangeAssignor", "instance-b");
        until("the older of two with one instance id is fenced", () -> again.failure instanceof FencedInstanceIdException);
        until("the newer one has its partitions", () -> twin.assigned().equals(had));
        again.close();
        twin.close();
        a.close();
    }

    private boolean shared(int... counts) {
        Set<Integer> all = new TreeSet<>();
        List<Integer> sizes = new ArrayList<>();
        for (Member m : members) {
            all.addAll(m.assigned());
            sizes.add(m.assigned().size());
        }
        List<Integer> wanted = new ArrayList<>();
        for (int c : counts) {
            wanted.add(c);
        }
        return all.size() == PARTITIONS && sizes.equals(wanted);
    }

    private void until(String what, BooleanSupplier holds) {
        long end = System.currentTimeMillis() + 30_000;
        while (!holds.getAsBoolean()) {
            if (System.currentTimeMillis() > end) {
                List<String> now = new ArrayList<>();
                members.forEach(m -> now.add(m.assigned() + (m.failure == null ? "" : " " + m.failure)));
                throw new AssertionError("not reached within 30 s: " + what + "; assigned: " + now);
            }
            List.copyOf(members).forEach(Member::poll);
        }
        System.out.println("  " + what);
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}
