<?php

declare(strict_types=1);

/**
 * Idempotency keys decided in Postgres, for PDO. Copy this file into your project.
 *
 *     $answer = Idem::atomic($pdo, $request, fn (PDO $pdo) => new Answer(201, body: '{}'));
 */
final class Idem
{
    private const JSON = ['headers', 'fields', 'state', 'args'];
    private const BYTES = ['fingerprint', 'body'];
    private const TRIES = 5;

    /**
     * Makes reservation, work and answer one transaction, and begins it again where Postgres asks for that (40001).
     *
     * @param array{scope: string, key_header: ?string, method: string, path: string, body?: ?string,
     *     content_type?: ?string, policy?: ?string} $request
     * @param callable(PDO): Answer $work
     */
    public static function atomic(PDO $pdo, array $request, callable $work): Answer
    {
        for ($tried = 1; ; $tried++) {
            $pdo->beginTransaction();
            try {
                return self::attempt($pdo, $request, $work);
            } catch (PDOException $error) {
                if ($tried === self::TRIES || $error->getCode() !== '40001') {
                    throw IdemException::of($error);
                }
            } finally {
                if ($pdo->inTransaction()) {
                    $pdo->rollBack();
                }
            }
        }
    }

    private static function attempt(PDO $pdo, array $request, callable $work): Answer
    {
        [$row] = self::call($pdo, 'http_reserve', [...$request, 'token' => self::newToken()]);
        if ($row['status'] !== null) {
            return new Answer($row['status'], json_decode($row['headers'] ?? 'null'), $row['body']);
        }
        $answer = $work($pdo);
        [$ended] = self::call($pdo, 'http_complete', [
            'scope' => $request['scope'], 'key' => $row['key'], 'token' => $row['token'],
            'status' => $answer->status, 'headers' => $answer->headers, 'body' => $answer->body,
        ]);
        if (!in_array($ended['http_complete'], ['rollback', 'repeated'], true)) {
            $pdo->commit();
        }
        return $answer;
    }

    /** Makes the random UUID by which one attempt is known. */
    public static function newToken(): string
    {
        $bytes = random_bytes(16);
        $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
        $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }

    /** Calls a function of schema idem and returns its rows; bytea comes as a string. */
    public static function call(PDO $pdo, string $function, array $arguments = []): array
    {
        $named = implode(', ', array_map(fn (string $name) => "$name => ?", array_keys($arguments)));
        $once = [PDO::PGSQL_ATTR_DISABLE_PREPARES => true]; // no statement is left behind for a pooler to lose
        try {
            $statement = $pdo->prepare("select * from idem.$function($named)", $once);
            $place = 0;
            foreach ($arguments as $name => $value) {
                $statement->bindValue(++$place, ...self::bound($name, $value));
            }
            $statement->execute();
            $rows = $statement->fetchAll(PDO::FETCH_ASSOC);
        } catch (PDOException $error) {
            throw IdemException::of($error);
        }
        $text = fn ($value) => is_resource($value) ? stream_get_contents($value) : $value;
        return array_map(fn (array $row) => array_map($text, $row), $rows);
    }

    private static function bound(string $name, mixed $value): array
    {
        $quoted = fn (string $text) => '"' . addcslashes($text, '"\\') . '"';
        return match (true) {
            $value === null => [null, PDO::PARAM_NULL],
            in_array($name, self::BYTES, true) => [$value, PDO::PARAM_LOB],
            is_bool($value) => [$value, PDO::PARAM_BOOL],
            is_string($value) || is_int($value) => [$value, PDO::PARAM_STR],
            in_array($name, self::JSON, true) => [json_encode($value, JSON_THROW_ON_ERROR), PDO::PARAM_STR],
            default => ['{' . implode(',', array_map($quoted, $value)) . '}', PDO::PARAM_STR],
        };
    }
}

/** What every attempt is sent; headers are pairs of a name and a value. */
final class Answer
{
    public function __construct(
        public readonly int $status,
        public readonly ?array $headers = null,
        public readonly ?string $body = null,
    ) {
    }
}

/** What a program got wrong, by SQLSTATE. All other errors stay PDOExceptions. */
class IdemException extends RuntimeException
{
    private const KINDS = [
        'IK001' => KeyInvalid::class, 'IK002' => LostReservation::class, 'IK003' => NoSuchReservation::class,
        'IK004' => WrongMode::class, 'IK005' => NotCompleted::class, 'IK006' => NoSuchPolicy::class,
        'IK007' => LimitExceeded::class,
    ];
    public readonly string $sqlstate;
    public readonly ?string $reason;
    public readonly ?string $hint;

    final private function __construct(PDOException $cause)
    {
        // PDO has message, detail and hint in one text: each on a line, after its label
        [$this->sqlstate, , $text] = $cause->errorInfo;
        preg_match('/^[^:]+: +(.*)\n[^:]+: +(\{.*\})(?:\n[^:]+: +(.*))?/', $text, $found);
        parent::__construct($found[1] ?? $text, 0, $cause);
        $this->reason = json_decode($found[2] ?? '{}')->code ?? null;
        $this->hint = $found[3] ?? null;
    }

    /** Makes an exception of pyidem of PDO's, as from a commit, or returns it as it is. */
    public static function of(PDOException $error): Exception
    {
        $kind = self::KINDS[$error->getCode()] ?? null;
        return $kind === null ? $error : new $kind($error);
    }
}

final class KeyInvalid extends IdemException {}
final class LostReservation extends IdemException {}
final class NoSuchReservation extends IdemException {}
final class WrongMode extends IdemException {}
final class NotCompleted extends IdemException {}
final class NoSuchPolicy extends IdemException {}
final class LimitExceeded extends IdemException {}
