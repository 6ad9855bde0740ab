import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Reads NAME<TAB>VALUE<TAB>NAME<TAB>VALUE... a line and says what KafkaConfig throws of a broker that has these settings: CLASS<TAB>MESSAGE, or an empty line.
 * With "define" it writes the definitions of all settings instead: SCOPE<TAB>NAME<TAB>TYPE<TAB>RULE<TAB>DEFAULT.
 */
public class Settings {
    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("define")) {
            define("broker", "kafka.server.KafkaConfig$", "org.apache.kafka.server.config.AbstractKafkaConfig");
            define("topic", "kafka.log.LogConfig$", "org.apache.kafka.storage.internals.log.LogConfig");
            return;
        }
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
            for (int at = 0; at + 1 < given.length; at += 2) settings.put(given[at], given[at + 1]);
            settings.values().removeIf("\u0000"::equals);
            String thrown = "";
            try {
                config.newInstance(settings);
            } catch (InvocationTargetException error) {
                thrown = error.getCause().getClass().getSimpleName() + "\t" + error.getCause().getMessage();
            }
            System.out.println(thrown.replace("\n", " "));
        }
    }

    private static void define(String scope, String... owners) throws Exception {
        ConfigDef defined = null;
        for (String owner : owners) {
            try {
                defined = defined == null ? definitions(Class.forName(owner)) : defined;
            } catch (ClassNotFoundException error) {
                continue;
            }
        }
        for (ConfigDef.ConfigKey key : new TreeMap<>(defined.configKeys()).values()) {
            String rule = key.validator == null ? "" : key.validator.toString();
            for (String one : new String[] {"a", "broker", "compact", "consumer"}) {
                if (key.type != ConfigDef.Type.LIST || !takes(key, List.of(one))) continue;
                if (!takes(key, List.of())) rule += " not-empty";
                if (!takes(key, List.of(one, ""))) rule += " no-blanks";
                break;
            }
            String number = key.defaultValue instanceof Number ? key.defaultValue.toString() : "";
            System.out.println(String.join("\t", scope, key.name, key.type.name(), rule.trim(), number));
        }
    }

    private static ConfigDef definitions(Class<?> owner) throws Exception {
        Object module = null;
        for (Field field : owner.getDeclaredFields()) if (field.getName().equals("MODULE$")) module = field.get(null);
        for (Field field : owner.getDeclaredFields()) {
            if (!ConfigDef.class.isAssignableFrom(field.getType()) || field.getName().contains("SERVER")) continue;
            field.setAccessible(true);
            if (field.get(module) != null) return (ConfigDef) field.get(module);
        }
        return null;
    }

    private static boolean takes(ConfigDef.ConfigKey key, List<String> value) {
        try {
            if (key.validator != null) key.validator.ensureValid(key.name, value);
        } catch (RuntimeException error) {
            return false;
        }
        return true;
    }
}
