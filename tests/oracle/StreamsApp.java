// A streams application of the group protocol that is named (streams is that of KIP-1071) with a repartition and a changelog topic; it ends with its input, or is killed.
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

public class StreamsApp {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", "tally");
        settings.put("group.protocol", arguments[2]);
        settings.put("state.dir", arguments[1]);
        settings.put("commit.interval.ms", "500");
        settings.put("replication.factor", "1");
        settings.put("default.key.serde", Serdes.String().getClass().getName());
        settings.put("default.value.serde", Serdes.String().getClass().getName());
        settings.put("auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("words")
            .groupBy((key, value) -> value)
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("totals"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream().mapValues(String::valueOf).to("totals");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        while (System.in.read() >= 0) { }
        streams.close(Duration.ofSeconds(20));
    }
}
