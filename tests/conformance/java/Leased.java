import com.google.gson.Gson;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;

/**
 * For an effect outside the database: it happens under a key of its own, between the commit of the reservation and the
 * transaction that the work and its answer share. What is thrown once it may have happened leaves the outcome unknown,
 * which the policy of the key decides.
 */
public final class Leased {
    /** What happens elsewhere. The downstream key is null where nothing protects the request. */
    @FunctionalInterface
    public interface Effect<T, E extends Exception> {
        T happen(String downstreamKey) throws E;
    }

    /** What is written here of it. */
    @FunctionalInterface
    public interface Work<T, E extends Exception> {
        Idem.Answer perform(Connection connection, T made) throws E;
    }

    private static final Gson JSON = new Gson();

    private Leased() {}

    /** Answers the request; the connection is in autocommit mode. */
    public static <T, E extends Exception> Idem.Answer run(
            Connection connection, Idem.Request request, Effect<T, E> effect, Work<T, E> work) throws SQLException, E {
        Map<String, Object> row = reserve(connection, request);
        if (row.get("status") != null) {
            String[][] headers = JSON.fromJson((String) row.get("headers"), String[][].class);
            return new Idem.Answer((Integer) row.get("status"), headers, (byte[]) row.get("body"));
        }
        Map<String, Object> owned = new HashMap<>();
        owned.put("scope", request.scope());
        owned.put("key", row.get("key"));
        owned.put("token", row.get("token"));
        try {
            T made = effect.happen((String) row.get("downstream_key"));
            return record(connection, owned, transaction -> work.perform(transaction, made));
        } catch (Throwable error) {
            try {
                if (row.get("key") != null) Idem.call(connection, "defer", owned);
            } catch (SQLException lost) {
                error.addSuppressed(lost); // the lease ends by itself
            }
            throw error;
        }
    }

    private static Map<String, Object> reserve(Connection connection, Idem.Request request) throws SQLException {
        Map<String, Object> asked = new HashMap<>(Map.of("mode", "leased", "token", Idem.newToken()));
        asked.put("scope", request.scope());
        asked.put("key_header", request.keyHeader());
        asked.put("method", request.method());
        asked.put("path", request.path());
        asked.put("body", request.body());
        asked.put("content_type", request.contentType());
        asked.put("policy", request.policy());
        return Idem.call(connection, "http_reserve", asked).get(0);
    }

    private static <E extends Exception> Idem.Answer record(
            Connection connection, Map<String, Object> owned, Idem.Work<E> work) throws SQLException, E {
        connection.setAutoCommit(false);
        try {
            try (Statement statement = connection.createStatement()) {
                statement.execute("set transaction isolation level read committed");
            }
            Idem.Answer answer = work.perform(connection);
            Map<String, Object> done = new HashMap<>(owned);
            done.put("status", answer.status());
            done.put("headers", answer.headers() == null ? null : JSON.toJson(answer.headers()));
            done.put("body", answer.body());
            Object ending = Idem.call(connection, "http_complete", done).get(0).get("http_complete");
            if (!ending.equals("repeated")) connection.commit();
            return answer;
        } finally {
            if (!connection.isClosed()) { // as a lost one is
                connection.rollback();
                connection.setAutoCommit(true);
            }
        }
    }
}
