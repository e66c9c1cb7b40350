import com.google.gson.Gson;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** The endpoint POST /refunds. */
public final class Refunds {
    private record Refund(long id, String order, int amount) {}

    private static final String INSERT = "insert into refunds (\"order\", amount) values (?, ?) returning id";

    private Refunds() {}

    /** Answers one request; the scope is the client that asks, as the server knows it. */
    public static Idem.Answer refund(Connection connection, String scope, String keyHeader, byte[] body)
            throws SQLException {
        // ten lines:
        var request = new Idem.Request(scope, keyHeader, "POST", "/refunds", body, "application/json", null);
        return Idem.atomic(connection, request, transaction -> {
            var asked = new Gson().fromJson(new String(body, StandardCharsets.UTF_8), Refund.class);
            if (asked.amount() <= 0) return new Idem.Answer(422, null, "{\"error\": \"amount\"}".getBytes());
            var made = new Refund(insert(transaction, asked), asked.order(), asked.amount());
            String[][] headers = {{"Location", "/refunds/" + made.id()}, {"Content-Type", "application/json"}};
            return new Idem.Answer(201, headers, new Gson().toJson(made).getBytes(StandardCharsets.UTF_8));
        });
        // end of ten lines
    }

    private static long insert(Connection connection, Refund refund) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(INSERT)) {
            statement.setString(1, refund.order());
            statement.setInt(2, refund.amount());
            ResultSet made = statement.executeQuery();
            made.next();
            return made.getLong(1);
        }
    }
}
