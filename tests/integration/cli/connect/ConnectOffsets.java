import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.storage.KafkaOffsetBackingStore;
import org.apache.kafka.connect.storage.OffsetStorageReaderImpl;
import org.apache.kafka.connect.storage.OffsetStorageWriter;
import org.apache.kafka.connect.util.TopicAdmin;

/**
 * Kafka Connect's own reader and writer of offsets, for tests to compare with.
 *
 * <p>{@code read BOOTSTRAP TOPIC CONNECTOR} takes a JSON list of partitions on standard input and prints the list of
 * their offsets, and every partition that Connect knows of. {@code write} takes a list of {@code {"partition", "offset"}}, one flush each, in the order given.
 * {@code id GROUP CONNECTOR TASK} prints the transactional id of a task.
 */
public final class ConnectOffsets {
    private static final ObjectMapper JSON =
        new ObjectMapper().enable(DeserializationFeature.USE_LONG_FOR_INTS);

    private ConnectOffsets() {
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "read" -> read(arguments[1], arguments[2], arguments[3]);
            case "write" -> write(arguments[1], arguments[2], arguments[3]);
            case "id" -> System.out.print(
                Worker.taskTransactionalId(arguments[1], arguments[2], Integer.parseInt(arguments[3])));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void read(String bootstrap, String topic, String connector) throws Exception {
        List<LinkedHashMap<String, Object>> partitions = fromInput(new TypeReference<>() { });
        KafkaOffsetBackingStore store = started(bootstrap, topic);
        try (OffsetStorageReaderImpl reader =
                new OffsetStorageReaderImpl(store, connector, converter(true), converter(false))) {
            List<Map<String, Object>> found = new ArrayList<>();
            // One by one: two orders of one map are two questions to Connect, and one key in a map of its answers.
            for (Map<String, Object> partition : partitions) {
                found.add(reader.offset(partition));
            }
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("offsets", found);
            answer.put("partitions", store.connectorPartitions(connector));
            System.out.print(JSON.writeValueAsString(answer));
        } finally {
            store.stop();
        }
    }

    @SuppressWarnings("unchecked")
    private static void write(String bootstrap, String topic, String connector) throws Exception {
        List<LinkedHashMap<String, Object>> entries = fromInput(new TypeReference<>() { });
        KafkaOffsetBackingStore store = started(bootstrap, topic);
        try {
            OffsetStorageWriter writer =
                new OffsetStorageWriter(store, connector, converter(true), converter(false));
            for (Map<String, Object> entry : entries) {
                writer.offset((Map<String, Object>) entry.get("partition"), (Map<String, Object>) entry.get("offset"));
                if (!writer.beginFlush()) {
                    throw new IllegalStateException("nothing to flush");
                }
                writer.doFlush((error, nothing) -> { }).get(30, TimeUnit.SECONDS);
            }
        } finally {
            store.stop();
        }
    }

    private static <T> T fromInput(TypeReference<T> type) throws IOException {
        return JSON.readValue(System.in.readAllBytes(), type);
    }

    private static JsonConverter converter(boolean isKey) {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false"), isKey);
        return converter;
    }

    private static KafkaOffsetBackingStore started(String bootstrap, String topic) {
        Map<String, Object> producer = new HashMap<>();
        producer.put("bootstrap.servers", bootstrap);
        producer.put("acks", "all");
        Map<String, Object> consumer = new HashMap<>();
        consumer.put("bootstrap.servers", bootstrap);
        consumer.put("auto.offset.reset", "earliest");
        consumer.put("enable.auto.commit", "false");
        consumer.put("isolation.level", "read_committed");
        consumer.put("group.id", UUID.randomUUID().toString());
        KafkaOffsetBackingStore store = KafkaOffsetBackingStore.readWriteStore(
            topic,
            new KafkaProducer<>(producer, new ByteArraySerializer(), new ByteArraySerializer()),
            new KafkaConsumer<>(consumer, new ByteArrayDeserializer(), new ByteArrayDeserializer()),
            new TopicAdmin(Map.of("bootstrap.servers", bootstrap)),
            converter(true));
        store.configure(worker(bootstrap, topic));
        store.start();
        return store;
    }

    private static DistributedConfig worker(String bootstrap, String topic) {
        Map<String, String> properties = new HashMap<>();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", "connect");
        properties.put("key.converter", JsonConverter.class.getName());
        properties.put("value.converter", JsonConverter.class.getName());
        properties.put("offset.storage.topic", topic);
        properties.put("config.storage.topic", topic + "-configs");
        properties.put("status.storage.topic", topic + "-status");
        properties.put("exactly.once.source.support", "enabled");
        return new DistributedConfig(properties);
    }
}
