import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import org.postgresql.util.PSQLException;

/** Idempotency keys decided in Postgres, over JDBC. Copy this file into your project. */
public final class Idem {
    /** One attempt. All but scope, method and path may be null. */
    public record Request(
            String scope, String keyHeader, String method, String path, byte[] body, String contentType, String policy) {}

    /** What every attempt is sent. Headers are pairs of a name and a value; they and the body may be null. */
    public record Answer(int status, String[][] headers, byte[] body) {}

    /** Does what was asked for, in the transaction that it gets. */
    @FunctionalInterface
    public interface Work<E extends Exception> {
        Answer perform(Connection connection) throws E;
    }

    /** What a program got wrong, by SQLSTATE. Other errors stay those of the driver. */
    public static class IdemException extends SQLException {
        public final String code;
        public final String hint;

        IdemException(PSQLException cause) {
            super(cause.getServerErrorMessage().getMessage(), cause.getSQLState(), cause);
            String detail = cause.getServerErrorMessage().getDetail();
            code = detail == null ? null : JSON.fromJson(detail, JsonObject.class).get("code").getAsString();
            hint = cause.getServerErrorMessage().getHint();
        }
    }

    public static final class KeyInvalid extends IdemException { KeyInvalid(PSQLException e) { super(e); } }
    public static final class LostReservation extends IdemException { LostReservation(PSQLException e) { super(e); } }
    public static final class NoSuchReservation extends IdemException { NoSuchReservation(PSQLException e) { super(e); } }
    public static final class WrongMode extends IdemException { WrongMode(PSQLException e) { super(e); } }
    public static final class NotCompleted extends IdemException { NotCompleted(PSQLException e) { super(e); } }
    public static final class NoSuchPolicy extends IdemException { NoSuchPolicy(PSQLException e) { super(e); } }
    public static final class LimitExceeded extends IdemException { LimitExceeded(PSQLException e) { super(e); } }

    private static final Gson JSON = new Gson();

    private Idem() {}

    /** Makes reservation, work and answer one transaction, and begins it again where Postgres asks for that (40001). */
    public static <E extends Exception> Answer atomic(Connection connection, Request request, Work<E> work)
            throws SQLException, E {
        for (int tried = 1; ; tried++) {
            connection.setAutoCommit(false);
            try {
                return attempt(connection, request, work);
            } catch (PSQLException error) {
                if (tried == 5 || !"40001".equals(error.getSQLState())) throw typed(error);
            } finally {
                if (!connection.isClosed()) { // as a lost one is
                    connection.rollback(); // nothing is left to roll back after the commit
                    connection.setAutoCommit(true);
                }
            }
        }
    }

    private static <E extends Exception> Answer attempt(Connection connection, Request request, Work<E> work)
            throws SQLException, E {
        Map<String, Object> row = call(connection, "http_reserve", arguments(
                "scope", request.scope(), "key_header", request.keyHeader(), "method", request.method(),
                "path", request.path(), "body", request.body(), "content_type", request.contentType(),
                "policy", request.policy(), "token", newToken())).get(0);
        if (row.get("status") != null) {
            String[][] headers = JSON.fromJson((String) row.get("headers"), String[][].class);
            return new Answer((Integer) row.get("status"), headers, (byte[]) row.get("body"));
        }
        Answer answer = work.perform(connection);
        Object ending = call(connection, "http_complete", arguments(
                "scope", request.scope(), "key", row.get("key"), "token", row.get("token"), "status", answer.status(),
                "headers", answer.headers() == null ? null : JSON.toJson(answer.headers()),
                "body", answer.body())).get(0).get("http_complete");
        if (!ending.equals("rollback") && !ending.equals("repeated")) connection.commit();
        return answer;
    }

    /** A random UUID by which one attempt is known. */
    public static UUID newToken() {
        return UUID.randomUUID();
    }

    /** Calls a function of schema idem. Its rows have byte[], Integer, Long, Boolean, and all else as Postgres spells it. */
    public static List<Map<String, Object>> call(Connection connection, String function, Map<String, ?> arguments)
            throws SQLException {
        String named = arguments.keySet().stream().map(name -> name + " => ?").collect(Collectors.joining(", "));
        try (PreparedStatement statement =
                connection.prepareStatement("select * from idem." + function + "(" + named + ")")) {
            int place = 0;
            for (Object value : arguments.values()) {
                if (value instanceof byte[] bytes) statement.setBytes(++place, bytes);
                else if (value instanceof String[] texts) statement.setArray(++place, connection.createArrayOf("text", texts));
                else statement.setObject(++place, value, Types.OTHER); // Postgres knows the type
            }
            List<Map<String, Object>> rows = new ArrayList<>();
            for (ResultSet found = statement.executeQuery(); found.next(); ) rows.add(row(found));
            return rows;
        } catch (PSQLException error) {
            throw typed(error);
        }
    }

    private static Map<String, Object> arguments(Object... pairs) {
        Map<String, Object> named = new HashMap<>();
        for (int i = 0; i < pairs.length; i += 2) named.put((String) pairs[i], pairs[i + 1]);
        return named;
    }

    private static Map<String, Object> row(ResultSet found) throws SQLException {
        Map<String, Object> row = new LinkedHashMap<>();
        for (int i = 1; i <= found.getMetaData().getColumnCount(); i++) {
            row.put(found.getMetaData().getColumnLabel(i), switch (found.getMetaData().getColumnType(i)) {
                case Types.BINARY, Types.INTEGER, Types.BIGINT, Types.BIT, Types.BOOLEAN -> found.getObject(i);
                default -> found.getString(i);
            });
        }
        return row;
    }

    /** Makes an exception of pyidem of the driver's, as from a commit; others it leaves as they are. */
    public static SQLException typed(PSQLException error) {
        return switch (String.valueOf(error.getSQLState())) {
            case "IK001" -> new KeyInvalid(error);
            case "IK002" -> new LostReservation(error);
            case "IK003" -> new NoSuchReservation(error);
            case "IK004" -> new WrongMode(error);
            case "IK005" -> new NotCompleted(error);
            case "IK006" -> new NoSuchPolicy(error);
            case "IK007" -> new LimitExceeded(error);
            default -> error;
        };
    }
}
