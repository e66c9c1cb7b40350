<?php

declare(strict_types=1);

require_once __DIR__ . '/Idem.php';

/**
 * For an effect outside the database: it happens under a key of its own, between the commit of the reservation and the
 * transaction that the work and its answer share. What is thrown once it may have happened leaves the outcome unknown,
 * which the policy of the key decides.
 *
 *     $answer = Leased::run($pdo, $request, fn (?string $key) => $provider->refund($key), fn (PDO $pdo, $made) => ...);
 */
final class Leased
{
    /**
     * @param array{scope: string, key_header: ?string, method: string, path: string, ...} $request as in Idem::atomic
     * @param callable(?string): mixed $effect
     * @param callable(PDO, mixed): Answer $work
     */
    public static function run(PDO $pdo, array $request, callable $effect, callable $work): Answer
    {
        [$row] = Idem::call($pdo, 'http_reserve', [...$request, 'mode' => 'leased', 'token' => Idem::newToken()]);
        if ($row['status'] !== null) {
            return new Answer($row['status'], json_decode($row['headers'] ?? 'null'), $row['body']);
        }
        $owned = ['scope' => $request['scope'], 'key' => $row['key'], 'token' => $row['token']];
        try {
            $made = $effect($row['downstream_key']);
            $pdo->beginTransaction();
            $pdo->exec('set transaction isolation level read committed');
            $answer = $work($pdo, $made);
            $done = ['status' => $answer->status, 'headers' => $answer->headers, 'body' => $answer->body];
            [$ended] = Idem::call($pdo, 'http_complete', $owned + $done);
            $ended['http_complete'] === 'repeated' ? $pdo->rollBack() : $pdo->commit();
            return $answer;
        } catch (Throwable $error) {
            self::giveUp($pdo, $owned);
            throw $error;
        }
    }

    private static function giveUp(PDO $pdo, array $owned): void
    {
        try {
            if ($pdo->inTransaction()) {
                $pdo->rollBack();
            }
            if ($owned['key'] !== null) {
                Idem::call($pdo, 'defer', $owned);
            }
        } catch (IdemException | PDOException) {
            // the lease ends by itself
        }
    }
}
