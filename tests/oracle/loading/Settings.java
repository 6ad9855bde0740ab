import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Reads NAME<TAB>VALUE a line and says what KafkaConfig throws of a broker that has this setting: CLASS<TAB>MESSAGE, or an empty line. */
public class Settings {
    public static void main(String[] arguments) throws Exception {
        boolean hasZooKeeper = Boolean.parseBoolean(arguments[0]);
        Constructor<?> config = Class.forName("kafka.server.KafkaConfig").getConstructor(Map.class);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] given = line.split("\t", -1);
            Map<String, String> settings = new HashMap<>();
            if (hasZooKeeper) {
                settings.put("zookeeper.connect", "localhost:1");
            } else {
                settings.put("process.roles", "broker,controller");
                settings.put("controller.quorum.voters", "1@localhost:9093");
                settings.put("controller.listener.names", "C");
                settings.put("listeners", "P://:9092,C://:9093");
                settings.put("listener.security.protocol.map", "P:PLAINTEXT,C:PLAINTEXT");
                settings.put("inter.broker.listener.name", "P");
                settings.put("node.id", "1");
            }
            settings.put("broker.id", "1");
            settings.put(given[0], given[1]);
            String thrown = "";
            try {
                config.newInstance(settings);
            } catch (InvocationTargetException error) {
                thrown = error.getCause().getClass().getSimpleName() + "\t" + error.getCause().getMessage();
            }
            System.out.println(thrown);
        }
    }
}
