import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonSerializer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import org.postgresql.util.PSQLException;

/** Speaks the line protocol of the conformance suite: see ../README.md. */
public final class Conformance {
    private static final class WorkFailed extends RuntimeException {}

    private static final Gson JSON = new GsonBuilder()
            .serializeNulls()
            .registerTypeAdapter(byte[].class, (JsonSerializer<byte[]>) (bytes, type, context) -> encoded(bytes))
            .create();
    private static final Map<String, Connection> SESSIONS = new HashMap<>();

    private Conformance() {}

    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            Object answer;
            try {
                answer = perform(JsonParser.parseString(line).getAsJsonObject());
            } catch (SQLException error) {
                answer = Map.of("error", described(error));
            }
            out.println(JSON.toJson(answer));
            out.flush();
        }
    }

    private static Object perform(JsonObject request) throws SQLException {
        String name = text(request, "session");
        Connection session = SESSIONS.get(name);
        switch (text(request, "do")) {
            case "open" -> SESSIONS.put(name, open(text(request, "user")));
            case "close" -> SESSIONS.remove(name).close();
            case "begin" -> {
                String isolation = text(request, "isolation");
                execute(session, isolation == null ? "begin" : "begin isolation level " + isolation);
            }
            case "commit", "rollback" -> execute(session, text(request, "do"));
            case "execute" -> execute(session, text(request, "sql"));
            case "token" -> {
                return Map.of("token", Idem.newToken().toString());
            }
            case "call" -> {
                return Map.of("rows", Idem.call(session, text(request, "function"), values(request)));
            }
            case "atomic" -> {
                return atomic(session, request);
            }
            case "leased" -> {
                return leased(session, request);
            }
            case "refund" -> {
                return Refunds.refund(session, text(request, "scope"), text(request, "key_header"), bytes(request));
            }
            default -> throw new IllegalArgumentException(request.toString());
        }
        return Map.of();
    }

    private static Connection open(String user) throws SQLException {
        Map<String, String> given = System.getenv();
        String url = "jdbc:postgresql://" + given.get("PGHOST") + ":" + given.get("PGPORT") + "/" + given.get("PGDATABASE");
        return DriverManager.getConnection(url, user, given.get("PGPASSWORD"));
    }

    private static void execute(Connection session, String sql) throws SQLException {
        try (Statement statement = session.createStatement()) {
            statement.execute(sql);
        } catch (PSQLException error) {
            throw Idem.typed(error);
        }
    }

    private static Object atomic(Connection session, JsonObject asked) throws SQLException {
        try {
            return Idem.atomic(session, request(asked), transaction -> work(transaction, asked));
        } catch (WorkFailed failed) {
            return Map.of("failed", true);
        }
    }

    private static Object leased(Connection session, JsonObject asked) throws SQLException {
        JsonObject effect = asked.getAsJsonObject("effect");
        Leased.Effect<Void, SQLException> outside = key -> {
            execute(session, text(effect, "sql").replace("{key}", key));
            if (effect.has("fail")) throw new WorkFailed();
            return null;
        };
        try {
            return Leased.run(session, request(asked), outside, (transaction, made) -> work(transaction, asked));
        } catch (WorkFailed failed) {
            return Map.of("failed", true);
        }
    }

    private static Idem.Request request(JsonObject asked) {
        JsonObject given = asked.getAsJsonObject("request");
        return new Idem.Request(
                text(given, "scope"), text(given, "key_header"), text(given, "method"), text(given, "path"),
                bytes(given), text(given, "content_type"), text(given, "policy"));
    }

    private static Idem.Answer work(Connection transaction, JsonObject asked) throws SQLException {
        JsonObject work = asked.getAsJsonObject("work");
        execute(transaction, text(work, "sql"));
        if (work.has("fail")) throw new WorkFailed();
        String[][] headers = JSON.fromJson(work.get("headers"), String[][].class);
        return new Idem.Answer(work.get("status").getAsInt(), headers, bytes(work));
    }

    private static Map<String, Object> values(JsonObject request) {
        Map<String, Object> values = new LinkedHashMap<>();
        request.getAsJsonObject("arguments").entrySet().forEach(entry -> values.put(entry.getKey(), value(entry.getValue())));
        return values;
    }

    private static Object value(JsonElement value) {
        if (value.isJsonNull()) return null;
        if (value.isJsonObject()) return decoded(value);
        if (value.isJsonArray()) return JSON.fromJson(value, String[].class);
        return value.getAsString();
    }

    private static String text(JsonObject object, String name) {
        JsonElement value = object.get(name);
        return value == null || value.isJsonNull() ? null : value.getAsString();
    }

    private static byte[] bytes(JsonObject object) {
        JsonElement value = object.get("body");
        return value == null || value.isJsonNull() ? null : decoded(value);
    }

    private static byte[] decoded(JsonElement value) {
        return HexFormat.of().parseHex(value.getAsJsonObject().get("bytes").getAsString());
    }

    private static JsonElement encoded(byte[] bytes) {
        var object = new JsonObject();
        object.addProperty("bytes", HexFormat.of().formatHex(bytes));
        return object;
    }

    private static Map<String, Object> described(SQLException error) {
        Map<String, Object> described = new HashMap<>();
        described.put("sqlstate", error.getSQLState());
        described.put("code", error instanceof Idem.IdemException ours ? ours.code : null);
        String kind = error.getClass().getSimpleName().replaceAll("(?<!^)([A-Z])", "_$1").toLowerCase();
        described.put("kind", error instanceof Idem.IdemException ? kind : null);
        return described;
    }
}
