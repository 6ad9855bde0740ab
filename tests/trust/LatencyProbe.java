import java.util.Properties;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends records at a steady rate and prints, of each acknowledgement, when it was sent (ms) and how long it took (µs). */
public class LatencyProbe {
    private static final int RECORD_BYTES = 400;
    private static final int FLUSHED_CHARACTERS = 8192;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("acks", "all");
        settings.put("linger.ms", "5");
        settings.put("compression.type", "lz4");
        long pause = 1_000_000_000L / Long.parseLong(arguments[2]);
        Random random = new Random(1);
        StringBuffer lines = new StringBuffer();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            long next = System.nanoTime();
            while (true) {
                byte[] value = new byte[RECORD_BYTES];
                random.nextBytes(value);
                long sentMs = System.currentTimeMillis();
                long sent = System.nanoTime();
                producer.send(new ProducerRecord<>(arguments[1], value), (metadata, error) -> {
                    if (error == null) {
                        lines.append(sentMs).append(' ').append((System.nanoTime() - sent) / 1000).append('\n');
                    }
                });
                if (lines.length() > FLUSHED_CHARACTERS) {
                    synchronized (lines) {
                        System.out.print(lines);
                        lines.setLength(0);
                    }
                    System.out.flush();
                }
                next += pause;
                while (System.nanoTime() < next) {
                    LockSupport.parkNanos(next - System.nanoTime());
                }
            }
        }
    }
}
